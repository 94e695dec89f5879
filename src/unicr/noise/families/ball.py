"""Spherical noise, uniform on the ball of radius s."""

from __future__ import annotations

import numpy as np

from unicr.noise._family import family_of
from unicr.noise._spherical import SphericalNoise
from unicr.values import Array


class Ball(SphericalNoise):
    """Bounded, and exact against ℓ2."""

    name = "ball"
    formula = "1 on |z| <= s"
    example = "ball(sigma=1, dim=784)"
    _radial_support = (0.0, 1.0)
    _points = (1.0,)
    _proved = _flat = True

    def _radial(self, r: Array) -> Array:
        return np.zeros_like(r)

    def _drop(self, r: Array, gap: Array) -> Array:
        return np.zeros_like(r)


ball = family_of(Ball)
