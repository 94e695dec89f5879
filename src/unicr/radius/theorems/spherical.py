"""(i) Spherical noise: any direction is as bad as any other, so one quadrature is exact."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from unicr.noise import Noise, Spherical, SphericalNoise
from unicr.norms import Norm
from unicr.radius._boundary import certified
from unicr.radius._spectrum import Spectrum, equal
from unicr.radius.theorems._base import Proof, Theorem, from_l2
from unicr.tradeoff import TradeOff
from unicr.tradeoff.internal import ball_tradeoff, falls, spherical_tradeoff, start_guess

ROUNDED = "(i) spherical, outward rounding, falling density checked"


class SphericalDensity(Theorem):
    """The ℓ2 radius by quadrature over length and angle, carried to ℓp by the worst δ.

    Where the density falls with the length, T falls with ‖δ‖_2. The quadrature errs on the safe
    side for the built-in families; a user's φ that falls is summed with outward rounding; for any
    other φ `radius` is an estimate, and nothing is proved.
    """

    letter, words = "i", "spherical, to quadrature"
    needs = "spherical noise: built-in families, or a density that falls with the length"
    engine = "spherical"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        if not isinstance(noise, Spherical):
            return isinstance(noise, SphericalNoise)
        return falls(noise)

    def tight(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return self.applies(noise, norm, dim)

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        """The first root along any direction; for a user's φ an estimate."""
        assert isinstance(noise, SphericalNoise)
        size = noise.sigma if math.isfinite(noise.sigma) else noise.scale
        guess = size * start_guess(p_a, p_b) * from_l2(norm, dim)
        moved = partial(self.tradeoff, noise, norm, dim)
        return certified(moved, p_a, p_b, guess, monotone=_rounded(noise))

    def tradeoff(self, noise: Noise, norm: Norm, dim: int, r: float) -> TradeOff:
        assert isinstance(noise, SphericalNoise)
        r = r / from_l2(norm, dim)
        return ball_tradeoff(noise, r) if _rounded(noise) else spherical_tradeoff(noise, r)

    def proof(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> Proof:
        found = super().proof(noise, norm, dim, p_a, p_b)
        return replace(found, theorem=ROUNDED) if _rounded(noise) else found

    def directions(self, noise: Noise, norm: Norm, dim: int) -> tuple[Spectrum, ...]:
        return (equal(1) if norm.p <= 2 else equal(dim),)


def _rounded(noise: Noise) -> bool:
    return isinstance(noise, Spherical) and falls(noise)


THEOREM = SphericalDensity()
