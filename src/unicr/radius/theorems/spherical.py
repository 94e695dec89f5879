"""(i) Spherical noise: any direction is as bad as any other, so one quadrature is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass

from unicr.noise.internal import RadialNoise
from unicr.radius._boundary import find_radius
from unicr.radius._grade import Grade, grade_proof
from unicr.radius._question import Evidence, Question
from unicr.radius.theorems._base import (
    Theorem,
    TradeOffBound,
    factor_from_l2,
    list_extreme_directions,
)
from unicr.tradeoff import TradeOff
from unicr.tradeoff.internal import ball_tradeoff, falls, guess_radius, spherical_tradeoff


@dataclass(frozen=True, eq=False, kw_only=True)
class SphericalBound(TradeOffBound):
    """The ℓ2 radius by quadrature over length and angle, carried to ℓp by the worst δ.

    Where the density falls with the length, T falls with ‖δ‖_2 (docs/theory.md#theorem-i).
    The quadrature errs on the safe side for the built-in families; a user's φ that falls is summed
    with outward rounding (`outward`). `factor` leads from ℓ2 to the norm.
    """

    noise: RadialNoise
    factor: float
    outward: bool

    def radius(self, evidence: Evidence) -> float:
        """The first root along any direction."""
        return find_radius(self.tradeoff, evidence, self.guess(evidence), monotone=self.outward)

    def tradeoff(self, r: float) -> TradeOff:
        make = ball_tradeoff if self.outward else spherical_tradeoff
        return make(self.noise, r / self.factor)

    def guess(self, evidence: Evidence) -> float:
        size = self.noise.sigma if math.isfinite(self.noise.sigma) else 1.0
        return size * guess_radius(evidence.p_a, evidence.p_b) * self.factor


def match(question: Question) -> SphericalBound | None:
    """Built-in families, or a density that falls with the length."""
    found = quadrature(question)
    users = found is not None and found.noise.facts.source != "analytic"
    return found if found is not None and (not users or found.outward) else None


def quadrature(question: Question) -> SphericalBound | None:
    """The same for every spherical noise; for a user's φ that rises an estimate, which proves
    nothing.
    """
    noise = question.noise.radial
    if noise is None or noise.order != 2:
        return None
    outward = noise.facts.source != "analytic" and falls(noise)
    own = Grade.OUTWARD_ROUNDING if outward else Grade.FLOATING_POINT
    return SphericalBound(
        theorem=THEOREM.name,
        grade=grade_proof(own, noise),
        engine="spherical",
        exact=True,
        directions=list_extreme_directions(question.norm, question.dim, 2.0),
        noise=noise,
        factor=factor_from_l2(question.norm, question.dim),
        outward=outward,
    )


THEOREM = Theorem(
    "i",
    "spherical, to quadrature",
    "spherical noise: built-in families, or a density that falls with the length",
    match,
)
