"""`unicr score`: accuracy at radii, average radius and robustness score of runs and logs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from unicr.cli._options import FAILED, Force, Format, MaybeOut, Numbers
from unicr.errors import RunError, printable

if TYPE_CHECKING:
    from unicr.runs import Spec


def score(
    runs: list[Path],
    /,
    *,
    radii: Numbers = None,
    norm: str | None = None,
    format_: Format = "table",
    out: MaybeOut = None,
    force: Force = False,
) -> int:
    """Print accuracies at radii, average radii and robustness scores.

    Runs are folders or published logs. One that cannot be read is named and left out, with exit
    code 3. Example: unicr score my-run -o accuracy.png

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

    problems: list[RunError] = []
    about: dict[str, str] = {}

    def hear(name: str, spec: Spec) -> None:
        about[name] = f"{spec.inputs_text}; {spec.draw_text}"

    groups = load_scores(runs, norm, problems.append, force=force, on_spec=hear)
    print(score_table(groups, radii, format_))
    if out is not None:
        draw_accuracy(groups, out)
    for name, words in about.items():
        print(printable(f"{name}: {words}"), file=sys.stderr)
    for problem in problems:
        print(f"left out: {printable(str(problem))}", file=sys.stderr)
    return FAILED if problems else 0
