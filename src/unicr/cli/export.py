"""`unicr export`: a run as TSV, CSV, LaTeX, JSON lines or Parquet."""

from __future__ import annotations

from unicr.cli._options import Out, RunFolder


def export(
    run: RunFolder,
    /,
    *,
    out: Out,
    norm: str | None = None,
) -> None:
    """Write the certificates of a run as a table, radii rounded down.

    Example: unicr export my-run --norm 2 -o my-run.tsv

    Parameters
    ----------
    out
        A file that ends in .tsv (one norm, the format of published logs), .csv, .tex, .jsonl or
        .parquet.
    norm
        Which norm, for .tsv.
    """
    from unicr.runs import Run
    from unicr.runs import export as write

    with Run(run) as opened:
        write(opened, out, norm)
        kind = ", searched radii" if opened.spec.searched else ""
    print(f"written to {out}{kind}")
