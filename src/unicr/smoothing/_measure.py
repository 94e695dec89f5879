"""What a kind of certificate is: what is counted of a sample, and what the counts are worth.

Counts add up over samples, so chunks, workers and the store need not know what they count. A
subclass says what a batch counts for, which counts speak for the claim, and what the claim is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from unicr.classifier import Classifier
from unicr.registry import Catalogue
from unicr.smoothing._certificate import ABSTAIN, Certificate
from unicr.smoothing._named import Registered
from unicr.smoothing._rule import Votes

if TYPE_CHECKING:
    from unicr.noise import Lattice, Noise
    from unicr.smoothing._certify import Ask
    from unicr.smoothing._plan import Plan
    from unicr.smoothing._radii import Radii

Counts = NDArray[np.int64]


class Measure(Registered, ABC):
    """Subclasses are frozen dataclasses. `certificate` may add fields: they are stored as well."""

    kind = "measure"
    certificate: ClassVar[type[Certificate]] = Certificate

    @abstractmethod
    def count(self, model: Classifier, batch: torch.Tensor, classes: int | None) -> Counts:
        """What a batch of noisy copies counts for; sums over batches must mean the same."""

    @abstractmethod
    def chosen(self, selection: Counts) -> int:
        """The claim to test, as a number: by the selection samples alone."""

    @abstractmethod
    def votes(self, selection: Counts, counts: Counts) -> Votes:
        """How many fresh samples speak for the claim."""

    def walk(
        self, plan: Plan, radii: Radii, noise: Noise | None
    ) -> Generator[Ask, Counts, Certificate] | None:
        """A procedure of its own in place of `certification`, where one noise is not enough."""
        return None

    def again(
        self, c: Certificate, plan: Plan, radii: Radii, noise: Noise | None
    ) -> Certificate | str:
        """The certificate that stored votes give again, or why they are not what was asked for."""
        selection, counts = np.asarray(c.selection, np.int64), np.asarray(c.counts, np.int64)
        chosen, votes = self.votes(selection, selection), self.votes(selection, counts)
        if not len(selection) or chosen.n != plan.n0 or c.n0 != plan.n0:
            return f"{chosen.n} selection votes where n0 = {plan.n0}"
        if votes.n != c.n or c.n > plan.n or plan.rule.next(votes, plan, radii) > 0:
            return f"{votes.n} votes where n = {c.n} of {plan.n} by the rule {plan.rule.text}"
        return self.conclude(plan, radii.when(moved=c.moved), selection, counts, noise)

    def copies(
        self, noise: Noise, lattice: Lattice | None, x: torch.Tensor, key: bytes
    ) -> Callable[[torch.Tensor, int], object] | None:
        """What fills a batch with copies from a number on, None where the noise is sampled."""
        return None

    def check(self, plan: Plan, radii: Radii) -> None:
        """Raise CertifyError where nothing can be claimed with this plan, noise and norms."""
        return None

    def bounds(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """(p_A, p_B) by the rule, for the law of the noise where a sampler drew it."""
        return radii.charged(*plan.rule.conclude(votes, plan, radii))

    def conclude(
        self,
        plan: Plan,
        radii: Radii,
        selection: Counts,
        counts: Counts,
        noise: Noise | None = None,
    ) -> Certificate:
        """What the counts of an input are worth; the same counts always give the same.

        At confidence 1 − α over the fresh samples (the rule's proof) the radii hold.
        """
        votes = self.votes(selection, counts)
        p_a, p_b = self.bounds(votes, plan, radii)
        return self.certificate(
            predict=self.chosen(selection) if p_a > p_b else ABSTAIN,
            p_a=p_a,
            p_b=p_b,
            n0=plan.n0,
            n=votes.n,
            alpha=plan.alpha,
            selection=as_tuple(selection),
            counts=as_tuple(counts),
            radii=radii.at(p_a, p_b),
            noise=None if noise is None else noise.text,
            lattice=None if radii.lattice is None else radii.lattice.text,
            moved=radii.moved,
            charge=radii.charge,
        )


def as_tuple(counts: Counts) -> tuple[int, ...]:
    """Counts as plain whole numbers."""
    return tuple(int(c) for c in counts)


def at(counts: Counts, index: int) -> int:
    """One count; 0 where the counts do not reach that far."""
    return int(counts[index]) if index < len(counts) else 0


def add(a: Counts, b: Counts) -> Counts:
    """Sum of two counts, of which one may be longer."""
    total = np.zeros(max(len(a), len(b)), dtype=np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total


MEASURES: Catalogue[type[Measure]] = Catalogue(
    "unicr.measures", "unicr.smoothing.measures", Measure, classes=True
)
Measure.catalogue = MEASURES
