"""I-OPT over a dataset: an ordinary run per norm, in which every certificate names its noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from unicr.errors import CertifyError
from unicr.i_opt._search import Curves, IOpt, optimised
from unicr.norms import Norm
from unicr.runs import THIS_INPUT, Input, Job, Manifest, Row, carried_out, going_on
from unicr.smoothing import Certificate, Procedure
from unicr.smoothing.rules import Fixed


def folders_of(out: Path, norms: tuple[Norm, ...]) -> dict[Norm, Path]:
    """Where the run of each norm goes: `out` itself for one norm, a folder in it for several."""
    if len(norms) == 1:
        return {norms[0]: out}
    return {norm: out / f"l{norm.text}" for norm in norms}


def i_opt_run(
    job: Job,
    settings: IOpt,
    out: Path,
    *,
    resume: bool = False,
    on_result: Callable[[Row], None] | None = None,
) -> dict[Norm, Path]:
    """Search and certify every input of the job; the folders of the runs, one per norm.

    Of the job's plan the search takes n0, n and α: its own rule and first noise follow from
    `settings`. The votes of an input under a noise are counted once and serve all norms. Inputs
    that have a result in every norm are not done again with `resume`.
    """
    plan = settings.plan(job.plan.n0, job.plan.n, job.plan.alpha)
    if job.plan.rule not in (Fixed(), plan.rule):
        raise CertifyError(f"I-OPT takes a fixed number of samples, not the rule {job.plan.rule}")
    job = replace(job, plan=plan, noise=settings.grid.noise(settings.grid.centre))
    job.check()
    folders = folders_of(out, job.norms)
    job = going_on(job, next(iter(folders.values())))
    job = replace(job, lattice=None if job.points is None else job.points.text)
    curves = Curves(job.norms, math.prod(job.data.shape), job.searched, job.points)

    def start(one: Input) -> Procedure[tuple[Certificate, ...]]:
        assert one.x is not None
        return optimised(settings, plan, curves.at(one.x))

    manifests = {folder: manifest(job, settings, norm) for norm, folder in folders.items()}
    for run in carried_out(job, manifests, start, resume=resume, on_result=on_result):
        run.close()
    return folders


def manifest(job: Job, settings: IOpt, norm: Norm) -> Manifest:
    """That of an ordinary run, with the search and what its certificates speak of."""
    return replace(job, norms=(norm,)).manifest(scope=THIS_INPUT, i_opt=settings.to_dict())
