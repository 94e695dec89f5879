"""Certify a whole dataset: every input once, results stored as they are made, resumable.

Without workers this process answers the questions of one input after the other. With workers or a
cluster, many procedures go on at once over one executor: each question is cut into chunks of
(input, sample range). The votes of a sample depend on (nonce or seed, input, sample) alone, so
workers, chunks and their order change nothing. An input that fails (a model that raises, NaN
scores, a value that is not finite) is recorded with its reason, and the run goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from unicr.classifier import Classifier, load_classifier
from unicr.data import Dataset
from unicr.errors import RunError, UnicrError, one_line
from unicr.extras import torch
from unicr.noise import parse
from unicr.noise.internal import check_parses
from unicr.runs._commit import follow_commitment
from unicr.runs._execute import Executor, Lost, executor
from unicr.runs._job import CHUNK, Job
from unicr.runs._run import ENVIRONMENT, FILE, Row, Run
from unicr.runs._spec import Spec
from unicr.smoothing import (
    Certificate,
    Counts,
    Request,
    SmoothedClassifier,
    Steps,
    add,
    out_of_memory,
)

Result = TypeVar("Result")


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

    `resume` goes on where a run stopped, and does again what failed by the environment;
    `retry_failed` does again all that failed.
    """
    job = follow_commitment(resume_job(job, folder, resume=resume or retry_failed), folder)
    job.largest  # noqa: B018  the curves are made here, not within the first input's time
    curves, spec = job.curves, job.spec
    (run,) = certify_into(
        job,
        {folder: spec},
        lambda _: spec.steps(curves),
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
    for folder in specs:
        find_begun(folder, resume=resume or retry_failed)
    with ExitStack() as opened:
        runs = [opened.enter_context(Run(folder, create=True)) for folder in specs]
        todo: set[int] = set()
        for run, spec in zip(runs, specs.values(), strict=True):
            todo.update(open_inputs(run, spec, job, retry_failed=retry_failed))
        for one, result, seconds in certify_inputs(job, sorted(todo), start, on_samples):
            each = result if isinstance(result, tuple) else (result,) * len(runs)
            rows = [row_of(one, part, seconds) for part in each]
            for run, row in zip(runs, rows, strict=True):
                write(run, row)
            if on_result is not None:
                on_result(rows[0])
        for run in runs:
            run.set_seal()
        opened.pop_all()
    return runs


def find_begun(folder: Path, *, resume: bool) -> Begun | None:
    """What a folder holds of a run, None where it holds none; RunError unless `resume` is set."""
    if not (folder / FILE).is_file():
        return None
    with Run(folder) as run:
        if not run.started:
            return None
        if not resume:
            raise RunError(f"{folder} already holds a run: use --resume, or another folder")
        return Begun(run.spec, len(run.done()))


def resume_job(job: Job, folder: Path, *, resume: bool = True) -> Job:
    """The job, with the noise, lattice and batches of the run in `folder` if there is one."""
    begun = find_begun(folder, resume=resume)
    return job if begun is None else job.resume(begun.spec)


def open_inputs(run: Run, spec: Spec, job: Job, *, retry_failed: bool = False) -> list[int]:
    """The inputs still to do, after the spec of a new run, or its check for an old one."""
    if not run.started:
        run.set_spec(spec, job.execution)
        return job.indices
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
    inputs = (read_input(job.data, index) for index in todo)
    if job.workers or job.ray:
        with executor(_sent(job), **job.where) as where:
            scheduler = Scheduler(where, start, chunk=job.chunk, on_samples=on_samples)
            yield from scheduler.certify(inputs)
        return
    # Parts of one pass or more, so that progress is told while a large n is sampled.
    chunk = min(job.chunk, max(job.spec.batch, 1000))
    for one in inputs:
        begin = time.perf_counter()
        try:
            result: Result | Failed = answer_here(job.smoothed, one, start, chunk, on_samples)
        except Exception as error:  # a stranger's model may raise anything: told, not raised
            result = Failed(reason_of(error))
        yield one, result, time.perf_counter() - begin


def answer_here(
    smoothed: SmoothedClassifier,
    one: Input,
    start: Callable[[Input], Steps[Result]],
    chunk: int,
    on_samples: Callable[[int], None] | None,
) -> Result | Failed:
    """What the steps of one input conclude, its questions answered in this process."""
    if one.x is None:
        return Failed(one.digest)
    steps, votes = start(one), None
    while True:
        try:
            question = next(steps) if votes is None else steps.send(votes)
        except StopIteration as stop:
            result: Result = stop.value
            return result
        votes = np.zeros(0, dtype=np.int64)
        for part in split(question, chunk):
            counts = smoothed.answer(part, one.x, one.index)
            votes = add(votes, counts)
            if on_samples is not None:
                on_samples(int(counts.sum()))


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


@dataclass(frozen=True)
class Input:
    """One input with its number, label and hash; `x` is None where it could not be read."""

    index: int
    x: torch.Tensor | None
    label: int
    digest: str


def read_input(data: Dataset, index: int) -> Input:
    """Input number `index`, or the reason why it cannot be read in place of its hash."""
    try:
        x, label = data[index]
        return Input(index, x, label, data.digest_of(index))
    except UnicrError as error:
        return Input(index, None, -1, f"unreadable: {error}")
    except (OSError, MemoryError) as error:
        return Input(index, None, -1, f"{ENVIRONMENT}unreadable: {error}")


@dataclass(frozen=True)
class Chunk:
    """Votes wanted of one input: a question, or a part of its samples."""

    index: int
    x: Any
    question: Request


@dataclass(frozen=True)
class Failed:
    """Why there is no result."""

    reason: str


@dataclass(frozen=True)
class VoteWork:
    """Holds the model and counts votes. The model is loaded from its arguments, or came along.

    Where it is loaded it must have the hash `digest`: all votes of a run are of one model.
    `settings` are those of a `SmoothedClassifier`: where its noise comes from.
    """

    classifier: Classifier | None
    arguments: dict[str, Any] | None
    noise: str
    settings: dict[str, Any]
    digest: str | None = None

    def open(self) -> Callable[[Chunk], tuple[Counts | Failed, float]]:
        """Load the model; the function from a chunk to (votes, or why there are none; seconds)."""
        classifier = self.classifier or load_classifier(**(self.arguments or {}))
        if self.digest is not None and classifier.digest != self.digest:
            raise RunError(
                f"{classifier.name} is another model here than where the run was started (hash "
                f"{classifier.digest[:12]}, not {self.digest[:12]})"
            )
        smoothed = SmoothedClassifier(classifier, parse(self.noise), **self.settings)

        def count(chunk: Chunk) -> tuple[Counts | Failed, float]:
            start = time.perf_counter()
            try:
                x = chunk.x
                if not isinstance(x, torch.Tensor):
                    x = torch.from_numpy(np.array(x))
                votes: Counts | Failed = smoothed.answer(chunk.question, x, chunk.index)
            except Exception as error:  # a stranger's model may raise anything: told, not raised
                votes = Failed(reason_of(error))
            return votes, time.perf_counter() - start

        return count


def split(question: Request, size: int) -> Iterator[Request]:
    """The question in parts of at most `size` samples; one of no samples is one part."""
    end = question.start + question.n
    for first in range(question.start, end, size) or [question.start]:
        yield replace(question, start=first, n=min(size, end - first))


def reason_of(error: BaseException) -> str:
    """An error in one line, marked where another try may go better."""
    causes: list[BaseException] = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    short = out_of_memory(error) or any(isinstance(one, OSError) for one in causes)
    return f"{ENVIRONMENT if short else ''}{one_line(error, 500)}"


@dataclass
class _Pending(Generic[Result]):
    """An input under way: which chunks of its question are out, and the votes so far."""

    one: Input
    steps: Steps[Result]
    x: Any
    out: set[int] = field(default_factory=set)
    failed: bool = False
    votes: Counts = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    seconds: float = 0.0


class Scheduler(Generic[Result]):
    """Runs the steps of every input; as many at a time as keep the executor busy."""

    def __init__(
        self,
        where: Executor,
        start: Callable[[Input], Steps[Result]],
        chunk: int = CHUNK,
        on_samples: Callable[[int], None] | None = None,
    ) -> None:
        self._where, self._start, self._chunk = where, start, chunk
        self._on_samples = on_samples
        self._keys = count()
        self._pending: dict[int, _Pending[Result]] = {}
        self._ready: list[tuple[Input, Result | Failed, float]] = []

    def certify(self, inputs: Iterable[Input]) -> Iterator[tuple[Input, Result | Failed, float]]:
        """(input, result or failure, seconds of work) for each, as they are ready."""
        waiting = iter(inputs)
        more = True
        while more or self._pending or self._ready:
            yield from self._ready
            self._ready.clear()
            while more and len(self._pending) < self._where.width:
                one = next(waiting, None)
                more = one is not None
                if one is not None:
                    self._open(one)
            if self._pending:
                for key, answer in self._where.finished():
                    lost = isinstance(answer, Lost)
                    gone = Failed(f"{ENVIRONMENT}{answer.reason}") if lost else None
                    self._receive(key, *((gone, 0.0) if gone else answer))

    def _open(self, one: Input) -> None:
        if one.x is None:
            self._ready.append((one, Failed(one.digest), 0.0))
            return
        self._continue(_Pending(one, self._start(one), self._where.share(one.x)), None)

    def _continue(self, pending: _Pending[Result], votes: Counts | None) -> None:
        """Send the votes, and submit the next question in chunks; or take the result."""
        begin = time.perf_counter()
        try:
            question = next(pending.steps) if votes is None else pending.steps.send(votes)
        except StopIteration as stop:
            pending.seconds += time.perf_counter() - begin
            self._ready.append((pending.one, stop.value, pending.seconds))
            return
        except Exception as error:
            self._ready.append((pending.one, Failed(reason_of(error)), pending.seconds))
            return
        pending.seconds += time.perf_counter() - begin
        pending.votes = np.zeros(0, dtype=np.int64)
        for part in split(question, self._chunk):
            key = next(self._keys)
            self._pending[key] = pending
            pending.out.add(key)
            self._where.submit(key, Chunk(pending.one.index, pending.x, part))

    def _receive(self, key: int, votes: Counts | Failed, seconds: float) -> None:
        pending = self._pending.pop(key)
        pending.out.remove(key)
        pending.seconds += seconds
        if pending.failed:
            return
        if isinstance(votes, Failed):
            pending.failed = True
            for gone in self._where.withdraw(pending.out):
                del self._pending[gone]
            self._ready.append((pending.one, votes, pending.seconds))
            return
        pending.votes = add(pending.votes, votes)
        if self._on_samples is not None:
            self._on_samples(int(votes.sum()))
        if not pending.out:
            self._continue(pending, pending.votes)
