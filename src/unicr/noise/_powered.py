"""The radial function ‖z‖^(−j)·exp(−‖z‖^k) of any norm: a power of the length is Gamma."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from unicr.errors import NoiseError
from unicr.noise._spherical import RadialNoise
from unicr.values import Array, number


class Powered(RadialNoise):
    """‖z‖^k ~ Gamma((d − j)/k)."""

    k: float
    j: float

    @property
    def _points(self) -> tuple[float, ...]:
        rest = self.dim - self.j
        if rest <= 0.05:
            raise NoiseError(
                f"j={number(self.j)}, dim={self.dim}: {self.name} needs j < dim, or its mass is "
                "infinite near zero"
            )
        log_mode = math.log(max(rest - 1, 0.25) / self.k) / self.k
        if log_mode > 300:
            raise NoiseError(
                f"k={number(self.k)}, dim={self.dim}: the length of {self.name} is near "
                f"exp({log_mode:.4g}), beyond floating point; take a larger k"
            )
        return (math.exp(log_mode),)

    def _radial(self, r: Array) -> Array:
        return np.asarray(-special.xlogy(self.j, r) - r**self.k)
