"""`unicr score`: accuracy at radii, average radius and robustness score of runs and logs."""

from __future__ import annotations

from pathlib import Path

from unicr.cli._options import Format, MaybeOut, Numbers


def score(
    runs: list[Path],
    /,
    *,
    radii: Numbers = None,
    norm: str | None = None,
    format_: Format = "table",
    out: MaybeOut = None,
) -> None:
    """Print accuracies at radii, average radii and robustness scores.

    Runs are folders or published logs. Example: unicr score my-run -o accuracy.png

    Parameters
    ----------
    runs
        Run folders, or logs, which do not say their alpha; the robustness score is over all.
    radii
        Radii at which to print the certified accuracy.
    norm
        Which norm of the runs; every norm if left out.
    out
        Draw certified accuracy against the radius into this file.
    """
    from unicr.lab.report.runs import draw_accuracy, score_table
    from unicr.runs import load_scores

    groups = load_scores(runs, norm)
    print(score_table(groups, radii, format_))
    if out is not None:
        draw_accuracy(groups, out)
