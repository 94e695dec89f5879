"""I-OPT over a dataset: an ordinary run per norm, in which every certificate names its noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from unicr.norms import Norm
from unicr.runs import (
    Input,
    Job,
    Row,
    certify_into,
    copy_commitment,
    find_begun,
    follow_commitment,
    write_commitment,
)
from unicr.smoothing import Certificate, Steps, record
from unicr.smoothing.procedures import IOpt, share_answers


def folders_of(out: Path, norms: tuple[Norm, ...]) -> dict[Norm, Path]:
    """Where the run of each norm goes: `out` itself for one norm, a folder in it for several."""
    if len(norms) == 1:
        return {norms[0]: out}
    return {norm: out / f"l{norm.text}" for norm in norms}


def _search_job(job: Job, settings: IOpt) -> Job:
    """The job with the plan of the search and the noise that it begins with."""
    first = settings.grid.noise(settings.grid.centre)
    return replace(job, plan=settings.fit(job.plan), noise=first)


def commit_i_opt(job: Job, settings: IOpt, out: Path) -> str:
    """Write what decides a search into `out` before its nonce is known, and return the commitment.

    `i_opt_run` into the same folder then does this search alone, under the nonce of its job.
    """
    return write_commitment(_search_job(job, settings), out)


def i_opt_run(
    job: Job,
    settings: IOpt,
    out: Path,
    *,
    resume: bool = False,
    on_result: Callable[[Row], None] | None = None,
) -> dict[Norm, Path]:
    """Search a noise for every input of the job and certify the input with it.

    The search takes n0, n and α from the job's plan; its own rule and first noise follow from
    `settings`. The votes of an input under a noise are counted once and serve all norms.

    Parameters
    ----------
    job
        Model, data, norms and plan.
    settings
        The grid of noises, and how it is searched.
    out
        The folder that gets a run for each norm.
    resume
        Whether to continue a search in `out`: inputs that have a result in every norm are skipped.
    on_result, on_samples
        Called after every row, and with every number of samples drawn.

    Returns
    -------
    dict
        The folders of the runs by norm.
    """
    job = _search_job(job, settings)
    folders = folders_of(out, job.norms)
    begun = find_begun(next(iter(folders.values())), resume=resume)
    job = follow_commitment(job if begun is None else job.resume(begun), out)
    job.largest  # noqa: B018  a plan that can certify nothing is refused, and curves are made
    points = None if job.points is None else job.points.text
    spec = job.spec
    job = replace(job, lattice=points, batch=spec.batch, channels_last=spec.channels_last)
    each = {norm: replace(job, norms=(norm,), all_norms=job.norms) for norm in job.norms}

    def start(item: Input) -> Steps[tuple[Certificate, ...]]:
        assert item.x is not None
        several = [
            spec.plan.procedure.steps(spec.plan, spec.noise, spec.curves) for spec in specs.values()
        ]
        return share_answers([record(steps) for steps in several])

    specs = {folder: each[norm].spec for norm, folder in folders.items()}
    for folder in folders.values():
        copy_commitment(out, folder)
    for run in certify_into(job, specs, start, resume=resume, on_result=on_result):
        run.close()
    return folders
