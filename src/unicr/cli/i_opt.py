"""`unicr i-opt`: certify every input under the noise that suits it best."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from unicr.cli._options import (
    DATA,
    MODEL,
    PLACE,
    DataOptions,
    ModelOptions,
    PlaceOptions,
    Whole,
    whole,
)

FAILED = 3
SIGMA_STEP = 2**0.25


def i_opt(
    *,
    model: str,
    data: str,
    init: str,
    norm: Annotated[list[str], Parameter(consume_multiple=True, negative="")],
    out: Path,
    family: str = "gennorm",
    range_: Annotated[
        list[str] | None, Parameter(name="--range", consume_multiple=True, negative="")
    ] = None,
    method: Literal["compass", "hill"] = "compass",
    union: Annotated[bool, Parameter(negative="")] = False,
    keep_prediction: Annotated[bool, Parameter(negative="")] = False,
    loading: ModelOptions = MODEL,
    reading: DataOptions = DATA,
    place: PlaceOptions = PLACE,
    n0: Annotated[int, Parameter(name="--n0", converter=whole)] = 1000,
    n: Whole = 10_000,
    alpha: float = 0.001,
    searched: Annotated[bool, Parameter(negative="")] = False,
    batch: Whole = 1000,
    chunk: Whole = 10_000,
    skip: Whole = 1,
    max_: Annotated[int | None, Parameter(name="--max", converter=whole)] = None,
    seed: int = 0,
    resume: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Find the best noise for every input, then certify it with fresh samples (I-OPT).

    The result is an ordinary run (one folder per norm, if there are several) whose certificates
    speak of the classifier smoothed with that input's noise: see docs/input-dependent.md.

    Parameters
    ----------
    model
        As in `unicr certify`.
    data
        As in `unicr certify`.
    init
        The noise that every search begins with, e.g. 'gaussian(sigma=1)'.
    norm
        One or more norms; each gets its own best noise, from shared votes.
    out
        The folder of the run; with several norms one folder in it for each: l1, l2, linf.
    family
        The family to search in; the initial noise must belong to it (Gaussian is gennorm 2).
    range_
        Where to look, NAME=LOW:HIGH:STEP: beta=1:3:0.25 (steps), sigma=0.25:4:1.19 (a factor).
        Default: sigma from a quarter to four times the initial one, beta from 1 to 3.
    method
        compass takes long strides first; hill is the paper's Algorithm 3.
    union
        Certify all candidates at alpha/their number from the same samples, instead of the chosen
        one from fresh samples.
    keep_prediction
        The certified class must be the classifier's own answer without noise.
    n0
        Samples of each candidate that the search looks at.
    n
        Fresh samples that certify.
    alpha
        Failure probability of one certificate.
    searched
        Optimise and store searched radii, the paper's approximate ones, instead of proved ones.
    batch
        Samples per forward pass.
    chunk
        The most samples of one task, with --workers or --ray.
    skip
        Every skip-th input only.
    max_
        At most this many inputs.
    seed
        Seed of the noise.
    resume
        Go on with a run that was interrupted.
    """
    import sys

    from rich.console import Console

    from unicr.i_opt import IOpt, Lattice, i_opt_run
    from unicr.noise import parse
    from unicr.report.runs import Progress, summary
    from unicr.runs import Job, Run
    from unicr.smoothing import Plan, norms_of

    start = parse(init)
    lattice = Lattice.around(start, family, axes_of(range_, start.sigma, family))
    settings = IOpt(lattice, method=method, union=union, keep=keep_prediction)
    classifier = loading.load(model)
    job = Job(
        classifier=classifier,
        data=reading.load(data, classifier),
        noise=start,
        norms=norms_of(norm),
        plan=Plan(n0=n0, n=n, alpha=alpha),
        seed=seed,
        searched=searched,
        skip=skip,
        limit=max_,
        batch=batch,
        workers=place.workers,
        ray=place.address,
        gpus=place.gpus,
        chunk=chunk,
        data_spec=data,
        data_arguments=reading.arguments(),
        model_arguments=loading.arguments(model),
    )
    console = Console(stderr=True)
    console.print(
        f"{lattice.size} noises to choose from; p_A-R curves are made on first use and kept",
        highlight=False,
    )
    with Progress(len(job.indices), job.norms[0].text, console) as progress:
        places = i_opt_run(
            job, settings, out, resume=resume, on_result=lambda rows: progress.add(rows[0])
        )
    failed = False
    for one, folder in places.items():
        with Run(folder) as run:
            rows, scope, seal = list(run.rows()), run.manifest.scope, run.seal()
        Console().print(summary(rows, [one.text], searched=searched))
        print(f"scope: {scope}")
        print(f"run in {folder}, seal {seal}", file=sys.stderr)
        failed |= any(row.status == "failed" for row in rows)
    return FAILED if failed else 0


def axes_of(given: list[str] | None, sigma: float, family: str) -> tuple[Any, ...]:
    """The axes that --range asks for; those left out as they are by default."""
    from unicr.errors import SpecError
    from unicr.i_opt import Axis
    from unicr.noise import FAMILIES

    axes = {"sigma": Axis("sigma", sigma / 4, sigma * 4, SIGMA_STEP)}
    for known in FAMILIES[family].parameters if family in FAMILIES else ():
        if known.axis is not None:
            axes[known.name] = Axis(known.name, *known.axis)
    for text in given or []:
        name, _, numbers = text.partition("=")
        try:
            low, high, step = (float(part) for part in numbers.split(":"))
        except ValueError:
            raise SpecError(
                f"--range {text!r}: write NAME=LOW:HIGH:STEP, for example beta=1:3:0.25"
            ) from None
        axes[name] = Axis(name, low, high, step)
    return tuple(axes.values())
