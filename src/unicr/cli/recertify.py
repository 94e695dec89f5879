"""`unicr recertify`: a published log of certificates, carried to any other norm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unicr.cli._options import MaybeWhole, Out, Searched, count
from unicr.errors import UnicrError


def recertify(
    log: Path,
    /,
    *,
    noise: str,
    norm: str,
    dim: Annotated[int, count("Number of input coordinates, e.g. 3072.")],
    origin: Annotated[str, Parameter(name="--from")] = "2",
    n: MaybeWhole = None,
    alpha: float | None = None,
    searched: Searched = False,
    out: Annotated[Path | None, Parameter(name=Out)] = None,
) -> None:
    """Carry a published log of radii to any other norm.

    The model is not needed. A log does not carry its alpha: the new radii hold at the confidence
    it was made with. They must come from p_A alone (p_B = 1 - p_A), as in this format. Example:

    unicr recertify cohen.tsv --noise 'gaussian(sigma=0.5)' --norm inf --dim 3072

    Parameters
    ----------
    log
        A table with the columns idx label predict radius correct time, with tabs between.
        Where it has p_A_bar, its radii come from that.
    noise
        The noise it was made with, e.g. 'gaussian(sigma=0.5)' or 'laplace(sigma=0.5)'.
    norm
        The norm to carry it to.
    origin
        The norm of its radii.
    n
        With alpha, for a log with the column raw_count: the votes behind each count.
    alpha
        The failure probability to give the bounds from raw_count.
    out
        Write the new log here instead of printing it.
    """
    from unicr.noise import parse
    from unicr.norms import parse_norm
    from unicr.runs import floor_decimal, read_log
    from unicr.runs import recertify as carry

    if (n is None) != (alpha is None):
        raise UnicrError("--n and --alpha belong together: give both, or neither")
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
    if out is None:
        print(text, end="")
    else:
        out.write_text(text)
        print(f"{len(rows)} certificates written to {out}")
