"""`unicr recertify`: a published log of certificates, carried to any other norm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unicr.cli._options import MaybeWhole, Whole
from unicr.errors import UnicrError


def recertify(
    log: Path,
    *,
    noise: str,
    norm: str,
    dim: Whole,
    origin: Annotated[str, Parameter(name="--from")] = "2",
    n: MaybeWhole = None,
    alpha: float | None = None,
    searched: Annotated[bool, Parameter(negative="")] = False,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> None:
    """Radii in another norm from a log of certificates, without the model.

    A log does not carry its alpha: the new radii hold at the confidence it was made with.

    Parameters
    ----------
    log
        A table with the columns idx label predict radius correct time, with tabs between.
        Where it has p_A_bar, its radii come from that.
    noise
        The noise it was made with, e.g. 'gaussian(sigma=0.5)' or 'laplace(sigma=0.5)'.
    norm
        The norm to carry it to.
    dim
        Number of input coordinates, e.g. 3072.
    origin
        The norm of its radii.
    n
        With alpha, for a log with the column raw_count: the votes behind each count.
    alpha
        The failure probability to give the bounds from raw_count.
    searched
        Searched radii, the paper's approximate ones, instead of proved ones.
    output
        Write the new log here instead of printing it.
    """
    from unicr.noise import parse
    from unicr.norms import parse_norm
    from unicr.runs import floor_decimal, read_log
    from unicr.runs import recertify as carry

    if (n is None) != (alpha is None):
        raise UnicrError("n and alpha belong together: give both, or neither")
    rows = carry(
        read_log(log),
        parse(noise),
        parse_norm(norm),
        dim,
        origin=parse_norm(origin),
        n=n,
        alpha=alpha,
        searched=searched,
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
