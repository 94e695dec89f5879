"""Certify a whole dataset: every input once, results stored as they are made, resumable.

The votes of an input depend on (seed, input number) alone, so workers, batch size and order change
nothing. An input that fails (a model that raises, NaN scores, a value that is not finite) is
recorded with its reason, and the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from unicr.errors import RunError
from unicr.noise.internal import check_parses
from unicr.runs._commit import follow_commitment
from unicr.runs._execute import executor
from unicr.runs._job import Job
from unicr.runs._run import ENVIRONMENT, Row, Run
from unicr.runs._schedule import Failed, Input, InThreads, Scheduler, VoteWork, read_input
from unicr.runs._spec import Spec
from unicr.smoothing import Certificate, Steps

Result = TypeVar("Result")


def certify_run(
    job: Job,
    folder: Path,
    *,
    resume: bool = False,
    retry_failed: bool = False,
    on_result: Callable[[Row], None] | None = None,
    on_samples: Callable[[int], None] | None = None,
) -> Run:
    """Run the job into `folder`; returns the open run, sealed. Refuses what can certify nothing.

    `resume` goes on where a run stopped, and does again what failed by the environment;
    `retry_failed` does again all that failed.
    """
    job = follow_commitment(resume_job(job, folder), folder)
    job.largest  # noqa: B018  the curves are made here, not within the first input's time
    curves, spec = job.curves, job.spec

    def start(one: Input) -> Steps[Certificate]:
        assert one.x is not None
        return spec.steps(curves)

    (run,) = certify_into(
        job,
        {folder: spec},
        start,
        resume=resume,
        retry_failed=retry_failed,
        on_result=on_result,
        on_samples=on_samples,
    )
    return run


def certify_into(
    job: Job,
    specs: Mapping[Path, Spec],
    start: Callable[[Input], Steps[Certificate | tuple[Certificate, ...]]],
    *,
    resume: bool = False,
    retry_failed: bool = False,
    on_result: Callable[[Row], None] | None = None,
    on_samples: Callable[[int], None] | None = None,
) -> list[Run]:
    """The steps that `start` gives each input of the job, into a run in each folder, sealed.

    Where there are several runs they conclude a certificate for each; `on_result` hears the first.
    """
    with ExitStack() as opened:
        runs = [opened.enter_context(Run(folder, create=True)) for folder in specs]
        todo: set[int] = set()
        for run, spec in zip(runs, specs.values(), strict=True):
            todo.update(begin(run, spec, job, resume=resume, retry_failed=retry_failed))
        for one, found, seconds in certify_inputs(job, sorted(todo), start, on_samples):
            each = found if isinstance(found, tuple) else (found,) * len(runs)
            rows = [row_of(one, result, seconds) for result in each]
            for run, row in zip(runs, rows, strict=True):
                write(run, row)
            if on_result is not None:
                on_result(rows[0])
        for run in runs:
            run.set_seal()
        opened.pop_all()
    return runs


def resume_job(job: Job, folder: Path) -> Job:
    """The job, with the noise, lattice and batches of the run in `folder` if there is one."""
    try:
        with Run(folder) as run:
            return job.resume(run.spec) if run.started else job
    except RunError:  # there is none, or `begin` will say what is wrong with it
        return job


def begin(
    run: Run, spec: Spec, job: Job, *, resume: bool = False, retry_failed: bool = False
) -> list[int]:
    """The inputs still to do, after the spec of a new run, or its check for an old one."""
    if not run.started:
        run.set_spec(spec, job.execution)
        return job.indices
    if not (resume or retry_failed):
        raise RunError(f"{run.folder} already holds a run: use --resume, or another folder")
    run.spec.refuse_changes(spec, run.folder)
    if run.spec.max != spec.max:
        run.set_spec(replace(run.spec, max=spec.max, inputs=spec.inputs))
    done = run.done(retry=retry_failed)
    return [i for i in job.indices if i not in done]


def write(run: Run, row: Row) -> None:
    """Store a result; where that fails, try once more as a failed row before giving up."""
    try:
        run.add(row)
    except RunError as error:
        reason = f"{ENVIRONMENT}not stored: {error}"
        run.add(Row(row.idx, row.label, row.input_hash, row.seconds, None, reason))


def certify_inputs(
    job: Job,
    todo: Iterable[int],
    start: Callable[[Input], Steps[Result]],
    on_samples: Callable[[int], None] | None = None,
) -> Iterator[tuple[Input, Result | Failed, float]]:
    """The steps that `start` gives each input, run where the job says.

    `on_samples` hears how many samples were counted just now.
    """
    several = len(job.devices) > 1
    alone = job.workers == 0 and job.ray is None and not several
    chunk = job.chunk
    if alone and job.classifier.device.type == "cpu":  # short ones show progress, and cost nothing
        chunk = min(chunk, job.spec.batch * job.smoothed.passes_at_once)
    with (
        InThreads(job.smoothed)
        if alone
        else executor(
            _sent(job), workers=job.workers, ray=job.ray, gpus=job.gpus, devices=job.devices
        )
    ) as where:
        scheduler = Scheduler(where, start, chunk=chunk, on_samples=on_samples)
        yield from scheduler.certify(read_input(job.data, index) for index in todo)


def _sent(job: Job) -> VoteWork:
    """The work for other processes: the model is loaded there, or goes along."""
    loaded = job.model_arguments is not None
    return VoteWork(
        classifier=None if loaded else job.classifier,
        arguments=job.model_arguments,
        noise=check_parses(job.noise),
        settings=job.spec.smoothing,
        digest=job.classifier.digest if loaded else None,
    )


def row_of(one: Input, result: Certificate | Failed, seconds: float) -> Row:
    """What is stored of an input: its certificate, or the reason why there is none."""
    if isinstance(result, Failed):
        return Row(one.index, one.label, one.digest, seconds, None, result.reason)
    return Row(one.index, one.label, one.digest, seconds, result, None)
