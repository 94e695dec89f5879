"""Questions for counts, their answers, and the transcript of both that a certificate keeps.

A procedure (`Procedure.steps`) is a generator: it yields a `Request`, is sent the counts that
answer it, and returns a certificate. Whoever holds a model answers by sampling: this process, a
pool of processes, a cluster. Whoever holds a transcript answers from it: `recompute` runs the very
same steps without a model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from unicr.classifier import Classifier
from unicr.errors import CertifyError
from unicr.extras import torch
from unicr.noise import Lattice, Noise, parse
from unicr.registry import Registered
from unicr.values import LARGEST

if TYPE_CHECKING:
    from unicr.smoothing._certificate import Certificate

Counts = NDArray[np.int64]
Result = TypeVar("Result")
Kind = TypeVar("Kind", bound="Certificate")
# What the answer to a question is for. Samples that choose what to claim bound nothing.
CHOOSE = "choose"
BOUND = "bound"  # of the probability of the claim
SUPPORT = "support"  # of another probability that the claim rests on
PURPOSES = (CHOOSE, BOUND, SUPPORT)


class Measure(Registered, ABC):
    """Subclasses are frozen dataclasses.

    Every copy has one vote, so that n copies have n votes in all: that is checked of every answer.
    `noisy` is False for what is counted of the input itself.
    """

    kind = "measure"
    noisy: ClassVar[bool] = True

    @abstractmethod
    def labels(self, model: Classifier, batch: torch.Tensor) -> torch.Tensor:
        """What each copy votes for: whole numbers from 0 on, on the device of the batch.

        A copy's vote must not depend on the other copies of the batch.
        """

    def size(self, model: Classifier, classes: int | None) -> int | None:
        """How many things can be voted for; None if the votes themselves tell it."""
        return model.num_classes if classes is None else classes

    def copies(
        self, noise: Noise, lattice: Lattice | None, x: torch.Tensor, key: bytes
    ) -> Callable[[torch.Tensor, int], object] | None:
        """What fills a batch with copies from a number on, None if the noise is sampled."""
        return None


def at(counts: Counts, index: int) -> int:
    """One count; 0 if the counts do not reach that far."""
    return int(counts[index]) if index < len(counts) else 0


def add(a: Counts, b: Counts) -> Counts:
    """Sum of two counts, of which one may be longer."""
    total = np.zeros(max(len(a), len(b)), dtype=np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total


@dataclass(frozen=True)
class ClassVotes(Measure):
    """Every noisy copy votes for the class that f gives it."""

    name = "classes"

    def labels(self, model: Classifier, batch: torch.Tensor) -> torch.Tensor:
        """The classes of the copies."""
        return model.predict_unchecked(batch)


@dataclass(frozen=True)
class CleanVote(ClassVotes):
    """The class that f gives the input itself, without noise: one vote."""

    name = "clean"
    noisy = False


CLASSES = ClassVotes()


@dataclass(frozen=True)
class Request:
    """Counts that are wanted: those of the noisy copies number start … start + n − 1.

    `noise` is None for the noise that the smoothed classifier has; `counted` says what is counted
    of a copy; `purpose` is one of PURPOSES.
    """

    n: int
    start: int
    noise: Noise | None = None
    counted: Measure = CLASSES
    purpose: str = BOUND

    def __reduce__(self) -> tuple[Any, ...]:
        # A noise travels to another process as its text: tables and functions do not.
        text = None if self.noise is None else self.noise.text
        return _receive, (self.n, self.start, text, self.counted, self.purpose)


def _receive(n: int, start: int, noise: str | None, counted: Measure, purpose: str) -> Request:
    return Request(n, start, None if noise is None else _parse_once(noise), counted, purpose)


@lru_cache(maxsize=256)
def _parse_once(text: str) -> Noise:
    return parse(text)


Steps = Generator[Request, Counts, Result]


@dataclass(frozen=True)
class Exchange:
    """A question in plain values, and its answer."""

    n: int
    start: int
    noise: str | None
    counted: str
    purpose: str
    counts: tuple[int, ...]

    @classmethod
    def of(cls, question: Request, counts: Iterable[int]) -> Exchange:
        """What is kept of a question that was answered."""
        noise = None if question.noise is None else question.noise.text
        words = (question.counted.text, question.purpose)
        return cls(question.n, question.start, noise, *words, tuple(int(c) for c in counts))

    @property
    def words(self) -> str:
        """The question in words, for messages."""
        noise = "" if self.noise is None else f" under {self.noise}"
        last = self.start + self.n - 1
        return f"{self.counted} of samples {self.start} to {last}{noise} to {self.purpose}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        noise = {} if self.noise is None else {"noise": self.noise}
        asked = {"n": self.n, "start": self.start, **noise, "counted": self.counted}
        return {**asked, "purpose": self.purpose, "counts": list(self.counts)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Exchange:
        """The inverse of `to_dict`; ValueError if it could not have been written."""
        n, start, counts = values["n"], values["start"], values["counts"]
        texts = (values["counted"], values["purpose"], values.get("noise", ""))
        whole = _is_number(n) and _is_number(start)
        if not whole or not all(type(text) is str for text in texts):
            raise ValueError(f"{values!r} is no question")
        if type(counts) is not list or not all(map(_is_number, counts)):
            raise ValueError(f"{counts!r} are not counts")
        if set(values) - {"n", "start", "noise", "counted", "purpose", "counts"}:
            raise ValueError(f"{values!r} has more than a question and its answer")
        return cls(n, start, values.get("noise"), *texts[:2], tuple(counts))


def _is_number(value: Any) -> bool:
    """Whether a stored value is a number of samples."""
    return type(value) is int and 0 <= value <= LARGEST


@dataclass(frozen=True)
class Transcript:
    """Every question that a procedure asked for one input, in order, with its answer."""

    exchanges: tuple[Exchange, ...] = ()

    def __iter__(self) -> Iterator[Exchange]:
        return iter(self.exchanges)

    def __len__(self) -> int:
        return len(self.exchanges)

    def counts(
        self, purpose: str, noise: str | None, counted: str | None = None
    ) -> tuple[int, ...]:
        """The sum of all answers for one purpose under one noise (of one kind, if said)."""
        total: Counts = np.zeros(0, dtype=np.int64)
        for exchange in self.exchanges:
            asked = (exchange.purpose, exchange.noise)
            if asked == (purpose, noise) and counted in (None, exchange.counted):
                total = add(total, np.asarray(exchange.counts, dtype=np.int64))
        return tuple(total.tolist())

    def to_list(self) -> list[dict[str, Any]]:
        """Plain values."""
        return [exchange.to_dict() for exchange in self.exchanges]

    @classmethod
    def from_list(cls, values: Any) -> Transcript:
        """The inverse of `to_list`."""
        if not isinstance(values, list):
            raise ValueError("a transcript must be a list of questions with their answers")
        return cls(tuple(Exchange.from_dict(value) for value in values))


EMPTY = Transcript()


def _take_samples(question: Request, used: dict[str | None, list[range]]) -> None:
    """Note the samples of a question among those that were `used`, by noise; each is taken once.

    Fresh samples know nothing of what was decided. Every bound rests on that, so a procedure that
    takes one twice stops (docs/theory.md#estimating-p_a-and-p_b).
    """
    if question.n < 0 or question.start < 0 or question.purpose not in PURPOSES:
        raise CertifyError(f"{question} is not a question")
    if not question.counted.noisy:
        return
    noise = None if question.noise is None else question.noise.text
    wanted = range(question.start, question.start + question.n)
    for taken in used.setdefault(noise, []):
        if wanted.start < taken.stop and taken.start < wanted.stop:
            raise CertifyError(
                f"samples {wanted.start} to {wanted.stop - 1} are asked for, but samples "
                f"{taken.start} to {taken.stop - 1} were used before: no sample may be used twice"
            )
    used[noise].append(wanted)


def record(steps: Steps[Kind]) -> Steps[Kind]:
    """The same steps; the certificate comes with the transcript of its questions and answers.

    This is the one place where questions and answers are checked: no sample under a noise is used
    twice, and an answer has exactly one vote for each sample.
    """
    exchanges: list[Exchange] = []
    used: dict[str | None, list[range]] = {}
    answer: Counts | None = None
    while True:
        try:
            question = next(steps) if answer is None else steps.send(answer)
        except StopIteration as stop:
            certificate: Kind = stop.value
            return replace(certificate, transcript=Transcript(tuple(exchanges)))
        _take_samples(question, used)
        answer = yield question
        total = int(np.sum(answer))
        if total != question.n:
            raise CertifyError(f"{total} votes are stored, but {question.n} samples were asked for")
        exchanges.append(Exchange.of(question, answer))


def answer_all(steps: Steps[Kind], answer: Callable[[Request], Counts]) -> Kind:
    """Run the steps with these answers; the certificate with its transcript."""
    recorded = record(steps)
    try:
        question = next(recorded)
        while True:
            question = recorded.send(answer(question))
    except StopIteration as stop:
        certificate: Kind = stop.value
        return certificate


def recompute(steps: Steps[Kind], transcript: Transcript) -> Kind:
    """The certificate that the steps give on stored answers.

    Raises CertifyError if a question is not the stored one, an answer has another number of
    votes than samples, or an answer is left over.
    """
    stored = iter(transcript)

    def answer(question: Request) -> Counts:
        answered = next(stored, None)
        wanted = Exchange.of(question, () if answered is None else answered.counts)
        if answered is None:
            raise CertifyError(f"the answer to {wanted.words} is missing")
        if answered != wanted:
            raise CertifyError(
                f"the stored answer is to {answered.words}, but the votes before it ask for "
                f"{wanted.words}"
            )
        return np.asarray(answered.counts, dtype=np.int64)

    certificate = answer_all(steps, answer)
    if (surplus := next(stored, None)) is not None:
        raise CertifyError(f"there is an answer that was not asked for: {surplus.words}")
    return certificate
