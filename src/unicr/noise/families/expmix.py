"""Exponential mixture noise, density ∝ exp(−β|x/α| − (1−β)|x/α|²)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from unicr.noise._between import Between
from unicr.values import Array


class ExponentialMix(Between):
    """From Gaussian (β = 0) to Laplace (β = 1), log-concave all the way."""

    name = "expmix"
    formula = "exp(-b|x/a|-(1-b)|x/a|^2)"
    example = "expmix(beta=0.5, sigma=1)"

    @property
    def _half_mass(self) -> float:
        return float(self._raw_tail(np.zeros(())))

    @property
    def _std(self) -> float:
        a, b = self.beta, 1 - self.beta
        if b < 0.2:  # integrate: the recursion below cancels
            nodes, weights = special.roots_laguerre(100)
            moments = [
                float(np.sum(weights * nodes**k * np.exp((1 - a) * (nodes - nodes**2))))
                for k in (0, 2)
            ]
            return math.sqrt(moments[1] / moments[0])
        first = (1 - a * self._half_mass) / (2 * b)
        second = (self._half_mass - a * first) / (2 * b)
        return math.sqrt(second / self._half_mass)

    @property
    def _log_norm(self) -> float:
        return math.log(2 * self._half_mass)

    def _kernel(self, z: Any, xp: Any) -> Any:
        a = xp.abs(z)
        return -a * (self.beta + (1 - self.beta) * a) if self.beta < 1 else -a

    def _raw_tail(self, z: Array) -> Array:
        b = 1 - self.beta
        if b == 0:
            return np.exp(-z)
        root = math.sqrt(b)
        mills = math.sqrt(math.pi) / (2 * root) * special.erfcx(root * z + self.beta / (2 * root))
        return np.asarray(np.exp(-z * (self.beta + b * z)) * mills)

    def _tail(self, z: Array) -> Array:
        return 0.5 * self._raw_tail(z) / self._half_mass

    def _density(self, z: Array) -> Array:
        return np.asarray(np.exp(self._kernel(z, np)) / (2 * self._half_mass), dtype=np.float64)
