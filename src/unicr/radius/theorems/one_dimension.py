"""(a) One dimension, unimodal noise that need not be symmetric: the worse of the two signs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unicr.noise import IID
from unicr.radius._boundary import find_radius
from unicr.radius._grade import Grade, grade_proof
from unicr.radius._question import Evidence, Question
from unicr.radius._spectrum import equal_spectrum
from unicr.radius.theorems._base import Theorem, TradeOffBound
from unicr.tradeoff import TradeOff, compute_tradeoff
from unicr.tradeoff.internal import guess_radius
from unicr.values import Array


@dataclass(frozen=True, eq=False, kw_only=True)
class OneDimensionBound(TradeOffBound):
    """T_u falls with |u| on either side of zero ((c)'s argument needs one mode, not symmetry).

    Where p_A = 1 one sign may never fail (a half-line moved inwards), which is then its truth
    (docs/theory.md#theorem-a).
    """

    law: IID

    def radius(self, evidence: Evidence) -> float:
        def root(sign: float) -> float:
            def along(r: float) -> TradeOff:
                return compute_tradeoff(self.law, [(sign * r, 1)])

            return find_radius(along, evidence, self.guess(evidence), endless=evidence.p_a == 1.0)

        return min(root(1.0), root(-1.0))

    def tradeoff(self, r: float) -> TradeOff:
        return _LowerOfTwo(
            compute_tradeoff(self.law, [(r, 1)]), compute_tradeoff(self.law, [(-r, 1)])
        )

    def guess(self, evidence: Evidence) -> float:
        return guess_radius(evidence.p_a, evidence.p_b)


def match(question: Question) -> OneDimensionBound | None:
    """Exact too for symmetric noise, where (c) or (b) says the same with half the work."""
    law = question.noise.iid
    if law is None or question.dim != 1 or not law.facts.unimodal:
        return None
    return OneDimensionBound(
        theorem=THEOREM.name,
        grade=grade_proof(Grade.FLOATING_POINT, law, ranges=True),
        engine="composition",
        exact=not law.facts.symmetric,
        directions=(equal_spectrum(1), equal_spectrum(1, -1.0)),
        law=law,
    )


class _LowerOfTwo(TradeOff):
    """The lower of two, at every point."""

    bound = "lower"

    def __init__(self, one: TradeOff, other: TradeOff) -> None:
        self._both = (one, other)

    def beta(self, alpha: ArrayLike) -> Array:
        return np.minimum(*(one.beta(alpha) for one in self._both))

    def alpha(self, beta: ArrayLike) -> Array:
        return np.minimum(*(one.alpha(beta) for one in self._both))


THEOREM = Theorem("a", "one dimension, both signs", "one dimension; unimodal", match)
