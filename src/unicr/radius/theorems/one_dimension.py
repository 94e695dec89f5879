"""(a) One dimension, unimodal noise that need not be symmetric: the worse of the two signs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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

# Relative, off a probability F(F⁻¹(…) − u): quantiles are right to 3e-15 of x, and a relative error
# of x is one of F times |x·ψ′(x)|, ψ = −log p, which stays below 3,000 where F ≥ 1e-11 (it is 46
# for Gaussian noise and 2,500 for General Normal noise with β = 100).
CLOSED_FORM_CHARGE = 1e-11
# Of EPS of |x| + u, onto the shift: a quantile, its sum with u and the place that F is asked for
# are each rounded once, and a law need not lie near zero.
PLACE_UNITS = 4
EPS = float(np.finfo(np.float64).eps)  # twice the largest relative error of one rounding
LAST_TAIL = 1e-300  # beyond the quantiles of it no place is asked for


@dataclass(frozen=True, eq=False, kw_only=True)
class OneDimensionBound(TradeOffBound):
    """T_u falls with |u| on either side of zero ((c)'s argument needs one mode, not symmetry).

    Where p_A = 1 one sign may never fail (a half-line moved inwards), which is then its truth
    (docs/theory.md#theorem-a).
    """

    law: IID

    def radius(self, evidence: Evidence) -> float:
        def find_root(sign: float) -> float:
            def along(r: float) -> TradeOff:
                return _LowerOf(self._shift(sign, r))

            endless = evidence.p_a == 1.0
            return find_radius(along, evidence, self.guess(evidence), endless=endless)

        return min(find_root(1.0), find_root(-1.0))

    def tradeoff(self, r: float) -> TradeOff:
        return _LowerOf(self._shift(1.0, r), self._shift(-1.0, r))

    def _shift(self, sign: float, r: float) -> TradeOff:
        """T of a shift that is longer by what places may be off: T falls as it grows."""
        off = PLACE_UNITS * EPS * (self._farthest + r)
        return compute_tradeoff(self.law, [(sign * (r + off), 1)])

    @cached_property
    def _farthest(self) -> float:
        """The largest |x| that a closed form looks at; a composition bounds its own rounding."""
        if not self.law.facts.log_concave:
            return 0.0
        return max(abs(float(self.law.ppf(LAST_TAIL))), abs(float(self.law.isf(LAST_TAIL))))

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


class _LowerOf(TradeOff):
    """The lowest of several at every point, minus what floating point may have added."""

    bound = "lower"

    def __init__(self, *tradeoffs: TradeOff) -> None:
        self._tradeoffs = tradeoffs

    def beta(self, alpha: ArrayLike) -> Array:
        return self._lower([tradeoff.beta(alpha) for tradeoff in self._tradeoffs])

    def alpha(self, beta: ArrayLike) -> Array:
        # β may be a rounded 1 − α: the next number above it is at least the true one
        above = np.nextafter(np.asarray(beta, dtype=np.float64), 2.0)
        return self._lower([tradeoff.alpha(above) for tradeoff in self._tradeoffs])

    def _lower(self, values: list[Array]) -> Array:
        return np.asarray(np.min(values, axis=0) * (1.0 - CLOSED_FORM_CHARGE))


THEOREM = Theorem(
    "a",
    "one dimension, both signs",
    "one dimension; unimodal",
    match,
    computed_in=(
        "unicr.tradeoff._compose",
        "unicr.tradeoff._ratio",
    ),
)
