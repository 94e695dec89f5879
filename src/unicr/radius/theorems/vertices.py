"""(l) ℓ∞- and ℓ1-symmetric noise: the worst δ is a vertex of the ball of perturbations."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from unicr.noise import Noise
from unicr.noise.internal import CubeNoise, RadialNoise
from unicr.norms import Norm
from unicr.radius._boundary import certified
from unicr.radius._spectrum import Spectrum, equal
from unicr.radius.theorems._base import Theorem
from unicr.tradeoff import TradeOff
from unicr.tradeoff.internal import cross_tradeoff, cube_tradeoff, falls, start_guess


class Vertices(Theorem):
    """One coordinate in ℓp, p ≤ 1; all coordinates in ℓ∞.

    1 − H = ∫ vol(K_a ∩ (K_b + δ)) du over the levels u, K the balls on which a falling density
    exceeds u. Each volume is log-concave in δ (Brunn–Minkowski), so over a polytope of δ it is
    least at a vertex; the vertices of the ℓ1 and of the ℓ∞ ball are all alike for a noise that
    knows neither signs nor the order of coordinates, so one is worst for all levels at once.
    """

    letter, words = "l", "vertices, falling density of a norm"
    needs = "ℓp, p ≤ 1, noise φ(‖z‖_∞) or φ(‖z‖_1); ℓ∞, noise φ(‖z‖_∞); φ falls"
    engine = "quadrature"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        if not isinstance(noise, RadialNoise) or noise.order == 2:
            return False
        every = isinstance(noise, CubeNoise) and math.isinf(norm.p)
        return (norm.p <= 1 or every) and falls(noise)

    def tight(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return self.applies(noise, norm, dim)

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        assert isinstance(noise, RadialNoise)
        r = noise.radius_ppf(np.array([0.25, 0.75]))
        slope = float(-np.diff(noise.radial_logpdf(r))[0] / np.diff(r)[0])
        guess = start_guess(p_a, p_b) / max(slope, 1e-12 / r[0])
        if norm.p <= 1 and isinstance(noise, CubeNoise):
            guess = float(r[0]) * (p_a - p_b)
        return certified(partial(self.tradeoff, noise, norm, dim), p_a, p_b, guess)

    def tradeoff(self, noise: Noise, norm: Norm, dim: int, r: float) -> TradeOff:
        assert isinstance(noise, RadialNoise)
        if noise.order == 1:
            return cross_tradeoff(noise, r)
        return cube_tradeoff(noise, [(r, 1 if norm.p <= 1 else dim)])

    def directions(self, noise: Noise, norm: Norm, dim: int) -> tuple[Spectrum, ...]:
        return (equal(1) if norm.p <= 1 else equal(dim),)


THEOREM = Vertices()
