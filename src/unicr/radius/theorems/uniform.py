"""(k) Uniform noise: exact in every ℓp, because only the overlap of two boxes matters."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unicr.radius._grade import Grade
from unicr.radius._question import Evidence, Question
from unicr.radius._spectrum import Spectrum, equal
from unicr.radius.theorems._base import Bound, Theorem
from unicr.values import Array

GRID = 129  # points of b in which the minimum is sought, between the neighbours of the best
ZOOMS = 5  # of it: cells of (2/128)^5 = 1e-9 of the first
SHORT = 1e-9  # of the minimum, taken off: it is flat there, so that cells of 1e-9 miss far less


@dataclass(frozen=True, eq=False, kw_only=True)
class UniformBound(Bound):
    """T_δ(α) = max(v − α, 0), v = Π(1 − |δ_i|/2λ)₊; K ≥ 0 iff v ≥ v* = 1 − (p_A − p_B)/2.

    p ≤ 1: one-hot. Beyond: all-equal where p ≥ 1/v* or d^(1/p)(1 − v*^(1/d)) ≤ 1 − 1/p, else one
    big coordinate b and the rest equal, a minimum over b that is taken numerically
    (docs/theory.md#theorem-k).
    """

    half_width: float
    p: float
    dim: int

    def radius(self, evidence: Evidence) -> float:
        miss = np.array([0.5 * (evidence.p_a - evidence.p_b)])
        return 2 * self.half_width * float(_radius(miss, self.p, self.dim)[0])

    @property
    def closed_form(self) -> Callable[[Array], Array]:
        return lambda alpha: 2 * self.half_width * _radius(0.5 - alpha, self.p, self.dim)


def match(question: Question) -> UniformBound | None:
    """Uniform coordinates, every norm."""
    law, p = question.noise.iid, question.norm.p
    if law is None or law.half_width is None:
        return None
    one = p <= 1 or question.dim == 1
    directions: tuple[Spectrum, ...] | None = (equal(1 if one else question.dim),)
    return UniformBound(
        theorem=THEOREM.name,
        # below p = 2 one big coordinate may be worst, and that minimum is found by zooming in
        grade=Grade.CLOSED_FORM if one or p >= 2 else Grade.FLOATING_POINT,
        engine="closed form",
        exact=True,
        directions=directions if one or p >= 2 else None,
        half_width=law.half_width,
        p=p,
        dim=question.dim,
    )


def _radius(miss: Array, p: float, dim: int) -> Array:
    """‖δ‖_p/2λ of the nearest δ with Π(1 − |δ_i|/2λ) = 1 − `miss`, for each of them."""
    if p <= 1 or dim == 1:
        return miss
    log_v = np.log1p(-miss)
    even = -np.expm1(log_v / dim)
    if math.isinf(p):
        return even
    spread = float(dim) ** (1 / p) * even
    mixed = (p < 1 / (1 - miss)) & (spread > 1 - 1 / p)
    if mixed.any():
        spread[mixed] = np.minimum(spread[mixed], _one_big(miss[mixed], p, dim) * (1 - SHORT))
    return spread


def _one_big(miss: Array, p: float, dim: int) -> Array:
    """min over b of (b^p + (d − 1)a^p)^(1/p), a = 1 − (v/(1 − b))^(1/(d − 1)), by zooming in."""
    log_v = np.log1p(-miss)[:, None]
    low, high = -np.expm1(log_v / dim), miss[:, None]
    best = np.full(len(miss), np.inf)
    rows = np.arange(len(miss))
    for _ in range(ZOOMS):
        b = low + (high - low) * np.linspace(0, 1, GRID)
        a = -np.expm1(np.minimum((log_v - np.log1p(-b)) / (dim - 1), 0.0))
        value = (b**p + (dim - 1) * a**p) ** (1 / p)
        at = np.argmin(value, axis=1)
        best = np.minimum(best, value[rows, at])
        low = b[rows, np.maximum(at - 1, 0), None]
        high = b[rows, np.minimum(at + 1, GRID - 1), None]
    return best


THEOREM = Theorem("k", "uniform, overlap of boxes", "every p > 0; uniform noise", match, rank=0)
