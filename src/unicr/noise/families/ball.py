"""Spherical noise, uniform on the ball of radius s."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unicr.law import RadialDensity
from unicr.noise._family import RadialFamily
from unicr.noise.families._balls import L2
from unicr.values import Array


@dataclass(frozen=True)
class Constant(RadialDensity):
    """Bounded, and exact against ℓ2."""

    by_formula = flat = True
    end = 1.0

    def typical_lengths(self, dim: int) -> tuple[float, ...]:
        return (1.0,)

    def log_density(self, r: Array) -> Array:
        return np.zeros_like(r)

    def drop(self, r: Array, gap: Array, power: int) -> Array:
        return np.zeros_like(r)


ball = RadialFamily("ball", Constant, L2, formula="1 on |z| <= s", example="ball(sigma=1, dim=784)")
