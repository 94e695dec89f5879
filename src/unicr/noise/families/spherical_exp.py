"""Spherical noise ∝ exp(−‖z/s‖^k): Gaussian at k = 2."""

from __future__ import annotations

import math

from unicr.errors import NoiseError
from unicr.noise._family import Parameter
from unicr.noise._spherical import SphericalNoise
from unicr.values import Array, number


class SphericalExp(SphericalNoise):
    """Heavier than Gaussian noise for k < 2, towards the uniform ball for large k."""

    name = "spherical_exp"
    formula = "exp(-|z/s|^k)"
    example = "spherical_exp(k=1, sigma=1, dim=784)"
    parameters = (Parameter("k", low=0.1, high=100.0, slider=(0.2, 8.0, 1.0)),)
    k: float

    @property
    def _points(self) -> tuple[float, ...]:
        log_mode = math.log((self.dim - 1) / self.k) / self.k
        if log_mode > 300:
            raise NoiseError(
                f"k={number(self.k)}, dim={self.dim}: the radius of spherical_exp is near "
                f"exp({log_mode:.4g}), beyond floating point; take a larger k"
            )
        return (math.exp(log_mode),)

    def _radial(self, r: Array) -> Array:
        return -(r**self.k)
