"""Questions for counts, their answers, and the transcript of both that a certificate keeps.

A procedure (`Procedure.steps`) is a generator: it yields a `Request`, is sent the counts that
answer it, and returns a certificate. Whoever holds a model answers by sampling: this process, a
pool of processes, a cluster. Whoever holds a transcript answers from it: `recompute` runs the very
same steps without a model.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from unicr.errors import CertifyError
from unicr.noise import Noise, parse
from unicr.smoothing.measures import ClassVotes, Counts, Measure, add, as_tuple

if TYPE_CHECKING:
    from unicr.smoothing._certificate import Certificate

Result = TypeVar("Result")
Kind = TypeVar("Kind", bound="Certificate")
CLASSES = ClassVotes()
# What the answer to a question is for. Samples that choose what to claim bound nothing.
CHOOSE = "choose"
BOUND = "bound"  # of the probability of the claim
SUPPORT = "support"  # of another probability that the claim rests on
PURPOSES = (CHOOSE, BOUND, SUPPORT)


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
        return _received, (self.n, self.start, text, self.counted, self.purpose)


def _received(n: int, start: int, noise: str | None, counted: Measure, purpose: str) -> Request:
    return Request(n, start, None if noise is None else _parsed(noise), counted, purpose)


@lru_cache(maxsize=256)
def _parsed(text: str) -> Noise:
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
        """The inverse of `to_dict`; ValueError where it could not have been written."""
        n, start, counts = values["n"], values["start"], values["counts"]
        texts = (values["counted"], values["purpose"], values.get("noise", ""))
        whole = type(n) is int and type(start) is int and n >= 0 and start >= 0
        if not whole or not all(type(one) is str for one in texts):
            raise ValueError(f"{values!r} is no question")
        if type(counts) is not list or not all(type(c) is int and c >= 0 for c in counts):
            raise ValueError(f"{counts!r} are no counts")
        if set(values) - {"n", "start", "noise", "counted", "purpose", "counts"}:
            raise ValueError(f"{values!r} says more than a question and its answer")
        return cls(n, start, values.get("noise"), *texts[:2], tuple(counts))


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
        for one in self.exchanges:
            if (one.purpose, one.noise) == (purpose, noise) and counted in (None, one.counted):
                total = add(total, np.asarray(one.counts, dtype=np.int64))
        return as_tuple(total)

    def to_list(self) -> list[dict[str, Any]]:
        """Plain values."""
        return [one.to_dict() for one in self.exchanges]

    @classmethod
    def from_list(cls, values: Any) -> Transcript:
        """The inverse of `to_list`."""
        if not isinstance(values, list):
            raise ValueError("a transcript is a list of questions with their answers")
        return cls(tuple(Exchange.from_dict(one) for one in values))


EMPTY = Transcript()


@dataclass
class _Recorder:
    """Checks every question and answer of one input, whatever procedure asks them."""

    exchanges: list[Exchange] = field(default_factory=list)
    used: dict[str | None, list[range]] = field(default_factory=dict)

    def check_question(self, question: Request) -> None:
        """Samples of one noise are taken once: fresh ones know nothing of what was decided.

        Every bound rests on that (docs/theory.md, section 6), so a procedure that breaks it stops.
        """
        if question.n < 0 or question.start < 0 or question.purpose not in PURPOSES:
            raise CertifyError(f"{question} is no question")
        if not question.counted.noisy:
            return
        noise = None if question.noise is None else question.noise.text
        wanted = range(question.start, question.start + question.n)
        for taken in self.used.setdefault(noise, []):
            if wanted.start < taken.stop and taken.start < wanted.stop:
                raise CertifyError(
                    f"samples {wanted.start} to {wanted.stop - 1} are asked for, and "
                    f"{taken.start} to {taken.stop - 1} were: no sample may be used twice"
                )
        self.used[noise].append(wanted)

    def add(self, question: Request, counts: Counts) -> None:
        """Keep an answer; one with more or fewer votes than samples is refused."""
        total = int(np.sum(counts))
        if total != question.n:
            raise CertifyError(f"{total} votes where {question.n} samples were asked for")
        self.exchanges.append(Exchange.of(question, counts))


def record(steps: Steps[Kind]) -> Steps[Kind]:
    """The same steps; the certificate comes with the transcript of its questions and answers.

    This is the one place where questions and answers are checked: no sample under a noise is used
    twice, and an answer has exactly one vote for each sample.
    """
    recorder, answer = _Recorder(), None
    while True:
        try:
            question = next(steps) if answer is None else steps.send(answer)
        except StopIteration as stop:
            found: Kind = stop.value
            return replace(found, transcript=Transcript(tuple(recorder.exchanges)))
        recorder.check_question(question)
        answer = yield question
        recorder.add(question, answer)


def answer_all(steps: Steps[Kind], answer: Callable[[Request], Counts]) -> Kind:
    """Run the steps with these answers; the certificate with its transcript."""
    recorded = record(steps)
    try:
        question = next(recorded)
        while True:
            question = recorded.send(answer(question))
    except StopIteration as stop:
        found: Kind = stop.value
        return found


def recompute(steps: Steps[Kind], transcript: Transcript) -> Kind:
    """The certificate that the steps give on stored answers.

    Raises CertifyError where a question is not the stored one, an answer has another number of
    votes than samples, or an answer is left over.
    """
    stored = iter(transcript)

    def answer(question: Request) -> Counts:
        one = next(stored, None)
        wanted = Exchange.of(question, () if one is None else one.counts)
        if one is None:
            raise CertifyError(f"no answer is stored for {wanted.words}")
        if one != wanted:
            raise CertifyError(f"answers {one.words} stored, the votes before ask {wanted.words}")
        return np.asarray(one.counts, dtype=np.int64)

    found = answer_all(steps, answer)
    if (surplus := next(stored, None)) is not None:
        raise CertifyError(f"an answer that nobody asked for is stored: {surplus.words}")
    return found
