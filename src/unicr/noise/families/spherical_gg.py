"""Spherical noise ∝ ‖z‖^(−2k)·exp(−‖z‖²/2s²), 2k < d: Zhang et al., DSRS."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from unicr.errors import NoiseError
from unicr.noise._family import Parameter, family_of
from unicr.noise._spherical import SphericalNoise
from unicr.values import Array, number


class SphericalGG(SphericalNoise):
    """Gaussian with its mass pulled towards the centre."""

    name = "spherical_gg"
    formula = "|z|^(-2k) exp(-|z|^2/(2 s^2))"
    example = "spherical_gg(k=1530, sigma=0.5, dim=3072)"
    parameters = (Parameter("k", low=0.0, high=5e6, slider=(0.0, 2000.0, 100.0)),)
    k: float
    _proved = True  # −2k·w − e^(2w)/2 falls and is concave in w = log r

    @property
    def _points(self) -> tuple[float, ...]:
        if 2 * self.k >= self.dim:
            raise NoiseError(
                f"k={number(self.k)}, dim={self.dim}: spherical_gg needs 0 <= 2k < dim to be "
                "integrable"
            )
        return (math.sqrt(max(self.dim - 1 - 2 * self.k, 0.25)),)

    def _radial(self, r: Array) -> Array:
        return np.asarray(-special.xlogy(2 * self.k, r) - r * r / 2)

    def _drop(self, r: Array, gap: Array) -> Array:
        return np.asarray(self.k * np.log1p(gap / (r * r)) + 0.5 * gap)

    def _bend(self, low: float, high: float) -> int:
        return 1  # −k·log v − v/2 is convex in v = r²

    def _steepness(self, r: Array) -> Array:
        return np.asarray(self.k / (r * r) + 0.5)


spherical_gg = family_of(SphericalGG)
