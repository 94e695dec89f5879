"""Certify a whole dataset: every input once, results stored as they are made, resumable.

The votes of a sample depend on (nonce or seed, input, sample) alone, so workers, batch size and
order change nothing. An input that fails (a model that raises, NaN
scores, a value that is not finite) is recorded with its reason, and the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from unicr.errors import RunError
from unicr.noise.internal import check_parses
from unicr.runs._commit import follow_commitment, read_committed
from unicr.runs._execute import executor
from unicr.runs._job import Job
from unicr.runs._run import ENVIRONMENT, FILE, Row, Run
from unicr.runs._schedule import Failed, Input, InThreads, Scheduler, VoteWork
from unicr.runs._spec import Execution, Spec
from unicr.smoothing import Certificate, Steps, record

Result = TypeVar("Result")
BEGUN = "{folder} already contains a run: use --resume, or another folder"


class Begun(NamedTuple):
    """A run that was begun before: all that decides it, and how many inputs have a result."""

    spec: Spec
    done: int


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

    `resume` continues where a run stopped, and repeats inputs that failed because of the machine.
    `retry_failed` repeats every failed input.
    """
    begun = find_begun(folder, resume=resume or retry_failed)
    job = follow_commitment(job if begun is None else job.resume(begun.spec), folder)
    job.largest  # noqa: B018  the curves are made here, not within the first input's time
    spec = job.spec
    (run,) = certify_into(
        job,
        {folder: spec},
        lambda _: record(spec.plan.procedure.steps(spec.plan, spec.noise, spec.curves)),
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

    Where there are several runs they conclude a certificate for each; `on_result` gets the first.
    """
    with ExitStack() as opened:
        runs = [opened.enter_context(Run(folder, create=True)) for folder in specs]
        begun = [run.folder for run in runs if run.started]
        if begun and not (resume or retry_failed):  # nobody else can begin one from here on
            raise RunError(BEGUN.format(folder=begun[0]))
        todo: set[int] = set()
        for run, spec in zip(runs, specs.values(), strict=True):
            todo.update(open_inputs(run, spec, job, retry_failed=retry_failed))
        for input_, result, seconds in certify_inputs(job, sorted(todo), start, on_samples):
            each = result if isinstance(result, tuple) else (result,) * len(runs)
            parts = zip(runs, each, strict=True)
            rows = [store_result(run, input_, part, seconds) for run, part in parts]
            if on_result is not None:
                on_result(rows[0])
        for run in runs:  # after the last row: a run without a seal is known to be unfinished
            run.set_seal()
        opened.pop_all()
    return runs


def find_begun(folder: Path, *, resume: bool) -> Begun | None:
    """What a folder holds of a run, None if it holds none; RunError unless `resume` is set."""
    if folder.is_file():
        raise RunError(f"{folder} is a file, but a folder is needed")
    if not (folder / FILE).is_file():
        return None
    with Run(folder) as run:
        if not run.started:
            return None
        if not resume:
            raise RunError(BEGUN.format(folder=folder))
        return Begun(run.spec, len(run.done()))


def open_inputs(run: Run, spec: Spec, job: Job, *, retry_failed: bool = False) -> list[int]:
    """The inputs still to do, after the spec of a new run, or its check for an old one."""
    if not run.started:
        run.set_spec(spec, Execution.now(job.workers, ",".join(job.devices)))
        return job.indices
    run.spec.refuse_changes(spec, run.folder)
    if run.spec.max != spec.max:
        run.set_spec(replace(run.spec, max=spec.max, inputs=spec.inputs))
    done = run.done(retry=retry_failed)
    return [i for i in job.indices if i not in done]


def certify_inputs(
    job: Job,
    todo: Iterable[int],
    start: Callable[[Input], Steps[Result]],
    on_samples: Callable[[int], None] | None = None,
) -> Iterator[tuple[Input, Result | Failed, float]]:
    """The steps that `start` gives each input, run where the job says.

    `on_samples` is told how many samples were counted just now.
    """
    alone = not (job.workers or job.ray or len(job.devices) > 1)
    chunk = job.chunk
    if alone and job.classifier.device.type == "cpu":  # short ones show progress, and cost nothing
        chunk = min(chunk, job.spec.batch * job.smoothed.passes_at_once)
    with closing(
        InThreads(job.smoothed)
        if alone
        else executor(_pack_work(job), **job.where, devices=job.devices)
    ) as where:
        scheduler = Scheduler(where, start, chunk=chunk, on_samples=on_samples)
        yield from scheduler.certify(
            read_committed(job.data, index, job.skip, job.limit) for index in todo
        )


def _pack_work(job: Job) -> VoteWork:
    """The work for other processes: the model is loaded there, or goes along."""
    loaded = job.model_arguments is not None
    return VoteWork(
        classifier=None if loaded else job.classifier,
        arguments=job.model_arguments,
        noise=check_parses(job.noise),
        settings=job.spec.smoothing,
        digest=job.classifier.digest if loaded else None,
    )


def store_result(run: Run, input_: Input, result: Certificate | Failed, seconds: float) -> Row:
    """Store the certificate of an input, or the reason why there is none.

    What cannot be written is a failure of the environment, and that is tried once.
    """
    head = (input_.index, input_.label, input_.digest, seconds)
    if isinstance(result, Failed):
        row = Row(*head, None, result.reason)
    else:
        row = Row(*head, replace(result, seed=run.spec.seed))
    try:
        run.add(row)
    except RunError as error:
        row = Row(*head, None, f"{ENVIRONMENT}not stored: {error}")
        run.add(row)
    return row
