"""`unicr commit`: fix all that decides a run, before its nonce is known."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from unicr.cli._parameters import Loading, Out, Repeated, command
from unicr.cli.certify import BUILDING, LOADING, PLACE, PLAN, READING, PlanOptions, open_job
from unicr.cli.seal import Authority, SigningKey, sign_and_date
from unicr.data import DataOptions
from unicr.errors import CertifyError
from unicr.runs import Job, Place, Terms


@command
def commit(
    *,
    model: str | None = None,
    data: str,
    noise: str | None = None,
    terms: Terms,
    out: Out,
    require: Annotated[list[str] | None, Repeated] = None,
    key: SigningKey = None,
    timestamp: Authority = None,
    selector: Path | None = None,
    plan: PlanOptions = PLAN,
    loading: Loading = LOADING,
    reading: DataOptions = READING,
    place: Place = PLACE,
) -> None:
    """Record all settings of a run before its random noise is known.

    Takes the options of `unicr certify`, reads the model and every input, and writes
    OUT/commitment.json. The SHA-256 of this file is the commitment. Next, date it (--timestamp),
    get a nonce from an auditor or a public beacon, and run `unicr certify` with the same options
    and that --nonce.
    Example:

    unicr commit --model builtin:mnist-mlp-0.5 --data builtin:mnist \\
      --noise 'gaussian(sigma=0.5)' --norm 2 --n 10000 --max 20 --out my-run

    Parameters
    ----------
    model
        The model, as in `unicr certify`.
    data
        The inputs, as in `unicr certify`.
    noise
        The smoothing noise, as in `unicr certify`.
    out
        The folder of the commitment, and later of the run.
    require
        A requirement, e.g. 'accuracy(2, 0.5) >= 0.7' (norm, radius, share of the inputs). `unicr
        report --format evidence` says whether the run meets it. May be given several times.
    selector
        A folder that `unicr select` made, instead of --model and --noise.
    """
    from unicr.progress import announce
    from unicr.runs import Requirement, write_commitment

    terms = before_the_nonce(terms)
    job = open_job(model, data, noise, selector, plan, terms, loading, reading, place)
    asked = check_requirements(require, job)
    job = replace(job, require=asked)
    with announce(BUILDING):
        reach = job.largest
    for one in asked:
        wanted = Requirement.parse(one)
        if wanted.radius > reach[wanted.norm]:
            raise CertifyError(
                f"{one} can never be met: the largest possible radius in l{wanted.norm} is "
                f"{reach[wanted.norm]:.4g}"
            )
    print(f"commitment {write_commitment(job, out)}")
    print(f"written to {out / 'commitment.json'}: its SHA-256 is the commitment", file=sys.stderr)
    sign_and_date(out, key, timestamp)


def before_the_nonce(terms: Terms) -> Terms:
    """The terms of a commitment. Any nonce will do: it is not part of the commitment."""
    if terms.nonce is not None or terms.seed is not None:
        raise CertifyError(
            "a commitment is made before the nonce exists, so give neither --nonce nor --seed"
        )
    return replace(terms, nonce="0" * 64)


def check_requirements(texts: Sequence[str] | None, job: Job) -> tuple[str, ...]:
    """What a job is to show, each in the one way to write it; what it never can is refused."""
    from unicr.runs import Requirement

    wanted = [Requirement.parse(text) for text in texts or ()]
    for one in wanted:
        if one.norm not in [norm.text for norm in job.norms]:
            raise CertifyError(f"{one.text} needs radii in l{one.norm}: add --norm {one.norm}")
        if job.searched:
            raise CertifyError(f"{one.text} needs proved radii: leave --searched out")
    return tuple(one.text for one in wanted)
