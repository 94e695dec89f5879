"""`unicr recertify`: a published Gaussian l2 log, carried to any other norm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unicr.cli._options import Whole


def recertify(
    log: Path,
    *,
    noise: str,
    norm: str,
    dim: Whole,
    searched: Annotated[bool, Parameter(negative="")] = False,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> None:
    """Radii in another norm from a log of Gaussian l2 certificates, without the model.

    Parameters
    ----------
    log
        A .tsv with the columns idx label predict radius correct time.
    noise
        The Gaussian noise it was made with, e.g. 'gaussian(sigma=0.5)'.
    norm
        The norm to carry it to.
    dim
        Number of input coordinates, e.g. 3072.
    searched
        Searched radii, the paper's approximate ones, instead of proved ones.
    output
        Write the new log here instead of printing it.
    """
    from unicr.noise import parse
    from unicr.norms import parse_norm
    from unicr.runs import check_gaussian, floor_decimal, read_log
    from unicr.runs import recertify as carry

    rows = carry(
        read_log(log), check_gaussian(parse(noise)), parse_norm(norm), dim, searched=searched
    )
    lines = ["idx\tlabel\tpredict\tradius\tcorrect\ttime"]
    for row in rows:
        radius = floor_decimal(row.radius)
        values = (row.idx, row.label, row.predict, radius, int(row.correct), row.time)
        lines.append("\t".join(map(str, values)))
    text = "\n".join(lines) + "\n"
    if output is None:
        print(text, end="")
    else:
        output.write_text(text)
        print(f"{len(rows)} certificates written to {output}")
