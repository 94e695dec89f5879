"""(l) ℓ∞- and ℓ1-symmetric noise: the worst δ is a vertex of the ball of perturbations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unicr.noise import RadialNoise
from unicr.radius._grade import Grade, grade_proof
from unicr.radius._question import Evidence, Question
from unicr.radius.theorems._base import Theorem, TradeOffBound, list_extreme_directions
from unicr.tradeoff import TradeOff
from unicr.tradeoff.internal import (
    cross_tradeoff,
    cube_tradeoff,
    falls,
    guess_radius,
    rounds_outward,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class VerticesBound(TradeOffBound):
    """One coordinate in ℓp, p ≤ 1; all coordinates in ℓ∞.

    1 − H = ∫ vol(K_a ∩ (K_b + δ)) du over the levels u, K the balls on which a falling density
    exceeds u. Each volume is log-concave in δ (Brunn–Minkowski), so over a polytope of δ it is
    least at a vertex; the vertices of the ℓ1 and of the ℓ∞ ball are all alike for a noise that
    knows neither signs nor the order of coordinates, so one is worst for all levels at once
    (docs/theory.md#theorem-l). `moving` coordinates move.
    """

    noise: RadialNoise
    moving: int

    def tradeoff(self, r: float) -> TradeOff:
        if self.noise.order == 1:
            return cross_tradeoff(self.noise, r)
        return cube_tradeoff(self.noise, [(r, self.moving)])

    def guess(self, evidence: Evidence) -> float:
        r = self.noise.length.ppf(np.array([0.25, 0.75]))
        if self.noise.order != 1 and self.moving == 1:
            return float(r[0]) * (evidence.p_a - evidence.p_b)
        slope = float(-np.diff(self.noise.radial_logpdf(r))[0] / np.diff(r)[0])
        return guess_radius(evidence.p_a, evidence.p_b) / max(slope, 1e-12 / r[0])


def match(question: Question) -> VerticesBound | None:
    """A falling density of the ℓ1 or ℓ∞ length."""
    noise, norm = question.noise.radial, question.norm
    if noise is None or noise.order == 2:
        return None
    every = math.isinf(noise.order) and math.isinf(norm.p)
    if not ((norm.p <= 1 or every) and falls(noise)):
        return None
    grade = Grade.OUTWARD_ROUNDING if rounds_outward(noise) else Grade.FLOATING_POINT
    return VerticesBound(
        theorem=THEOREM.name,
        grade=grade_proof(grade, noise),
        engine="quadrature",
        exact=True,
        directions=list_extreme_directions(norm, question.dim, 1.0),
        noise=noise,
        moving=1 if norm.p <= 1 else question.dim,
    )


THEOREM = Theorem(
    "l",
    "vertices, falling density of a norm",
    "ℓp, p ≤ 1, noise φ(‖z‖_∞) or φ(‖z‖_1); ℓ∞, noise φ(‖z‖_∞); φ falls",
    match,
    computed_in=("unicr.tradeoff._falling",),
)
