"""Laplace–Gaussian mixture noise, density ∝ β·exp(−|x/α|) + (1−β)·exp(−|x/α|²)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from unicr.noise._between import Between
from unicr.values import Array


class LaplaceGauss(Between):
    """Both parts share α. Log-concave only at the ends: between them the slope turns back up."""

    name = "lapgauss"
    formula = "b*exp(-|x/a|)+(1-b)*exp(-|x/a|^2)"
    example = "lapgauss(beta=0.5, sigma=1)"

    @property
    def _mass(self) -> float:
        return 2 * self.beta + (1 - self.beta) * math.sqrt(math.pi)

    @property
    def _log_concave(self) -> bool:
        return self.beta in (0.0, 1.0)

    @property
    def _std(self) -> float:
        second = 4 * self.beta + (1 - self.beta) * math.sqrt(math.pi) / 2
        return math.sqrt(second / self._mass)

    @property
    def _log_norm(self) -> float:
        return math.log(self._mass)

    def _kernel(self, z: Any, xp: Any) -> Any:
        a = xp.abs(z)
        if self.beta == 0:
            return -a * a
        if self.beta == 1:
            return -a
        return xp.logaddexp(math.log(self.beta) - a, math.log1p(-self.beta) - a * a)

    def _tail(self, z: Array) -> Array:
        gauss = (1 - self.beta) * math.sqrt(math.pi) / 2 * special.erfc(z)
        return (self.beta * np.exp(-z) + gauss) / self._mass

    def _density(self, z: Array) -> Array:
        return (self.beta * np.exp(-z) + (1 - self.beta) * np.exp(-z * z)) / self._mass
