"""Exponential mixture noise, density ∝ exp(−β|x/α| − (1−β)|x/α|²)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from unicr.law import SymmetricLaw, invert_tail
from unicr.noise._family import IIDFamily, Parameter
from unicr.noise.families.gaussian import gaussian
from unicr.noise.families.laplace import laplace
from unicr.values import Array

CANCELS = 0.2  # of 1 − β: below it the recursion for moments loses digits, and they are integrated
POINTS = 100  # of the Gauss-Laguerre rule: exact to rounding for the smooth factor that is left


@dataclass(frozen=True)
class ExponentialMix(SymmetricLaw):
    """From Gaussian (β = 0) to Laplace (β = 1), log-concave all the way."""

    beta: float

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return (0.0,) if self.beta > 0 else ()

    @property
    def _half_mass(self) -> float:
        return float(self._raw_tail(np.zeros(())))

    @property
    def std(self) -> float:
        a, b = self.beta, 1 - self.beta
        if b < CANCELS:
            nodes, weights = special.roots_laguerre(POINTS)
            moments = [
                float(np.sum(weights * nodes**k * np.exp((1 - a) * (nodes - nodes**2))))
                for k in (0, 2)
            ]
            return math.sqrt(moments[1] / moments[0])
        # E|z| and E z² by parts: ∫ (a + 2bz)·exp(−az − bz²) = 1, and the same with a factor z
        first = (1 - a * self._half_mass) / (2 * b)
        second = (self._half_mass - a * first) / (2 * b)
        return math.sqrt(second / self._half_mass)

    @property
    def log_norm(self) -> float:
        return math.log(2 * self._half_mass)

    def kernel(self, z: Any, xp: Any) -> Any:
        a = xp.abs(z)
        return -a * (self.beta + (1 - self.beta) * a) if self.beta < 1 else -a

    def _raw_tail(self, z: Array) -> Array:
        """∫_z^∞ exp(−βt − (1−β)t²) dt, by completing the square; erfcx keeps its digits far out."""
        b = 1 - self.beta
        if b == 0:
            return np.exp(-z)
        root = math.sqrt(b)
        mills = math.sqrt(math.pi) / (2 * root) * special.erfcx(root * z + self.beta / (2 * root))
        return np.asarray(np.exp(-z * (self.beta + b * z)) * mills)

    def tail(self, z: Array) -> Array:
        return 0.5 * self._raw_tail(z) / self._half_mass

    def _density(self, z: Array) -> Array:
        return np.asarray(np.exp(self.kernel(z, np)) / (2 * self._half_mass), dtype=np.float64)

    def tail_inverse(self, v: Array) -> Array:
        return invert_tail(self.tail, self._density, v)


WEIGHT = Parameter(
    "beta",
    low=0.0,
    high=1.0,
    slider=(0.0, 1.0, 0.5),
    axis=(0.0, 1.0, 0.25),
    gallery=(0.0, 0.25, 0.5, 0.75, 1.0),
)
expmix = IIDFamily(
    "expmix",
    ExponentialMix,
    formula="exp(-b|x/a|-(1-b)|x/a|^2)",
    example="expmix(beta=0.5, sigma=1)",
    parameters=(WEIGHT,),
    equal=(({"beta": 0.0}, gaussian), ({"beta": 1.0}, laplace)),
)
