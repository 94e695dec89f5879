"""Many procedures at once over one executor: inputs in, what their procedures conclude out.

A procedure's question is cut into chunks of (input, sample range). The votes of a sample depend on
(seed, input, sample) alone, so chunks, workers and their order change nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Generic, TypeVar

import numpy as np

from unicr.classifier import Classifier, load_classifier
from unicr.data import Dataset
from unicr.data.internal import digest_input
from unicr.errors import RunError, UnicrError, one_line
from unicr.extras import torch
from unicr.noise import parse
from unicr.runs._execute import Executor, Lost
from unicr.runs._run import ENVIRONMENT
from unicr.smoothing import (
    Counts,
    Request,
    Steps,
    VoteCounter,
    add,
    out_of_memory,
)

Result = TypeVar("Result")
CHUNK = 10_000  # samples; a lost worker costs at most this many


@dataclass(frozen=True)
class Input:
    """One input with its number, label and hash; `x` is None if it could not be read."""

    index: int
    x: torch.Tensor | None
    label: int
    digest: str


def read_input(data: Dataset, index: int) -> Input:
    """Input number `index`, or the reason why it cannot be read in place of its hash.

    It is read once: the hash is of the very values that are certified, whatever a dataset with
    transforms of its own would give the next time.
    """
    try:
        x, label = data[index]
        return Input(index, x, label, digest_input(x.numpy()))
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
                input_ = next(waiting, None)
                more = input_ is not None
                if input_ is None:
                    break
                if input_.x is None:  # it could not be read
                    self._ready.append((input_, Failed(input_.digest), 0.0))
                    continue
                shared = self._where.share(input_.x)
                self._continue(_Pending(input_, self._start(input_), shared), None)
            if self._pending:
                for key, answer in self._where.finished():
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
        size, end = self._chunk, question.start + question.n
        pending.votes = np.zeros(0, dtype=np.int64)
        for first in range(question.start, end, size) or [question.start]:
            part = replace(question, start=first, n=min(size, end - first))
            key = next(self._keys)
            self._pending[key] = pending
            pending.out.add(key)
            self._where.submit(key, Chunk(pending.input_.index, pending.x, part))

    def _receive(self, key: int, votes: Counts | Failed, seconds: float) -> None:
        pending = self._pending.pop(key)
        pending.out.remove(key)
        pending.seconds += seconds
        if pending.failed:
            return
        if isinstance(votes, Failed):
            pending.failed = True  # chunks that are out already come back, and are not counted
            for withdrawn in self._where.withdraw(pending.out):
                del self._pending[withdrawn]
            self._ready.append((pending.input_, votes, pending.seconds))
            return
        pending.votes = add(pending.votes, votes)
        if self._on_samples is not None:
            self._on_samples(int(votes.sum()))
        if not pending.out:
            self._continue(pending, pending.votes)
