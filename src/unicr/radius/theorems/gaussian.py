"""(d) Gaussian noise: exact in closed form for every p > 0, also with a scale per coordinate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from unicr.radius._grade import Grade
from unicr.radius._question import Evidence, Question
from unicr.radius._rounding import raise_tail
from unicr.radius.theorems._base import (
    Bound,
    Theorem,
    compute_half_gap,
    factor_from_l2,
    list_extreme_directions,
)
from unicr.values import Array


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianBound(Bound):
    """R_2 = σ(Φ⁻¹(p_A) − Φ⁻¹(p_B))/2; R_p = R_2 for p ≤ 2, d^(1/p − 1/2)·R_2 beyond.

    With scales s_i: max ‖δ/s‖_2 over the ℓp ball is 1/min s for p ≤ 2, else by Hölder
    (Σ s_i^(−2q))^(1/2q) with q = p/(p − 2), with equality at some δ
    (docs/theory.md#theorem-d). `factor` is R_p at a half gap of 1.
    """

    factor: float

    def radius(self, evidence: Evidence) -> float:
        return self.factor * compute_half_gap(lambda u: float(special.ndtri(u)), evidence)

    @property
    def closed_form(self) -> Callable[[Array], Array]:
        return lambda alpha: -special.ndtri(raise_tail(alpha)) * self.factor


def match(question: Question) -> GaussianBound | None:
    """Every coordinate normal, whatever its scale."""
    noise, norm, dim = question.noise, question.norm, question.dim
    sigma = None if noise.coordinate is None else noise.coordinate.normal_sigma
    if sigma is None:
        return None
    unequal = noise.scales is not None and 2 < norm.p < math.inf  # the worst δ is no spectrum
    return GaussianBound(
        theorem=THEOREM.name,
        grade=Grade.CLOSED_FORM,
        engine="closed form",
        exact=True,
        directions=None if unequal else list_extreme_directions(norm, dim, 2.0),
        factor=sigma
        * (
            factor_from_l2(norm, dim)
            if noise.scales is None
            else _compute_factor(noise.scales, norm.p)
        ),
    )


def _compute_factor(scales: Array, p: float) -> float:
    """1/max ‖δ/s‖_2 over the ℓp ball."""
    least = float(scales.min())
    if p <= 2:
        return least
    q = 1.0 if math.isinf(p) else p / (p - 2)
    return least / float(np.sum((least / scales) ** (2 * q)) ** (0.5 / q))


THEOREM = Theorem("d", "Gaussian", "every p > 0", match, rank=0)
