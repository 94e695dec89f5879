"""What is counted of the noisy copies of an input: classes, the votes of one member, offsets, …

Counts add up over samples, so chunks, workers and the store need not know what they count. What
the counts are worth is said by a procedure (`_plan.py`).
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from unicr.classifier import Classifier, Selective
from unicr.errors import CertifyError
from unicr.extras import torch
from unicr.noise import Lattice, Noise
from unicr.registry import Catalogue, Registered

Counts = NDArray[np.int64]


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


@dataclass(frozen=True)
class MemberVotes(Measure):
    """Every noisy copy votes for what member number `index` says; 0 is the selector."""

    name = "member"
    index: int = 0

    def labels(self, model: Classifier, batch: torch.Tensor) -> torch.Tensor:
        """Choices of the selector, classes of the others."""
        return self._members(model)[self.index].predict_unchecked(batch)

    def size(self, model: Classifier, classes: int | None) -> int | None:
        """The number of choices for the selector, of classes for the others."""
        members = self._members(model)
        if self.index == 0:
            return len(members) - 1
        return members[self.index].num_classes if classes is None else classes

    def _members(self, model: Classifier) -> Sequence[Classifier]:
        if not isinstance(model, Selective) or not 0 <= self.index < len(model.members):
            raise CertifyError(
                f"{model.name} has no classifier number {self.index}: it is not the selector of "
                "this run"
            )
        return model.members


CLOSE = 1e-12  # how far from a whole number of steps 2λ may be written


def count_offsets(noise: Noise, lattice: Lattice | None) -> int:
    """How many offsets there are, W; refused where not all of them can be counted."""
    if noise.interval is None or lattice is None:
        raise CertifyError(
            "every offset can be counted only for splitting noise on a lattice, not for "
            f"{noise.text}{'' if lattice else ' on real numbers'}: use --noise "
            "'splitting(scale=0.5)' and --lattice 1/255"
        )
    width = Fraction(noise.interval) / lattice.step
    whole = max(round(width), 1)
    if abs(width - whole) > CLOSE * whole:
        raise CertifyError(
            f"{noise.text} on the lattice {lattice.text} has {float(width):.6g} steps in an "
            "interval, but a whole number is needed: use "
            f"scale={float(whole * lattice.step / 2)!r} for {whole} steps"
        )
    return whole


@dataclass(frozen=True)
class OffsetVotes(ClassVotes):
    """Copies number s, s + 1, … have the offsets s, s + 1, … (mod W); W of them are all."""

    name = "offsets"

    def copies(
        self, noise: Noise, lattice: Lattice | None, x: torch.Tensor, key: bytes
    ) -> Callable[[torch.Tensor, int], object]:
        """What fills a batch from number `start` on; the places follow from the key of g."""
        width = count_offsets(noise, lattice)
        assert lattice is not None
        if not lattice.holds(x.cpu().numpy()):
            raise CertifyError(
                f"the input is not on the grid {lattice.text}, and counting every offset works "
                "only for inputs on the grid: leave --rule every out"
            )
        base = lattice.integers(x.cpu().numpy()).ravel()
        digest = hashlib.shake_256(b"offsets" + key).digest(8 * base.size)
        places = (np.frombuffer(digest, "<u8") % np.uint64(width)).astype(np.int64)
        half = float(lattice.step) / 2

        def fill(out: torch.Tensor, start: int) -> None:
            number = np.arange(start, start + len(out), dtype=np.int64)[:, None]
            end = (number + places) % width  # the interval begins at end + ½ + W·(whole number)
            begin = end + width * ((base - end - 1) // width)
            middle = (2 * begin + 1 + width) * half
            seen = noise.see(torch.from_numpy(middle))
            out.copy_(seen.to(torch.float32).reshape(out.shape))

        return fill


MEASURES: Catalogue[type[Measure]] = Catalogue(
    "unicr.measures", "unicr.smoothing.measures", Measure, classes=True
)
Measure.catalogue = MEASURES
