"""Laplace–Gaussian mixture noise, density ∝ β·exp(−|x/α|) + (1−β)·exp(−|x/α|²)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from unicr.law import SymmetricLaw, invert_tail
from unicr.noise._family import IIDFamily, Parameter
from unicr.values import Array


@dataclass(frozen=True)
class LaplaceGauss(SymmetricLaw):
    """Both parts share α. Log-concave only at the ends: between them the slope turns back up."""

    beta: float

    @property
    def _mass(self) -> float:
        return 2 * self.beta + (1 - self.beta) * math.sqrt(math.pi)

    @property
    def log_concave(self) -> bool:
        return self.beta in (0.0, 1.0)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return (0.0,) if self.beta > 0 else ()

    @property
    def std(self) -> float:
        second = 4 * self.beta + (1 - self.beta) * math.sqrt(math.pi) / 2
        return math.sqrt(second / self._mass)

    @property
    def log_norm(self) -> float:
        return math.log(self._mass)

    def kernel(self, z: Any, xp: Any) -> Any:
        a = xp.abs(z)
        if self.beta == 0:
            return -a * a
        if self.beta == 1:
            return -a
        return xp.logaddexp(math.log(self.beta) - a, math.log1p(-self.beta) - a * a)

    def tail(self, z: Array) -> Array:
        gauss = (1 - self.beta) * math.sqrt(math.pi) / 2 * special.erfc(z)
        return (self.beta * np.exp(-z) + gauss) / self._mass

    def _density(self, z: Array) -> Array:
        return (self.beta * np.exp(-z) + (1 - self.beta) * np.exp(-z * z)) / self._mass

    def tail_inverse(self, v: Array) -> Array:
        return invert_tail(self.tail, self._density, v)


lapgauss = IIDFamily(
    "lapgauss",
    LaplaceGauss,
    formula="b*exp(-|x/a|)+(1-b)*exp(-|x/a|^2)",
    example="lapgauss(beta=0.5, sigma=1)",
    parameters=(
        Parameter(
            "beta",
            low=0.0,
            high=1.0,
            slider=(0.0, 1.0, 0.5),
            axis=(0.0, 1.0, 0.25),
            gallery=(0.0, 0.25, 0.5, 0.75, 1.0),
            equal=((0.0, "gaussian"), (1.0, "laplace")),
        ),
    ),
)
