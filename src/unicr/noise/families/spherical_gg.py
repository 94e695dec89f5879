"""Spherical noise ∝ ‖z‖^(−2k)·exp(−‖z‖²/2s²), 2k < d: Zhang et al., DSRS."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from unicr.errors import NoiseError
from unicr.law import RadialDensity
from unicr.noise._family import Parameter, RadialFamily
from unicr.noise.families._balls import L2
from unicr.text import number
from unicr.values import Array


@dataclass(frozen=True)
class PulledGaussian(RadialDensity):
    """Gaussian with its mass pulled towards the centre."""

    k: float
    by_formula = True  # −2k·w − e^(2w)/2 falls and is concave in w = log r

    def typical_lengths(self, dim: int) -> tuple[float, ...]:
        if 2 * self.k >= dim:
            raise NoiseError(
                f"k={number(self.k)}, dim={dim}: spherical_gg needs 0 <= 2k < dim, otherwise its "
                "mass is infinite"
            )
        return (math.sqrt(max(dim - 1 - 2 * self.k, 0.25)),)

    def log_density(self, r: Array) -> Array:
        return np.asarray(-special.xlogy(2 * self.k, r) - r * r / 2)

    def drop(self, r: Array, gap: Array, power: int) -> Array:
        return np.asarray(self.k * np.log1p(gap / (r * r)) + 0.5 * gap)

    def bend(self, low: float, high: float, power: int) -> int:
        return 1  # −k·log v − v/2 is convex in v = r²

    def steepness(self, r: Array, power: int) -> Array:
        return np.asarray(self.k / (r * r) + 0.5)


spherical_gg = RadialFamily(
    "spherical_gg",
    PulledGaussian,
    L2,
    formula="|z|^(-2k) exp(-|z|^2/(2 s^2))",
    example="spherical_gg(k=1530, sigma=0.5, dim=3072)",
    parameters=(Parameter("k", low=0.0, high=5e6, slider=(0.0, 2000.0, 100.0)),),
)
