"""`unicr export`: a run as TSV, CSV, LaTeX, JSON lines or Parquet."""

from __future__ import annotations

import sys
from pathlib import Path

from unicr.cli._parameters import Force, Out, command


@command
def export(
    run: Path,
    /,
    *,
    out: Out,
    norm: str | None = None,
    force: Force = False,
) -> None:
    """Write the certificates of a run as a table, radii rounded down.

    Example: unicr export my-run --norm 2 -o my-run.tsv

    Parameters
    ----------
    run
        The folder of the run.
    out
        A file that ends in .tsv (one norm, the format of published logs), .csv, .tex, .jsonl or
        .parquet.
    norm
        The norm of a .tsv file.
    """
    from unicr.runs import Run, refuse_broken_seal
    from unicr.runs import export as write

    with Run(run) as opened:
        if mark := refuse_broken_seal(opened, force=force):
            print(f"warning: {run}: {mark}", file=sys.stderr)
        write(opened, out, norm)
        kind = ", searched radii" if opened.spec.searched else ""
    print(f"written to {out}{kind}")
