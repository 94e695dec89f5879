"""`unicr i-opt`: certify every input under the noise that suits it best."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from unicr.cli._options import FAILED, OutFolder, Resume, SearchOptions, Words, named

if TYPE_CHECKING:
    from unicr.i_opt import Axis

SIGMA_STEP = 2**0.25
SEARCH = "The search"


def i_opt(
    *,
    init: str,
    options: SearchOptions,
    out: OutFolder,
    family: Annotated[str | None, Parameter(group=SEARCH)] = None,
    range_: Annotated[Words, Parameter(name="--range", group=SEARCH)] = None,
    method: Annotated[Literal["compass", "hill"], Parameter(group=SEARCH)] = "compass",
    union: Annotated[bool, Parameter(group=SEARCH)] = False,
    keep_prediction: Annotated[bool, Parameter(group=SEARCH)] = False,
    resume: Resume = False,
) -> int:
    """Find the best noise for every input, then certify it (I-OPT).

    Fresh samples certify. The result is an ordinary run (with several norms one folder for each:
    l1, l2, linf) whose certificates speak of the classifier smoothed with that input's noise: see
    docs/input-dependent.md. Exit code 3 if some inputs failed. Example:

    unicr i-opt --model builtin:mnist-mlp-0.5 --data builtin:mnist \\
      --init 'gaussian(sigma=0.5)' --norm inf --max 20 --out chosen

    Parameters
    ----------
    init
        The noise that every search begins with, e.g. 'gaussian(sigma=1)'.
    family
        The family to search in, gennorm without it; the initial noise must belong to it (Gaussian
        is gennorm 2).
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
    """
    from unicr.i_opt import Grid, IOpt, i_opt_run
    from unicr.lab.report.runs import RunBar, summary
    from unicr.noise import parse
    from unicr.noise.internal import usual_family
    from unicr.runs import Run

    start, family = parse(init), family or usual_family().name
    grid = Grid.around(start, family, axes_of(range_, start.sigma, family))
    settings = IOpt(grid, method=method, union=union, keep=keep_prediction)
    job = options.job(start)
    words = "noises to choose from; p_A-R curves are made on first use and kept"
    print(f"{grid.size} {words}", file=sys.stderr)
    with RunBar(job) as progress:
        places = i_opt_run(
            job, settings, out, resume=resume, on_result=progress.add, on_samples=progress.count
        )
    failed = False
    for one, folder in places.items():
        with Run(folder) as run:
            rows, scope, seal = list(run.rows()), run.spec.scope, run.seal()
        print(summary(rows, [one.text], searched=job.searched))
        print(f"scope: {scope}")
        print(f"run in {folder}, seal {seal}", file=sys.stderr)
        failed |= any(row.status == "failed" for row in rows)
    return FAILED if failed else 0


def axes_of(given: Words, sigma: float, family: str) -> tuple[Axis, ...]:
    """The axes that --range asks for; those left out as they are by default."""
    from unicr.i_opt import Axis
    from unicr.noise import FAMILIES

    axes = {"sigma": Axis("sigma", sigma / 4, sigma * 4, SIGMA_STEP)}
    for known in FAMILIES[family].parameters if family in FAMILIES else ():
        if known.axis is not None:
            axes[known.name] = Axis(known.name, *known.axis)
    form = "NAME=LOW:HIGH:STEP, for example beta=1:3:0.25"
    for name, (low, high, step) in named(given, "--range", form, ":", 3).items():
        axes[name] = Axis(name, low, high, step)
    return tuple(axes.values())
