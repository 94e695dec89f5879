"""(i) Spherical noise: any direction is as bad as any other, so one integral is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass

from unicr.noise import RadialNoise
from unicr.radius._grade import Grade, grade_proof
from unicr.radius._question import Evidence, Question
from unicr.radius._readings import LAST_TAIL
from unicr.radius.theorems._base import (
    FIRST_P_A,
    Steps,
    Theorem,
    TradeOffBound,
    factor_from_l2,
    list_extreme_directions,
)
from unicr.tradeoff import TradeOff
from unicr.tradeoff.internal import ball_steps, ball_tradeoff, falls, guess_radius, rounds_outward


@dataclass(frozen=True, eq=False, kw_only=True)
class SphericalBound(TradeOffBound):
    """The ℓ2 radius by an integral over the length, rounded outwards, carried to ℓp by the worst δ.

    T falls with ‖δ‖_2 because the density falls with the length (docs/theory.md#theorem-i). That of
    a built-in family does by its formula; of a user's it is checked, and the grade says so.
    `factor` leads from ℓ2 to the norm.
    """

    noise: RadialNoise
    factor: float

    def tradeoff(self, r: float) -> TradeOff:
        return ball_tradeoff(self.noise, r / self.factor)

    def guess(self, evidence: Evidence) -> float:
        size = self.noise.sigma if math.isfinite(self.noise.sigma) else 1.0
        return size * guess_radius(evidence.p_a, evidence.p_b) * self.factor

    def curve(self) -> Steps:
        first, last = (
            self.radius(Evidence(FIRST_P_A)),
            self.radius(Evidence(1.0 - LAST_TAIL, LAST_TAIL)),
        )
        alpha, radius = ball_steps(self.noise, first / self.factor, last / self.factor)
        return alpha, radius * self.factor


def match(question: Question) -> SphericalBound | None:
    """A density that falls with the ℓ2 length."""
    noise = question.noise.radial
    if noise is None or noise.order != 2 or not falls(noise):
        return None
    grade = Grade.OUTWARD_ROUNDING if rounds_outward(noise) else Grade.FLOATING_POINT
    return SphericalBound(
        theorem=THEOREM.name,
        grade=grade_proof(grade, noise),
        engine="spherical",
        exact=True,
        directions=list_extreme_directions(question.norm, question.dim, 2.0),
        noise=noise,
        factor=factor_from_l2(question.norm, question.dim),
    )


THEOREM = Theorem(
    "i",
    "spherical, falling density",
    "spherical noise whose density falls with the length",
    match,
    computed_in=(
        "unicr.tradeoff._falling",
        "unicr.tradeoff._angle",
    ),
)
