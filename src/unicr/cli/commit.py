"""`unicr commit`: fix all that decides a run, before its nonce is known."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from unicr.cli._parameters import Loading, Out, Repeated, command
from unicr.cli.certify import BUILDING, LOADING, PLACE, PLAN, READING, PlanOptions, open_job
from unicr.cli.seal import Authority, SigningKey, sign_and_date
from unicr.data import DataOptions
from unicr.errors import CertifyError
from unicr.runs import Place, Terms


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
    OUT/commitment.json, whose SHA-256 is the commitment. Date it (--timestamp), ask an auditor or a
    beacon for a nonce, then run `unicr certify` with the same options and that --nonce.
    Example:

    unicr commit --model builtin:mnist-mlp-0.5 --data builtin:mnist \\
      --noise 'gaussian(sigma=0.5)' --norm 2 --n 10000 --max 20 --out my-run

    Parameters
    ----------
    model
        As in `unicr certify`, with all options below.
    data
        The inputs, as in `unicr certify`.
    noise
        The smoothing noise, as in `unicr certify`.
    out
        The folder of the commitment, and later of the run.
    require
        What the run is to show, e.g. 'accuracy(2, 0.5) >= 0.7' (norm, radius, share of the inputs):
        `unicr report --format evidence` says whether it does. May be given several times.
    selector
        A folder that `unicr select` made, in place of --model and --noise.
    """
    from unicr.progress import announce
    from unicr.runs import Requirement, write_commitment

    if terms.nonce is not None or terms.seed is not None:
        raise CertifyError("a commitment is made before there is a nonce, and needs no seed")
    asked = tuple(Requirement.parse(one).text for one in require or ())
    # any nonce will do: it is not part of the commitment
    terms = replace(terms, nonce="0" * 64)
    job = open_job(model, data, noise, selector, plan, terms, loading, reading, place)
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
