"""(d) Gaussian noise: exact in closed form for every p > 0, also with a scale per coordinate."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from unicr.noise import Anisotropic, Gaussian, Noise
from unicr.norms import Norm
from unicr.radius._spectrum import Spectrum, equal
from unicr.radius.theorems._base import Theorem, base_of, from_l2, half_gap, is_gaussian
from unicr.values import Array


class GaussianNoise(Theorem):
    """R_2 = σ(Φ⁻¹(p_A) − Φ⁻¹(p_B))/2; R_p = R_2 for p ≤ 2, d^(1/p − 1/2)·R_2 beyond.

    With scales s_i: max ‖δ/s‖_2 over the ℓp ball is 1/min s for p ≤ 2, else by Hölder
    (Σ s_i^(−2q))^(1/2q) with q = p/(p − 2), with equality at some δ.
    """

    letter, words = "d", "Gaussian"
    needs = "every p > 0"
    engine = "closed form"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return is_gaussian(noise)

    def tight(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return is_gaussian(noise)

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        gap = half_gap(lambda u: float(special.ndtri(u)), p_a, p_b)
        return gap * self._per_gap(noise, norm, dim)

    def closed(self, noise: Noise, norm: Norm, dim: int) -> Callable[[Array], Array]:
        factor = self._per_gap(noise, norm, dim)
        return lambda alpha: -special.ndtri(alpha) * factor

    def directions(self, noise: Noise, norm: Norm, dim: int) -> tuple[Spectrum, ...] | None:
        unequal = isinstance(noise, Anisotropic) and 2 < norm.p < math.inf
        return None if unequal else (equal(1) if norm.p <= 2 else equal(dim),)

    @staticmethod
    def _per_gap(noise: Noise, norm: Norm, dim: int) -> float:
        base = base_of(noise)
        assert isinstance(base, Gaussian)
        if not isinstance(noise, Anisotropic):
            return base.sigma * from_l2(norm, dim)
        least = float(noise.scales.min())
        if norm.p <= 2:
            return least * base.sigma
        q = 1.0 if math.isinf(norm.p) else norm.p / (norm.p - 2)
        return least * base.sigma / float(np.sum((least / noise.scales) ** (2 * q)) ** (0.5 / q))


THEOREM = GaussianNoise()
