"""`unicr commit`: fix all that decides a run, before its nonce is known."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from unicr.cli._options import CertifyOptions, Noise_, OutFolder, Words
from unicr.cli.certify import BUILDING, EARLY, job_of, rule_of
from unicr.cli.seal import Authority, SigningKey, sign_and_date
from unicr.errors import CertifyError


def commit(
    *,
    options: CertifyOptions,
    out: OutFolder,
    require: Annotated[Words, Parameter(consume_multiple=False)] = None,
    key: SigningKey = None,
    timestamp: Authority = None,
    noise: Noise_ = "",
    selector: Path | None = None,
    bound: Annotated[Literal["single", "both"], Parameter(group=EARLY)] = "single",
    target_radius: Annotated[float | None, Parameter(group=EARLY)] = None,
    tol: Annotated[float | None, Parameter(group=EARLY)] = None,
    adaptive: Annotated[bool, Parameter(group=EARLY)] = False,
    rule: Annotated[str | None, Parameter(group=EARLY)] = None,
    second: float | None = None,
) -> None:
    """Fix what `unicr certify` will do, before anybody knows its noise.

    Takes the options of `unicr certify`, reads the model and every input, and writes
    OUT/commitment.json, whose SHA-256 is the commitment. Date it (--timestamp), ask an auditor or a
    beacon for a nonce, then run `unicr certify` with the same options and that --nonce.
    Example:

    unicr commit --model builtin:mnist-mlp-0.5 --data builtin:mnist \\
      --noise 'gaussian(sigma=0.5)' --norm 2 --n 10000 --max 20 --out my-run

    Parameters
    ----------
    require
        What the run is to show, e.g. 'accuracy(2, 0.5) >= 0.7' (norm, radius, share of the inputs):
        `unicr report --format evidence` says whether it does. May be given several times.
    selector
        As in `unicr certify`, with all options below.
    """
    from unicr.progress import announce
    from unicr.runs import Requirement, write_commitment

    if options.nonce is not None or options.seed is not None:
        raise CertifyError("a commitment is made before there is a nonce, and needs no seed")
    asked = tuple(Requirement.parse(one).text for one in require or ())
    chosen = rule_of(rule, bound, target_radius, tol, adaptive)
    # any nonce will do: it is not part of the commitment
    options = replace(options, nonce="0" * 64)
    job, _ = job_of(options, chosen, noise=noise, selector=selector, tol=tol, second=second)
    job = replace(job, require=asked)
    with announce(BUILDING):
        reach = job.largest
    for one in asked:
        wanted = Requirement.parse(one)
        if wanted.radius > reach.get(wanted.norm, 0.0):
            raise CertifyError(
                f"{one} cannot be shown: the largest radius in l{wanted.norm} is "
                f"{reach.get(wanted.norm, 0.0):.4g}"
            )
    print(f"commitment {write_commitment(job, out)}")
    print(f"written to {out / 'commitment.json'}: its SHA-256 is the commitment", file=sys.stderr)
    sign_and_date(out, key, timestamp)
