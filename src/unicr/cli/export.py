"""`unicr export`: a run as TSV, CSV, LaTeX, JSON lines or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def export(
    run: Path,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    norm: str | None = None,
) -> None:
    """Write the certificates of a run as a table; radii are rounded down.

    Parameters
    ----------
    run
        The folder of the run.
    output
        A file that ends in .tsv (one norm, the format of published logs), .csv, .tex, .jsonl or
        .parquet.
    norm
        Which norm, for .tsv.
    """
    from unicr.runs import Run
    from unicr.runs import export as write

    with Run(run) as opened:
        write(opened, output, norm)
        kind = ", searched radii" if opened.manifest.searched else ""
    print(f"written to {output}{kind}")
