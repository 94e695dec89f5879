"""`unicr score`: accuracy at radii, average radius and robustness score of runs and logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def score(
    runs: list[Path],
    *,
    radii: Annotated[list[float] | None, Parameter(consume_multiple=True, negative="")] = None,
    norm: str | None = None,
    format_: Annotated[Literal["markdown", "csv", "json"], Parameter(name="--format")] = "markdown",
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> None:
    """Score one or more runs (folders) or published logs (.tsv).

    Parameters
    ----------
    runs
        Run folders or .tsv logs; the robustness score is taken over all of them.
    radii
        Radii at which to print the certified accuracy.
    norm
        Which norm of the runs; every norm if left out.
    format_
        markdown, csv or json.
    output
        Draw certified accuracy against the radius into this file.
    """
    from unicr.report.runs import draw_accuracy, score_table
    from unicr.runs import load_scores

    groups = load_scores(runs, norm)
    print(score_table(groups, radii, format_))
    if output is not None:
        draw_accuracy(groups, output)
