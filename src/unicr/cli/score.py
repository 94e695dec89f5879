"""`unicr score`: accuracy at radii, p_A and average radius of runs and logs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from unicr.cli._parameters import FAILED, Force, Format, MaybeOut, command
from unicr.errors import RunError, printable

if TYPE_CHECKING:
    from unicr.runs import Spec


@command
def score(
    runs: list[Path],
    /,
    *,
    radii: list[float] | None = None,
    norm: str | None = None,
    format_: Format = "table",
    out: MaybeOut = None,
    verbose: bool = False,
    force: Force = False,
) -> int:
    """Print certified accuracy at radii, p_A percentiles, average radii.

    Takes run folders and published logs. A run that cannot be read is named and left out, with exit
    code 3. Example: unicr score my-run -o accuracy.png

    Parameters
    ----------
    runs
        Run folders, or published tables of radii (logs), which hold at the alpha of their author.
    radii
        Radii at which to print the certified accuracy; a few that suit the runs if left out.
    norm
        One norm of the runs; all norms if left out.
    out
        Draw certified accuracy against the radius into this .png, .svg or .pdf file, or write the
        table to a .csv or .tex file.
    verbose
        Also print abstentions, a lower bound of the accuracy that allows for certificates that are
        wrong by chance, the robustness score over all runs, and what each column means.
    """
    from unicr.lab.report.runs import write_scores
    from unicr.lab.report.tables import score_table
    from unicr.runs import load_scores

    problems: list[RunError] = []
    about: dict[str, str] = {}

    def hear(name: str, spec: Spec, done: int) -> None:
        wanted = len(spec.indices(spec.data_size))
        left = "" if done >= wanted else f" (interrupted: {done} of {wanted} are done)"
        about[name] = f"{spec.inputs_text}{left}; noise from {spec.draw_text}"

    groups = load_scores(runs, norm, problems.append, force=force, on_run=hear)
    print(score_table(groups, radii, format_, verbose=verbose))
    if out is not None:
        write_scores(groups, radii, out)
    for name, words in about.items():
        print(printable(f"{name}: {words}"), file=sys.stderr)
    for problem in problems:
        print(f"left out: {printable(str(problem))}", file=sys.stderr)
    return FAILED if problems else 0
