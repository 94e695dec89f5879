"""Many procedures at once over one executor: inputs in, what their procedures conclude out.

A procedure's question is cut into chunks of (input, sample range). The votes of a sample depend on
(seed, input, sample) alone, so chunks, workers and their order change nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Any, Generic, TypeVar

import numpy as np

from unicr.classifier import Classifier, load_classifier
from unicr.data import Dataset
from unicr.errors import RunError, UnicrError, one_line
from unicr.extras import torch
from unicr.noise import parse
from unicr.runs._execute import Executor, Lost
from unicr.runs._run import ENVIRONMENT
from unicr.smoothing import (
    Ask,
    Counts,
    Measure,
    Procedure,
    SmoothedClassifier,
    add,
    out_of_memory,
)

Result = TypeVar("Result")
CHUNK = 10_000  # samples; a lost worker costs at most this many


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
    """Votes wanted of one input: a range of its noisy copies, under a noise given as text."""

    index: int
    x: Any
    noise: str | None
    start: int
    n: int
    clean: bool
    measure: Measure


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
        classifier = self.classifier or load_classifier(**(self.arguments or {}))
        if self.digest is not None and classifier.digest != self.digest:
            raise RunError(
                f"{classifier.name} is another model here than where the run was started (hash "
                f"{classifier.digest[:12]}, not {self.digest[:12]})"
            )
        smoothed = SmoothedClassifier(classifier, parse(self.noise), **self.settings)
        return Counter(smoothed).count


class Counter:
    """Answers chunks with votes. A stranger's model may raise anything: told, not raised."""

    def __init__(self, smoothed: SmoothedClassifier) -> None:
        self._smoothed = smoothed
        self._parsed = cache(parse)

    def count(self, chunk: Chunk) -> tuple[Counts | Failed, float]:
        """(votes or the reason why there are none, seconds)."""
        start = time.perf_counter()
        try:
            noise = None if chunk.noise is None else self._parsed(chunk.noise)
            ask = Ask(chunk.n, chunk.start, noise, chunk.clean, chunk.measure)
            x = chunk.x
            if not isinstance(x, torch.Tensor):
                x = torch.from_numpy(np.array(x))
            votes: Counts | Failed = self._smoothed.answer(ask, x, chunk.index)
        except Exception as error:
            votes = Failed(reason_of(error))
        return votes, time.perf_counter() - start


def reason_of(error: BaseException) -> str:
    """An error in one line, marked where another try may go better."""
    causes: list[BaseException] = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    short = out_of_memory(error) or any(isinstance(one, OSError) for one in causes)
    return f"{ENVIRONMENT if short else ''}{one_line(error, 500)}"


@dataclass
class _Talk(Generic[Result]):
    """A procedure under way: which chunks of its question are out, and the votes so far."""

    one: Input
    procedure: Procedure[Result]
    x: Any
    out: set[int] = field(default_factory=set)
    failed: bool = False
    votes: Counts = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    seconds: float = 0.0


class Conversations(Generic[Result]):
    """Runs the procedure of every input; as many at a time as keep the executor busy."""

    def __init__(
        self,
        where: Executor,
        start: Callable[[Input], Procedure[Result]],
        chunk: int = CHUNK,
        on_samples: Callable[[int], None] | None = None,
    ) -> None:
        self._where, self._start, self._chunk = where, start, chunk
        self._on_samples = on_samples
        self._keys = count()
        self._talks: dict[int, _Talk[Result]] = {}
        self._ready: list[tuple[Input, Result | Failed, float]] = []

    def over(self, inputs: Iterable[Input]) -> Iterator[tuple[Input, Result | Failed, float]]:
        """(input, result or failure, seconds of work) for each, as they are ready."""
        waiting = iter(inputs)
        more = True
        while more or self._talks or self._ready:
            yield from self._ready
            self._ready.clear()
            while more and len(self._talks) < self._where.width:
                one = next(waiting, None)
                more = one is not None
                if one is not None:
                    self._open(one)
            if self._talks:
                for key, answer in self._where.finished():
                    lost = isinstance(answer, Lost)
                    gone = Failed(f"{ENVIRONMENT}{answer.reason}") if lost else None
                    self._hear(key, *((gone, 0.0) if gone else answer))

    def _open(self, one: Input) -> None:
        if one.x is None:
            self._ready.append((one, Failed(one.digest), 0.0))
            return
        talk = _Talk(one, self._start(one), self._where.share(one.x))
        self._go_on(talk, None)

    def _go_on(self, talk: _Talk[Result], votes: Counts | None) -> None:
        begin = time.perf_counter()
        try:
            ask = next(talk.procedure) if votes is None else talk.procedure.send(votes)
        except StopIteration as stop:
            talk.seconds += time.perf_counter() - begin
            self._ready.append((talk.one, stop.value, talk.seconds))
            return
        except Exception as error:
            self._ready.append((talk.one, Failed(reason_of(error)), talk.seconds))
            return
        talk.seconds += time.perf_counter() - begin
        noise = None if ask.noise is None else ask.noise.text
        size = self._chunk
        starts = range(ask.start, ask.start + ask.n, size) or [ask.start]
        talk.votes = np.zeros(0, dtype=np.int64)
        for first in starts:
            n = min(size, ask.start + ask.n - first)
            key = next(self._keys)
            self._talks[key] = talk
            talk.out.add(key)
            chunk = Chunk(talk.one.index, talk.x, noise, first, n, ask.clean, ask.measure)
            self._where.submit(key, chunk)

    def _hear(self, key: int, votes: Counts | Failed, seconds: float) -> None:
        talk = self._talks.pop(key)
        talk.out.remove(key)
        talk.seconds += seconds
        if talk.failed:
            return
        if isinstance(votes, Failed):
            talk.failed = True
            for gone in self._where.withdraw(talk.out):
                del self._talks[gone]
            self._ready.append((talk.one, votes, talk.seconds))
            return
        talk.votes = add(talk.votes, votes)
        if self._on_samples is not None:
            self._on_samples(int(votes.sum()))
        if not talk.out:
            self._go_on(talk, talk.votes)
