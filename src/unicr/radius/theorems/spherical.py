"""(i) Spherical noise: any direction is as bad as any other, so one integral is exact."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from unicr.noise import Noise, SphericalNoise
from unicr.norms import Norm
from unicr.radius._boundary import certified
from unicr.radius._readings import FIRST, LAST
from unicr.radius._spectrum import Spectrum, equal
from unicr.radius.theorems._base import Proof, Theorem, from_l2
from unicr.tradeoff import TradeOff
from unicr.tradeoff.internal import ball_steps, ball_tradeoff, falls, start_guess
from unicr.values import Array

CHECKED = ", falling density checked"


class SphericalDensity(Theorem):
    """The ℓ2 radius by an integral over the length, rounded outwards, carried to ℓp by the worst δ.

    T falls with ‖δ‖_2 because the density falls with the length (docs/theory.md#i-spherical-noise);
    that of a built-in family does by its formula, of a user's it is tested, and the name says so.
    """

    letter, words = "i", "spherical, outward rounding"
    needs = "spherical noise whose density falls with the length"
    engine = "spherical"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return isinstance(noise, SphericalNoise) and falls(noise)

    def tight(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return self.applies(noise, norm, dim)

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        assert isinstance(noise, SphericalNoise)
        size = noise.sigma if math.isfinite(noise.sigma) else noise.scale
        guess = size * start_guess(p_a, p_b) * from_l2(norm, dim)
        return certified(partial(self.tradeoff, noise, norm, dim), p_a, p_b, guess)

    def tradeoff(self, noise: Noise, norm: Norm, dim: int, r: float) -> TradeOff:
        assert isinstance(noise, SphericalNoise)
        return ball_tradeoff(noise, r / from_l2(norm, dim))

    def proof(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> Proof:
        proof = super().proof(noise, norm, dim, p_a, p_b)
        assert isinstance(noise, SphericalNoise)
        return proof if noise._proved else replace(proof, theorem=self.name + CHECKED)

    def curve(self, unit: Noise, norm: Norm, dim: int) -> tuple[Array, Array]:
        assert isinstance(unit, SphericalNoise)
        l2 = Norm(2.0)
        first, last = (self.radius(unit, l2, dim, 1 - a, a) for a in (1 - FIRST, LAST))
        alpha, radius = ball_steps(unit, first, last)
        return alpha, radius * from_l2(norm, dim)

    def directions(self, noise: Noise, norm: Norm, dim: int) -> tuple[Spectrum, ...]:
        return (equal(1) if norm.p <= 2 else equal(dim),)


THEOREM = SphericalDensity()
