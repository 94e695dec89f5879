"""`unicr recertify`: a published log of certificates, carried to any other norm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unicr.cli._parameters import MaybeOut, command
from unicr.errors import UnicrError


@command
def recertify(
    log: Path,
    /,
    *,
    noise: str,
    norm: str,
    dim: int,
    origin: Annotated[str, Parameter(name="--from")] = "2",
    n: int | None = None,
    alpha: float | None = None,
    share: float | None = None,
    second: Path | None = None,
    searched: bool = False,
    out: MaybeOut = None,
) -> None:
    """Compute radii in other norms from a published log.

    The model is not needed. A log does not contain its alpha: the new radii hold with the
    confidence of the old ones. The radii of the log must come from p_A alone (p_B = 1 - p_A).
    Example:

    unicr recertify cohen.tsv --noise 'gaussian(sigma=0.5)' --norm inf --dim 3072

    Parameters
    ----------
    log
        A table with the columns idx label predict radius correct time, separated by tabs. If it
        also has p_A_bar, raw_count or count, p_A is taken from there. Or a file of DSRS's sampler,
        or a result folder of rs4a.
    noise
        The noise of the log, e.g. 'gaussian(sigma=0.5)' or 'laplace(sigma=0.5)'.
    norm
        The norm of the new radii.
    dim
        Number of input coordinates, e.g. 3072.
    origin
        The norm of the radii in the log.
    n
        With alpha: the number of votes of each certificate. If the log has counts, p_A is computed
        from them. If not, each printed radius is replaced by the smallest radius that a count gives
        and that is printed the same way, and a radius that is impossible at n and alpha is refused.
    alpha
        The failure probability. If the log has counts, any value; if not, the alpha of the log
        (one-sided: half of what rs4a states).
    share
        For a log of votes under two laws (DSRS) with the columns p_A_bar and q_A_bar: the share of
        the noise inside the ball to which the second law is restricted. For spherical noise and
        l1_exp. Not with --from, --n, --alpha or --searched.
    second
        With --share, if LOG is a file of DSRS's sampler: the file of the second law.
    searched
        Report searched radii (the paper's approximate ones) instead of proved ones.
    out
        Write the new log here instead of printing it.
    """
    from unicr.noise import parse
    from unicr.norms import parse_norm
    from unicr.radius import Question
    from unicr.runs import (
        find_log_norm,
        floor_decimal,
        paired,
        read_intervals,
        read_log,
        recertify_two,
    )
    from unicr.runs import recertify as carry

    if (n is None) != (alpha is None):
        raise UnicrError("give --n and --alpha together, or neither")
    law, lp, found = parse(noise), parse_norm(norm), read_log(log, parse_norm(origin))
    find_log_norm(found, parse_norm(origin))  # refuses radii of another norm
    if second is not None:
        if share is None:
            raise UnicrError("--second is a log of the second law: give its share with --share")
        if second.exists() and second.samefile(log):
            raise UnicrError(
                f"--second names {log} itself, but it must be the log of the second law"
            )
        found = paired(found, read_intervals(second, log))
    if share is not None:
        if origin != "2" or n is not None or searched:
            raise UnicrError(
                "--share uses p_A and q_A of the log: leave --from, --n and --searched out"
            )
        Question(law, lp, dim)  # refuses a dimension that the noise cannot have
        rows = recertify_two(found, law, lp, share)
    else:
        rows = carry(
            found, law, lp, dim, origin=parse_norm(origin), n=n, alpha=alpha, searched=searched
        )
    lines = ["idx\tlabel\tpredict\tradius\tcorrect\ttime\tnorm"]
    for row in rows:
        radius = floor_decimal(row.radius)
        values = (row.idx, row.label, row.predict, radius, int(row.correct), row.time, lp.text)
        lines.append("\t".join(map(str, values)))
    text = "\n".join(lines) + "\n"
    if out is None:
        print(text, end="")
    else:
        out.write_text(text)
        print(f"{len(rows)} certificates written to {out}")
