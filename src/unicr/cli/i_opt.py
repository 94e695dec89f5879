"""`unicr i-opt`: certify every input under the noise that suits it best."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated, Literal

from cyclopts import Parameter

from unicr.cli._parameters import FAILED, Loading, Out, Repeated, command, read_ranges
from unicr.cli.certify import LOADING, PLACE, READING, SearchPlan
from unicr.data import DataOptions
from unicr.errors import CertifyError
from unicr.i_opt import Axis, Grid, IOpt, commit_i_opt, i_opt_run
from unicr.runs import Job, Place, Run, Terms

SIGMA_STEP = 2**0.25  # neighbouring sigmas differ by 19 %: a radius changes little within a step
SEARCH = Parameter(group="The search")
COMMIT = Parameter(group="Before the nonce is known")


PLAN = SearchPlan()


@command
def i_opt(
    *,
    init: str,
    model: str,
    data: str,
    terms: Terms,
    out: Out,
    family: Annotated[str | None, SEARCH] = None,
    range_: Annotated[list[str] | None, SEARCH] = None,
    method: Annotated[Literal["compass", "hill"], SEARCH] = "compass",
    union: Annotated[bool, SEARCH] = False,
    keep_prediction: Annotated[bool, SEARCH] = False,
    commit: Annotated[bool, COMMIT] = False,
    require: Annotated[list[str] | None, COMMIT, Repeated] = None,
    resume: bool = False,
    verbose: bool = False,
    plan: SearchPlan = PLAN,
    loading: Loading = LOADING,
    reading: DataOptions = READING,
    place: Place = PLACE,
) -> int:
    """Find the best noise for each input and certify the input (I-OPT).

    Fresh samples certify the chosen noise. The result is an ordinary run; with several norms there
    is one folder for each (l1, l2, linf). Each certificate is about the classifier smoothed with
    that input's noise: see docs/input-dependent.md. Exit code 3 if some inputs failed. Example:

    unicr i-opt --model builtin:mnist-mlp-0.5 --data builtin:mnist \\
      --init 'gaussian(sigma=0.5)' --norm inf --max 20 --out chosen

    Parameters
    ----------
    init
        The noise at which every search starts, e.g. 'gaussian(sigma=1)'.
    model
        The model, as in `unicr certify`.
    data
        The inputs, as in `unicr certify`.
    out
        The folder of the run.
    family
        The family to search in; gennorm if left out. The initial noise must belong to it (Gaussian
        noise is gennorm with beta = 2).
    range_
        The grid, NAME=LOW:HIGH:STEP: beta=1:3:0.25 (steps), sigma=0.25:4:1.19 (a factor).
        Default: sigma from a quarter to four times the initial one, beta from 1 to 3.
    method
        compass starts with long steps; hill is the paper's Algorithm 3.
    union
        Certify all candidates from one set of samples, each at alpha divided by their number,
        instead of the chosen one from fresh samples.
    keep_prediction
        The certified class must be the classifier's own answer without noise.
    commit
        Only record all settings of the search in OUT/commitment.json, as `unicr commit` does for
        `unicr certify`. `unicr seal OUT` signs and dates it. Then run the same command without
        --commit and with the --nonce that you received.
    require
        With --commit: a requirement, e.g. 'accuracy(2, 0.5) >= 0.7'. May be given several times.
    resume
        Continue a run that was interrupted, with the same options.
    verbose
        Also print what the radii mean.
    """
    from unicr.cli.commit import before_the_nonce, check_requirements
    from unicr.lab.report.tables import summary
    from unicr.noise import parse
    from unicr.noise.internal import usual_family

    start, family = parse(init), family or usual_family().name
    grid = Grid.around(start, family, axes_of(range_, start.sigma, family))
    settings = IOpt(grid, method=method, union=union, keep=keep_prediction)
    if commit:
        terms = before_the_nonce(terms)
    elif require:
        raise CertifyError(
            "--require must be fixed before the noise is known: give it with --commit"
        )
    job = Job.open(model, data, start, plan.fit(), terms, loading, reading, place)
    if commit:
        asked = check_requirements(require, job)
        print(f"commitment {commit_i_opt(replace(job, require=asked), settings, out)}")
        return 0
    words = "noises to choose from; p_A-R curves are made on first use and kept"
    print(f"{grid.size} {words}", file=sys.stderr)
    folders = i_opt_run(job, settings, out, resume=resume)
    failed = False
    for norm, folder in folders.items():
        with Run(folder) as run:
            rows, scope, seal = list(run.rows()), run.spec.scope, run.seal()
        print(summary(rows, [norm.text], searched=job.searched, verbose=verbose))
        print(f"scope: {scope}")
        print(f"run in {folder}, seal {seal}", file=sys.stderr)
        failed |= any(row.status == "failed" for row in rows)
    return FAILED if failed else 0


def axes_of(given: list[str] | None, sigma: float, family: str) -> tuple[Axis, ...]:
    """The axes that --range asks for; those left out as they are by default."""
    from unicr.noise import FAMILIES

    axes = {"sigma": Axis("sigma", sigma / 4, sigma * 4, SIGMA_STEP)}
    for known in FAMILIES[family].parameters if family in FAMILIES else ():
        if known.axis is not None:
            axes[known.name] = Axis(known.name, *known.axis)
    form = "NAME=LOW:HIGH:STEP, for example beta=1:3:0.25"
    for name, (low, high, step) in read_ranges(given, "--range", form, ":", 3).items():
        axes[name] = Axis(name, low, high, step)
    return tuple(axes.values())
