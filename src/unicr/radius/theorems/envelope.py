"""(f) ℓ∞ where all equal need not be worst: by how many coordinates move to either side."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from unicr.noise import IID
from unicr.radius._boundary import find_radius
from unicr.radius._grade import Grade, grade_proof
from unicr.radius._question import Evidence, Question
from unicr.radius.bellman import bound_gaps, list_kinks
from unicr.radius.theorems._base import Steps, Theorem, TradeOffBound
from unicr.tradeoff import LeastTradeOff, RatioLaw, TradeOff, compose, make_ratio_law
from unicr.tradeoff.internal import compute_margin, guess_radius, make_envelope
from unicr.values import Array

# Into how many ranges the number of coordinates that move down is cut, for one radius and for a
# curve, which asks all of them at every radius. Fewer lose more: a range of a share x of all
# coordinates loses about x of what the envelope alone does.
RANGES, CURVE_RANGES = 48, 24
# Shifts whose envelope stands for all up to the largest, where T need not fall with the shift; and
# the most kinks of a density of steps that are put among them. Between shifts χ is charged.
SHIFTS, MOST_KINKS = 12, 40

Signs = tuple[int, int]  # the least and the largest number of coordinates that move down
Laws = tuple[RatioLaw, RatioLaw, RatioLaw]


@dataclass(frozen=True, eq=False, kw_only=True)
class EnvelopeBound(TradeOffBound):
    """Unimodal noise: T_u falls with u on either side of zero, so all coordinates move by r, some
    up and some down. Other noise: for either side the envelope of all shifts up to r.

    Where between n and m of d move down, d − m surely move up and n down; for each of the others
    the larger of the two hockey-stick divergences at every γ counts: that envelope is convex, hence
    a trade-off function to compose (docs/theory.md#theorem-f).
    """

    law: IID
    dim: int

    def radius(self, evidence: Evidence) -> float:
        best = math.inf
        make_laws = lru_cache(maxsize=64)(self._make_laws)
        for signs in self._list_ranges(RANGES):

            def along(r: float, signs: Signs = signs) -> TradeOff:
                return self._compose_signs(make_laws(r), signs)

            if math.isinf(best) or compute_margin(along(best), evidence.p_a, evidence.p_b) < 0:
                guess = self.guess(evidence) if math.isinf(best) else best
                # p_A = 1: a half-line that moves inwards never fails
                best = find_radius(
                    along, evidence, guess, tolerance=self.tolerance, endless=evidence.p_a == 1.0
                )
        return best

    def tradeoff(self, r: float) -> TradeOff:
        laws = self._make_laws(r)
        parts = [self._compose_signs(laws, signs) for signs in self._list_ranges(CURVE_RANGES)]
        return LeastTradeOff(tuple(parts))

    def curve(self) -> Steps | None:
        if not self.law.facts.unimodal:
            return None  # envelopes of many shifts at many radii: (j) has a curve sooner
        return self.prove_steps()  # (h) proves no more: kernels of (j) are above both signs

    def guess(self, evidence: Evidence) -> float:
        return guess_radius(evidence.p_a, evidence.p_b) / math.sqrt(self.dim)

    def _list_ranges(self, count: int) -> list[Signs]:
        """Every number from 0 to d is in one of them; which it is says nothing of even noise."""
        if self.law.facts.symmetric:
            return [(0, 0)]
        if self.dim <= count:
            return [(n, n) for n in range(self.dim + 1)]
        cuts = [self.dim * k // count for k in range(count + 1)]
        return list(pairwise(cuts))

    def _make_laws(self, r: float) -> Laws:
        """One coordinate that moves up, one that moves down, and one that does either."""
        if self.law.facts.unimodal:
            up, down = (make_ratio_law(self.law, sign * r) for sign in (1.0, -1.0))
            return up, down, make_envelope([up, down])
        shifts = self._place_shifts(r)
        gap = float(np.max(bound_gaps(self.law, np.append(0.0, shifts))[0]))
        sides = [
            [make_ratio_law(self.law, sign * float(u)) for u in shifts] for sign in (1.0, -1.0)
        ]
        envelopes = [make_envelope(laws) for laws in (*sides, sides[0] + sides[1])]
        up, down, both = (replace(law, charge=law.charge + gap) for law in envelopes)
        return up, down, both

    def _place_shifts(self, r: float) -> Array:
        """Shifts up to r between which H has next to nothing above its chord."""
        kinks = list_kinks(self.law, 0.0, r, MOST_KINKS)
        if kinks is None:
            return r * np.arange(1, SHIFTS + 1) / SHIFTS
        return np.append(kinks, r)

    def _compose_signs(self, laws: Laws, signs: Signs) -> TradeOff:
        down, most = signs
        return compose(list(zip(laws, (self.dim - most, down, most - down), strict=True)))


def match(question: Question) -> EnvelopeBound | None:
    """Where (c) does not serve, for want of symmetry or of one mode."""
    law = question.noise.iid
    if law is None or not math.isinf(question.norm.p):
        return None
    if law.facts.unimodal and law.facts.symmetric:
        return None
    if not law.facts.unimodal and question.dim == 1:
        return None  # (q) loses nothing
    return EnvelopeBound(
        theorem=THEOREM.name,
        grade=grade_proof(Grade.FLOATING_POINT, law, ranges=True),
        engine="composition",
        law=law,
        dim=question.dim,
    )


THEOREM = Theorem(
    "f",
    "envelope",
    "ℓ∞; coordinates without symmetry or with several modes",
    match,
    computed_in=(
        "unicr.tradeoff._envelope",
        "unicr.tradeoff._compose",
        "unicr.radius.bellman._chord",
    ),
)
