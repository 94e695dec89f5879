"""(m) ℓ∞-symmetric noise in ℓp, 1 < p < ∞: the worst perturbation of each cube by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unicr.noise import RadialNoise
from unicr.radius._grade import Grade, grade_proof
from unicr.radius._question import Evidence, Question
from unicr.radius.theorems._base import Theorem, TradeOffBound
from unicr.tradeoff import TradeOff
from unicr.tradeoff.internal import (
    cube_levels_tradeoff,
    falls,
    guess_radius,
    maximise,
    rounds_outward,
)
from unicr.values import Array

SIZES = 600  # of one coordinate, between which the overlap is rounded down
BLOCK = 64  # cells of the cube's size that are taken together
TOLERANCE = 1e-4  # of the radius: a trade-off costs a second here, and this loses little


@dataclass(frozen=True, eq=False, kw_only=True)
class CubesBound(TradeOffBound):
    """The overlap of two cubes, Π(1 − (|δ_i| − D)₊/2b)₊, from below over all ‖δ‖_p ≤ r.

    With w(v) the log of a factor at v = |δ_i|^p, Σ w(v_i) ≥ d·min_v (w(v) + κv) − κr^p for every
    κ ≥ 0. One κ serves all cubes at one level; the minimum is rounded down between sizes
    (docs/theory.md#theorem-l).
    """

    noise: RadialNoise
    p: float

    def tradeoff(self, r: float) -> TradeOff:
        return cube_levels_tradeoff(self.noise, _make_least_overlap(self.p, self.noise.dim, r))

    def guess(self, evidence: Evidence) -> float:
        size = float(self.noise.length.ppf(0.5)) / self.noise.dim
        return size * guess_radius(evidence.p_a, evidence.p_b)


def match(question: Question) -> CubesBound | None:
    """A falling density of the ℓ∞ length, in a norm between ℓ1 and ℓ∞."""
    noise, p = question.noise.radial, question.norm.p
    if noise is None or not math.isinf(noise.order) or not 1 < p < math.inf or not falls(noise):
        return None
    grade = Grade.OUTWARD_ROUNDING if rounds_outward(noise) else Grade.FLOATING_POINT
    return CubesBound(
        theorem=THEOREM.name,
        grade=grade_proof(grade, noise),
        engine="quadrature",
        tolerance=TOLERANCE,
        noise=noise,
        p=p,
    )


def _make_least_overlap(p: float, dim: int, r: float) -> Callable[[Array, Array], Array]:
    """log of the least overlap over ‖δ‖_p ≤ r, from below, for cubes b (rising) with gaps D.

    Any κ ≥ 0 gives a bound (docs/theory.md#theorem-l, (m)), so how κ is sought does not matter. In
    a block of cells the smallest cube and the smallest gap stand for all. Rounding of the two terms
    of κ is below 1e-10 of the overlap while κr^p ≤ 1e5, which the charge of a cell's mass pays; and
    that of sizes is below what every radius is lowered by.
    """
    total = r**p
    v = total * np.concatenate([[0.0], np.geomspace(1e-3 / dim, 1.0, SIZES)])
    size = v ** (1 / p)

    def least(b: Array, gap: Array) -> Array:
        first = np.arange(0, b.size, BLOCK)
        side, near = b[first], np.minimum.reduceat(gap, first)
        moved = np.maximum(size[None, 1:] - near[:, None], 0.0) / (2 * side[:, None])
        moved *= 1 + 1e-15  # a difference and a quotient: two roundings
        with np.errstate(divide="ignore"):
            w = np.log1p(-np.minimum(moved, 1.0))
        middle = w[w.shape[0] // 2]

        def value(kappa: float, row: Array) -> Array:
            return np.asarray(dim * np.min(row + kappa * v[:-1], axis=-1) - kappa * total)

        tried = [0.0, *(np.geomspace(1e-4, 1e4, 25) * (1.0 / total)).tolist()]
        kappa, _ = maximise(lambda k: float(value(k, middle)), tried, 7)
        bound = value(kappa, w)
        return np.repeat(bound, BLOCK)[: b.size]

    return least


THEOREM = Theorem(
    "m",
    "cube by cube",
    "ℓp, 1 < p < ∞; noise φ(‖z‖_∞), φ falls",
    match,
    computed_in=("unicr.tradeoff._falling",),
)
