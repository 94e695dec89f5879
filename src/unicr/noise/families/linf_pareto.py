"""ℓ∞-symmetric noise ∝ (1 + ‖z/s‖_∞)^(−a), a > d: Yang et al. 2020."""

from __future__ import annotations

import numpy as np

from unicr.errors import NoiseError
from unicr.noise._family import Parameter, family_of
from unicr.noise._spherical import CubeNoise
from unicr.values import Array, number


class LinfPareto(CubeNoise):
    """Heavy tails: ‖z‖/(s + ‖z‖) follows a Beta(d, a − d) law."""

    name = "linf_pareto"
    formula = "(1 + |z/s|_inf)^(-a)"
    example = "linf_pareto(a=794, sigma=1, dim=784)"
    parameters = (Parameter("a", low=2.0, high=1e7, slider=(6000.0, 50000.0, 8000.0)),)
    a: float
    _proved = True  # −a·log(1 + e^w) falls and is concave in w = log r

    @property
    def _points(self) -> tuple[float, ...]:
        if self.a <= self.dim:
            raise NoiseError(
                f"a={number(self.a)}, dim={self.dim}: linf_pareto needs a > dim, or its mass is "
                f"infinite; take a={self.dim + 10}, for example"
            )
        return (self.dim / (self.a - self.dim),)

    def _radial(self, r: Array) -> Array:
        return np.asarray(-self.a * np.log1p(r))

    def _drop(self, r: Array, gap: Array) -> Array:
        return np.asarray(self.a * np.log1p(gap / (1 + r)))

    def _bend(self, low: float, high: float) -> int:
        return 1  # −a·log(1 + r) is convex in r

    def _steepness(self, r: Array) -> Array:
        return np.asarray(self.a / (1 + r))


linf_pareto = family_of(LinfPareto)
