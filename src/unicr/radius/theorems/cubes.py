"""(m) ℓ∞-symmetric noise in ℓp, 1 < p < ∞: the worst perturbation of each cube by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from unicr.noise import Noise
from unicr.noise.internal import CubeNoise
from unicr.norms import Norm
from unicr.radius._boundary import certified
from unicr.radius.theorems._base import Theorem
from unicr.tradeoff import TradeOff
from unicr.tradeoff.internal import cube_levels_tradeoff, falls, highest, start_guess
from unicr.values import Array

SIZES = 600  # of one coordinate, between which the overlap is rounded down
BLOCK = 64  # cells of the cube's size that are taken together


class Cubes(Theorem):
    """The overlap of two cubes, Π(1 − (|δ_i| − D)₊/2b)₊, from below over all ‖δ‖_p ≤ r.

    With w(v) the log of a factor at v = |δ_i|^p, Σ w(v_i) ≥ d·min_v (w(v) + κv) − κr^p for every
    κ ≥ 0. One κ serves all cubes at one level; the minimum is rounded down between sizes.
    """

    letter, words = "m", "cube by cube"
    needs = "ℓp, 1 < p < ∞; noise φ(‖z‖_∞), φ falls"
    engine = "quadrature"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return isinstance(noise, CubeNoise) and 1 < norm.p < math.inf and falls(noise)

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        assert isinstance(noise, CubeNoise)
        guess = float(noise.radius_ppf(0.5)) / dim * start_guess(p_a, p_b)
        moved = partial(self.tradeoff, noise, norm, dim)
        return certified(moved, p_a, p_b, guess, tolerance=1e-4)

    def tradeoff(self, noise: Noise, norm: Norm, dim: int, r: float) -> TradeOff:
        assert isinstance(noise, CubeNoise)
        return cube_levels_tradeoff(noise, _least(norm.p, dim, r / noise.scale))


def _least(p: float, dim: int, r: float) -> Callable[[Array, Array], Array]:
    """log of the least overlap over ‖δ‖_p ≤ r, for cubes b (rising) with gaps D."""
    total = r**p
    v = total * np.concatenate([[0.0], np.geomspace(1e-3 / dim, 1.0, SIZES)])
    size = v ** (1 / p)

    def least(b: Array, gap: Array) -> Array:
        first = np.arange(0, b.size, BLOCK)
        side, near = b[first], np.minimum.reduceat(gap, first)
        moved = np.maximum(size[None, 1:] - near[:, None], 0.0) / (2 * side[:, None])
        with np.errstate(divide="ignore"):
            w = np.log1p(-np.minimum(moved, 1.0))
        middle = w[w.shape[0] // 2]

        def value(kappa: float, row: Array) -> Array:
            return np.asarray(dim * np.min(row + kappa * v[:-1], axis=-1) - kappa * total)

        tried = [0.0, *(np.geomspace(1e-4, 1e4, 25) * (1.0 / total)).tolist()]
        kappa, _ = highest(lambda k: float(value(k, middle)), tried, 7)
        bound = value(kappa, w)
        return np.repeat(bound, BLOCK)[: b.size]

    return least


THEOREM = Cubes()
