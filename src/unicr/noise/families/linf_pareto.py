"""ℓ∞-symmetric noise ∝ (1 + ‖z/s‖_∞)^(−a), a > d: Yang et al. 2020."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unicr.errors import NoiseError
from unicr.law import RadialDensity
from unicr.noise._family import Parameter, RadialFamily
from unicr.noise.families._balls import LINF
from unicr.text import number
from unicr.values import Array


@dataclass(frozen=True)
class LengthPareto(RadialDensity):
    """Heavy tails: ‖z‖/(s + ‖z‖) follows a Beta(d, a − d) law."""

    a: float
    by_formula = True  # −a·log(1 + e^w) falls and is concave in w = log r

    def typical_lengths(self, dim: int) -> tuple[float, ...]:
        if self.a <= dim:
            raise NoiseError(
                f"a={number(self.a)} must be above dim={dim}: otherwise linf_pareto has infinite "
                f"mass; use a={dim + 10}, for example"
            )
        return (dim / (self.a - dim),)

    def log_density(self, r: Array) -> Array:
        return np.asarray(-self.a * np.log1p(r))

    def drop(self, r: Array, gap: Array, power: int) -> Array:
        return np.asarray(self.a * np.log1p(gap / (1 + r)))

    def bend(self, low: float, high: float, power: int) -> int:
        return 1  # −a·log(1 + r) is convex in r

    def steepness(self, r: Array, power: int) -> Array:
        return np.asarray(self.a / (1 + r))


linf_pareto = RadialFamily(
    "linf_pareto",
    LengthPareto,
    LINF,
    formula="(1 + |z/s|_inf)^(-a)",
    example="linf_pareto(a=794, sigma=1, dim=784)",
    parameters=(Parameter("a", low=2.0, high=1e7, slider=(6000.0, 50000.0, 8000.0)),),
)
