"""What the densities r^(−j)·exp(−r^k) share, whatever the norm: ‖z‖^k ~ Gamma((d − j)/k)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from unicr.errors import NoiseError
from unicr.law import RadialDensity
from unicr.noise._family import Parameter
from unicr.text import number
from unicr.values import Array

MARGIN = 1e-12  # for the sign of a second derivative: some roundings of a power


@dataclass(frozen=True)
class Powers(RadialDensity):
    """−j·w − e^(kw) falls and is concave in w = log r."""

    k: float
    j: float = 0.0
    by_formula = True

    def typical_lengths(self, dim: int) -> tuple[float, ...]:
        rest = dim - self.j
        if rest <= 0.05:
            raise NoiseError(
                f"j={number(self.j)} must be below dim={dim}: otherwise r^(-j)·exp(-r^k) has "
                "infinite mass near zero"
            )
        log_mode = math.log(max(rest - 1, 0.25) / self.k) / self.k
        if log_mode > 300:
            raise NoiseError(
                f"k={number(self.k)}, dim={dim}: the noise vectors have lengths near "
                f"exp({log_mode:.4g}), which floating point cannot hold; use a larger k"
            )
        return (math.exp(log_mode),)

    def log_density(self, r: Array) -> Array:
        return np.asarray(-special.xlogy(self.j, r) - r**self.k)

    def drop(self, r: Array, gap: Array, power: int) -> Array:
        longer = np.log1p(gap / r**power) / power
        return np.asarray(self.j * longer + r**self.k * np.expm1(self.k * longer))

    def bend(self, low: float, high: float, power: int) -> int:
        # with v = r^e: (d/dv)² of −(j/e)·log v − v^(k/e) has the sign of j − k(k/e − 1)·r^k
        factor = self.k * (self.k / power - 1)
        if self.j >= factor * high**self.k * (1 + MARGIN):
            return 1
        return -1 if self.j <= factor * low**self.k * (1 - MARGIN) else 0

    def steepness(self, r: Array, power: int) -> Array:
        return np.asarray((self.j + self.k * r**self.k) / (power * r**power))


J = Parameter("j", low=0.0, high=1e7, slider=(0.0, 700.0, 0.0))


def make_k(first: float) -> Parameter:
    """The number k, which the explorer's page begins with at `first`."""
    return Parameter("k", low=0.1, high=100.0, slider=(0.2, 8.0, first))
