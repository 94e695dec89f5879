"""(k) Uniform noise: exact in every ℓp, because only the overlap of two boxes matters."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unicr.radius._grade import Grade
from unicr.radius._question import Evidence, Question
from unicr.radius._spectrum import Spectrum, equal_spectrum
from unicr.radius.theorems._base import Bound, Theorem
from unicr.values import Array

# Cells of the big coordinate's size. Each gives a lower bound that misses by about 1/8 of its
# width squared, so more of them cost time and gain radius; none is needed for the proof.
CELLS = 128
# Rounds in which the cells that may hold the minimum are cut again: near a minimum two or three of
# 128 stay, so that after three rounds the bound is within 1e-9 of the minimum.
ROUNDS = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class UniformBound(Bound):
    """T_δ(α) = max(v − α, 0), v = Π(1 − |δ_i|/2λ)₊; K ≥ 0 iff v ≥ v* = 1 − (p_A − p_B)/2.

    p ≤ 1: one-hot. Beyond: all-equal where p ≥ 1/v* or d^(1/p)(1 − v*^(1/d)) ≤ 1 − 1/p, else one
    big coordinate and the rest equal, a minimum over one number that is bounded from below
    (docs/theory.md#theorem-k).
    """

    half_width: float
    p: float
    dim: int

    def radius(self, evidence: Evidence) -> float:
        lost = np.array([0.5 * (evidence.p_a - evidence.p_b)])
        return 2 * self.half_width * float(_solve_radius(lost, self.p, self.dim)[0])

    @property
    def closed_form(self) -> Callable[[Array], Array]:
        return lambda alpha: 2 * self.half_width * _solve_radius(0.5 - alpha, self.p, self.dim)


def match(question: Question) -> UniformBound | None:
    """Uniform coordinates, every norm."""
    law, p = question.noise.iid, question.norm.p
    if law is None or law.half_width is None:
        return None
    one_hot = p <= 1 or question.dim == 1
    directions: tuple[Spectrum, ...] | None = (equal_spectrum(1 if one_hot else question.dim),)
    return UniformBound(
        theorem=THEOREM.name,
        # v* ≥ 1/2, so p ≥ 2 has p ≥ 1/v*; below, one big coordinate may be worst
        grade=Grade.CLOSED_FORM if one_hot or p >= 2 else Grade.OUTWARD_ROUNDING,
        engine="closed form",
        exact=True,
        directions=directions if one_hot or p >= 2 else None,
        half_width=law.half_width,
        p=p,
        dim=question.dim,
    )


def _solve_radius(lost: Array, p: float, dim: int) -> Array:
    """‖δ‖_p/2λ of the nearest δ with Π(1 − |δ_i|/2λ) = 1 − `lost`, for each, from below.

    See docs/theory.md#theorem-k.
    """
    if p <= 1 or dim == 1:
        return lost
    total = -np.log1p(-lost)
    even = -np.expm1(-total / dim)
    if math.isinf(p):
        return even
    radius = float(dim) ** (1 / p) * even
    one_big = (p < 1 / (1 - lost)) & (radius > 1 - 1 / p)
    if one_big.any():
        least = _bound_one_big(total[one_big], p, dim) ** (1 / p)
        radius[one_big] = np.minimum(radius[one_big], least)
    return radius


def _bound_one_big(total: Array, p: float, dim: int) -> Array:
    """min over s of g(s) + (d − 1)g(t), s + (d − 1)t = `total`, from below, for each of them.

    g(s) = (1 − e^(−s))^p is convex up to s* = log p and concave beyond, and a minimum has s there
    and t before it (docs/theory.md#theorem-k). So in a cell of s the chord bounds g(s) from below
    and the tangent in its middle g(t): their sum is straight, and least at an end of the cell. A
    cell whose bound is above a value that is attained elsewhere does not hold the minimum.
    """
    total, rest = total[:, None], dim - 1
    turn = math.log(p)
    low = np.maximum(np.maximum(turn, total / dim), total - rest * turn)
    high = total
    rows = np.arange(len(total))
    for _ in range(ROUNDS):
        s = low + (high - low) * (np.arange(CELLS + 1) / CELLS)
        t = np.maximum(total - s, 0.0) / rest
        big = (-np.expm1(-s)) ** p
        middle = 0.5 * (t[:, 1:] + t[:, :-1])
        small = -np.expm1(-middle)
        height, slope = small**p, p * small ** (p - 1) * (1.0 - small)
        at_left = big[:, :-1] + rest * (height + slope * (t[:, :-1] - middle))
        at_right = big[:, 1:] + rest * (height + slope * (t[:, 1:] - middle))
        bound = np.minimum(at_left, at_right)
        attained = np.min(big + rest * (-np.expm1(-t)) ** p, axis=1, keepdims=True)
        kept = bound <= attained
        first, last = np.argmax(kept, axis=1), CELLS - np.argmax(kept[:, ::-1], axis=1)
        low, high = s[rows, first, None], s[rows, last, None]
    return np.min(bound, axis=1)


THEOREM = Theorem("k", "uniform, overlap of boxes", "every p > 0; uniform noise", match, rank=0)
