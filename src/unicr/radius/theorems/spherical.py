"""(i) Spherical noise: any direction is as bad as any other, so one quadrature is exact."""

from __future__ import annotations

import math

from unicr.noise import Noise, Spherical, SphericalNoise
from unicr.norms import Norm
from unicr.radius._boundary import first_root, margin, start_margin
from unicr.radius._spectrum import Spectrum, equal
from unicr.radius.theorems._base import Theorem, from_l2, start_guess
from unicr.tradeoff import TradeOff
from unicr.tradeoff.internal import spherical_tradeoff


class SphericalDensity(Theorem):
    """The ℓ2 radius by quadrature over length and angle, carried to ℓp by the worst δ.

    The built-in densities fall with the length, so T falls with ‖δ‖_2. The quadrature errs on the
    safe side for them; for a user's φ it is an estimate, and nothing is proved.
    """

    letter, words = "i", "spherical, to quadrature"
    needs = "spherical noise, built-in families"
    engine = "spherical"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return isinstance(noise, SphericalNoise) and not isinstance(noise, Spherical)

    def tight(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return self.applies(noise, norm, dim)

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        """The first root along any direction; for a user's φ an estimate."""
        assert isinstance(noise, SphericalNoise)

        def value(r: float) -> float:
            return margin(spherical_tradeoff(noise, r), p_a, p_b)

        size = noise.sigma if math.isfinite(noise.sigma) else noise.scale
        guess = size * start_guess(p_a, p_b)
        found = first_root(value, start_margin(p_a, p_b), guess, monotone=False)
        return found * from_l2(norm, dim)

    def tradeoff(self, noise: Noise, norm: Norm, dim: int, r: float) -> TradeOff:
        assert isinstance(noise, SphericalNoise)
        return spherical_tradeoff(noise, r / from_l2(norm, dim))

    def directions(self, noise: Noise, norm: Norm, dim: int) -> tuple[Spectrum, ...]:
        return (equal(1) if norm.p <= 2 else equal(dim),)


THEOREM = SphericalDensity()
