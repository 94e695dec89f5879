"""(k) Uniform noise: exact in every ℓp, because only the overlap of two boxes matters."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from unicr.noise import Noise, Uniform
from unicr.norms import Norm
from unicr.radius._spectrum import Spectrum, equal
from unicr.radius.theorems._base import Theorem
from unicr.values import Array

GRID = 129
ZOOMS = 5
SHORT = 1e-9  # what the numeric minimum may miss


class UniformNoise(Theorem):
    """T_δ(α) = max(v − α, 0), v = Π(1 − |δ_i|/2λ)₊; K ≥ 0 iff v ≥ v* = 1 − (p_A − p_B)/2.

    p ≤ 1: one-hot. Beyond: all-equal where p ≥ 1/v* or d^(1/p)(1 − v*^(1/d)) ≤ 1 − 1/p, else one
    big coordinate b and the rest equal, a minimum over b that is taken numerically.
    """

    letter, words = "k", "uniform, overlap of boxes"
    needs = "every p > 0; uniform noise"
    engine = "closed form"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return isinstance(noise, Uniform)

    def tight(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return self.applies(noise, norm, dim)

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        assert isinstance(noise, Uniform)
        miss = np.array([0.5 * (p_a - p_b)])
        return 2 * noise.scale * float(_radius(miss, norm.p, dim)[0])

    def closed(self, noise: Noise, norm: Norm, dim: int) -> Callable[[Array], Array]:
        assert isinstance(noise, Uniform)
        scale = noise.scale
        return lambda alpha: 2 * scale * _radius(0.5 - np.asarray(alpha), norm.p, dim)

    def directions(self, noise: Noise, norm: Norm, dim: int) -> tuple[Spectrum, ...] | None:
        if norm.p <= 1 or dim == 1:
            return (equal(1),)
        return (equal(dim),) if norm.p >= 2 else None


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


THEOREM = UniformNoise()
