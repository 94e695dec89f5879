"""Certify a whole dataset: every input once, results stored as they are made, resumable.

`certify_run` opens the run and stores rows, `Scheduler` runs the procedures of many inputs at once
over one executor. It cuts each question into chunks of (input, sample range). The votes of a sample
depend on (nonce or seed, input, sample) alone, so chunks, workers, batch size and order change
nothing. An input that fails (a model that raises, scores that are NaN, a value that is not finite)
is recorded with its reason, and the run goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from unicr.classifier import Classifier, load_classifier
from unicr.errors import RunError, one_line
from unicr.extras import torch
from unicr.noise import parse
from unicr.noise.internal import check_parses
from unicr.progress import tell
from unicr.runs._commit import Input, follow_commitment, read_committed
from unicr.runs._execute import Executor, Lost, executor
from unicr.runs._job import CHUNK, Job
from unicr.runs._run import ENVIRONMENT, FILE, Row, Run
from unicr.runs._spec import Execution, Spec
from unicr.smoothing import (
    Certificate,
    Counts,
    Request,
    Steps,
    VoteCounter,
    add,
    out_of_memory,
    record,
)

Result = TypeVar("Result")
BEGUN = "{folder} already contains a run: use --resume, or another folder"


def certify_run(
    job: Job,
    folder: Path,
    *,
    resume: bool = False,
    retry_failed: bool = False,
    on_result: Callable[[Row], None] | None = None,
) -> Run:
    """Run the job into `folder`; returns the open run, sealed. Refuses what can certify nothing.

    `resume` continues where a run stopped, and repeats inputs that failed because of the machine.
    `retry_failed` repeats every failed input.
    """
    begun = find_begun(folder, resume=resume or retry_failed)
    job = follow_commitment(job if begun is None else job.resume(begun), folder)
    job.largest  # noqa: B018  the curves are made here, not within the first input's time
    spec = job.spec
    (run,) = certify_into(
        job,
        {folder: spec},
        lambda _: record(spec.plan.procedure.steps(spec.plan, spec.noise, spec.curves)),
        resume=resume,
        retry_failed=retry_failed,
        on_result=on_result,
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
        progress = Progress(job, before=len(job.indices) - len(todo))
        for input_, result, seconds in certify_inputs(job, sorted(todo), start, progress.count):
            each = result if isinstance(result, tuple) else (result,) * len(runs)
            parts = zip(runs, each, strict=True)
            rows = [store_result(run, input_, part, seconds) for run, part in parts]
            progress.add(rows[0])
            if on_result is not None:
                on_result(rows[0])
        for run in runs:  # after the last row: a run without a seal is known to be unfinished
            run.set_seal()
        opened.pop_all()
    return runs


def find_begun(folder: Path, *, resume: bool) -> Spec | None:
    """The spec of the run that a folder holds, if any: RunError then unless `resume` is set."""
    if folder.is_file():
        raise RunError(f"{folder} is a file, but a folder is needed")
    if not (folder / FILE).is_file():
        return None
    with Run(folder) as run:
        if not run.started:
            return None
        if not resume:
            raise RunError(BEGUN.format(folder=folder))
        return run.spec


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
    on_samples: Callable[[int], None] = lambda _: None,
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


class Progress:
    """Tells how many inputs of a job have a result, and how many of those are certified.

    `before` inputs were done when an earlier run was interrupted.
    """

    def __init__(self, job: Job, before: int) -> None:
        self._inputs, self._samples = len(job.indices), job.plan.n0 + job.plan.n
        self._before = before
        self._done = self._certified = self._labelled = self._correct = self._failed = 0
        self._under_way = 0.0  # inputs, by the share of their samples that is counted
        self._text = "certifying"

    def count(self, samples: int) -> None:
        """Tell that so many samples more were counted."""
        self._under_way = max(0.0, self._under_way + samples / self._samples)
        # a rule may stop early, and a procedure may take more: only `add` knows what is done
        done = self._before + self._done + min(self._under_way, 0.99)
        tell("certifying", min(done, self._inputs), self._inputs, self._text)

    def add(self, row: Row) -> None:
        """Tell that an input has a result."""
        self._done += 1
        self._certified += row.status == "certified"
        self._labelled += row.label >= 0
        self._correct += row.correct
        self._failed += row.status == "failed"
        if self._labelled:
            self._text = f"certified accuracy so far {self._correct / self._done:.1%}"
        else:
            self._text = f"certified so far {self._certified / self._done:.1%}"
        if self._failed:
            self._text += f", {self._failed} failed"
        taken = 0 if row.certificate is None else row.certificate.n0 + row.certificate.n
        self.count(-taken)


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
    `settings` are those of a `VoteCounter`: where its noise comes from.
    """

    classifier: Classifier | None
    arguments: dict[str, Any] | None
    noise: str
    settings: dict[str, Any]
    digest: str | None = None

    def on(self, device: str) -> VoteWork:
        """The same with the model on a device."""
        return replace(self, arguments={**(self.arguments or {}), "device": device})

    def open(self) -> Callable[[Chunk], tuple[Counts | Failed, float]]:
        classifier = self.classifier or load_classifier(**(self.arguments or {}))
        if self.digest is not None and classifier.digest != self.digest:
            raise RunError(
                f"{classifier.name} is another model on this machine than where the run was "
                f"started (hash {classifier.digest[:12]}, not {self.digest[:12]})"
            )
        smoothed = VoteCounter(classifier, parse(self.noise), **self.settings)
        return lambda chunk: count_chunks(smoothed, [chunk])[0]


def count_chunks(
    smoothed: VoteCounter, chunks: Sequence[Chunk]
) -> list[tuple[Counts | Failed, float]]:
    """(votes or the reason why there are none, seconds) of several chunks, counted side by side.

    A stranger's model may raise anything: told, not raised. Seconds are shared out by samples.
    """
    start = time.perf_counter()
    asked = []
    for chunk in chunks:
        # A cluster shares an input as an array, or as what numpy makes one of; it is read-only.
        own = isinstance(chunk.x, torch.Tensor)
        x = chunk.x if own else torch.from_numpy(np.array(chunk.x))
        asked.append((chunk.question, x, chunk.index))
    answers = smoothed.answer_many(asked)
    each = (time.perf_counter() - start) / max(1, sum(chunk.question.n for chunk in chunks))
    return [
        (
            Failed(reason_of(answer)) if isinstance(answer, Exception) else answer,
            each * chunk.question.n,
        )
        for chunk, answer in zip(chunks, answers, strict=True)
    ]


class InThreads(Executor):
    """Counts in this process, as many chunks at once as keep all its threads busy."""

    def __init__(self, smoothed: VoteCounter) -> None:
        super().__init__()
        self._smoothed = smoothed
        self.width = 2 * smoothed.passes_at_once

    def finished(self) -> list[tuple[int, Any]]:
        taken, passes = [self._queue.popleft()], 0
        while self._queue and passes < self._smoothed.passes_at_once:
            passes += self._smoothed.count_passes(taken[-1].payload.question.n)
            taken.append(self._queue.popleft())
        results = count_chunks(self._smoothed, [attempt.payload for attempt in taken])
        return [(a.key, result) for a, result in zip(taken, results, strict=True)]


def reason_of(error: BaseException) -> str:
    """An error in one line, marked where another try may go better."""
    causes: list[BaseException] = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    short = out_of_memory(error) or any(isinstance(cause, OSError) for cause in causes)
    return f"{ENVIRONMENT if short else ''}{one_line(error, 500)}"


@dataclass
class _Pending(Generic[Result]):
    """An input under way: which chunks of its question are out, and the votes so far."""

    input_: Input
    steps: Steps[Result]
    x: Any
    out: set[int] = field(default_factory=set)
    failed: bool = False
    votes: Counts = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    seconds: float = 0.0


@dataclass(eq=False)
class Scheduler(Generic[Result]):
    """Runs the steps of every input; as many at a time as keep the executor busy."""

    where: Executor
    start: Callable[[Input], Steps[Result]]
    chunk: int = CHUNK
    on_samples: Callable[[int], None] = lambda _: None
    _keys: Iterator[int] = field(default_factory=count, init=False)
    _pending: dict[int, _Pending[Result]] = field(default_factory=dict, init=False)
    _ready: list[tuple[Input, Result | Failed, float]] = field(default_factory=list, init=False)

    def certify(self, inputs: Iterable[Input]) -> Iterator[tuple[Input, Result | Failed, float]]:
        """(input, result or failure, seconds of work) for each, as they are ready."""
        waiting = iter(inputs)
        more = True
        while more or self._pending or self._ready:
            yield from self._ready
            self._ready.clear()
            while more and len(self._pending) < self.where.width:
                input_ = next(waiting, None)
                more = input_ is not None
                if input_ is None:
                    break
                if input_.x is None:  # it could not be read
                    self._ready.append((input_, Failed(input_.digest), 0.0))
                    continue
                shared = self.where.share(input_.x)
                self._continue(_Pending(input_, self.start(input_), shared), None)
            if self._pending:
                for key, answer in self.where.finished():
                    lost = isinstance(answer, Lost)
                    failure = Failed(f"{ENVIRONMENT}{answer.reason}") if lost else None
                    self._receive(key, *((failure, 0.0) if failure else answer))

    def _continue(self, pending: _Pending[Result], votes: Counts | None) -> None:
        """Send the votes, and submit the next question in chunks; or take the result."""
        begin = time.perf_counter()
        try:
            question = next(pending.steps) if votes is None else pending.steps.send(votes)
        except StopIteration as stop:
            pending.seconds += time.perf_counter() - begin
            self._ready.append((pending.input_, stop.value, pending.seconds))
            return
        except Exception as error:
            self._ready.append((pending.input_, Failed(reason_of(error)), pending.seconds))
            return
        pending.seconds += time.perf_counter() - begin
        # Chunks have disjoint samples, and a sample's vote is a function of its number: the sum is
        # the answer to the whole question, in whatever order and by whomever they are counted.
        size, end = self.chunk, question.start + question.n
        pending.votes = np.zeros(0, dtype=np.int64)
        for first in range(question.start, end, size) or [question.start]:
            part = replace(question, start=first, n=min(size, end - first))
            key = next(self._keys)
            self._pending[key] = pending
            pending.out.add(key)
            self.where.submit(key, Chunk(pending.input_.index, pending.x, part))

    def _receive(self, key: int, votes: Counts | Failed, seconds: float) -> None:
        pending = self._pending.pop(key)
        pending.out.remove(key)
        pending.seconds += seconds
        if pending.failed:
            return
        if isinstance(votes, Failed):
            pending.failed = True  # chunks that are out already come back, and are not counted
            for withdrawn in self.where.withdraw(pending.out):
                del self._pending[withdrawn]
            self._ready.append((pending.input_, votes, pending.seconds))
            return
        pending.votes = add(pending.votes, votes)
        self.on_samples(int(votes.sum()))
        if not pending.out:
            self._continue(pending, pending.votes)
