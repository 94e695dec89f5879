"""Laplace–Gaussian mixture noise, density ∝ β·exp(−|x/α|) + (1−β)·exp(−|x/α|²)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special

from unicr.law import Curvature, SymmetricLaw, invert_tail
from unicr.noise._family import IIDFamily
from unicr.noise.families.expmix import WEIGHT
from unicr.noise.families.gaussian import gaussian
from unicr.noise.families.laplace import laplace
from unicr.values import Array

EPS = float(np.finfo(np.float64).eps)  # twice the largest relative error of one rounding


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

    @property
    def curvature(self) -> Curvature:
        """Beside the cusp: p″ ∝ β·e^−a + (1 − β)(4a² − 2)·e^−a² has at most two roots.

        (2 − 4a²)·e^(a − a²) rises from 2 to its top and falls to 0 at a = 1/√2.
        """
        top = np.roots([8.0, -4.0, -12.0, 2.0])
        peak = float(np.min(top[top > 0]))

        def lead(a: float) -> float:
            return (1 - self.beta) * (2 - 4 * a * a) * math.exp(a - a * a) - self.beta

        def slope(a: float) -> float:
            parts = self.beta * math.exp(-a) + 2 * a * (1 - self.beta) * math.exp(-a * a)
            return -parts / self._mass

        low, high = 0.0, 0.0
        if lead(peak) > 0:
            low = optimize.brentq(lead, 0.0, peak, xtol=1e-15) if lead(0.0) < 0 else 0.0
            high = optimize.brentq(lead, peak, math.sqrt(0.5), xtol=1e-15)
        concave = ((-high, -low), (low, high)) if high > low else ()
        return Curvature(
            places=np.unique([-high, -low, 0.0, low, high]),
            falls=np.zeros(1),
            concave=concave,
            slope_fall=-2 * slope(0.0) + 2 * (slope(low) - slope(high)),
            jump=0.0,
            variation=2 / self._mass,
        )

    def bound_ratio(self, shift: float, left: Array, right: Array) -> tuple[Array, Array] | None:
        """From both ends of a cell, and how far L may be from its chord: (right − left)²/8·|L″|.

        With y = |2a − 1| and w the share of either part, |k″| ≤ 2 + w₁w₂y² and |k‴| ≤
        w₁w₂(6y + y³) for k = log p beside zero, where w₁w₂ is at most ¼ and
        ((1 − β)/β)·e^(a − a²): all less than at the y where the second falls below the first, or at
        the top of y³·e^(−y²/4), y² = 6.
        """
        if self.log_concave:
            return None
        odds = (1 - self.beta) / self.beta
        y = math.sqrt(max(6.0, 1 + 4 * math.log(4 * odds)))
        second, third = 2 + y * y / 4, (6 * y + y**3) / 4
        values = []
        with np.errstate(invalid="ignore"):
            for z in (left, right):
                here, there = self.logpdf(z), self.logpdf(z - shift)
                steep = np.abs(z) + np.abs(z - shift) + 1
                margin = (
                    4
                    * EPS
                    * (np.abs(here) + np.abs(there) + 2 + 2 * steep * (np.abs(z) + abs(shift)))
                )
                values.append((there - here, margin))
            same = (left - shift >= 0) == (left >= 0)
            same &= (right - shift > 0) == (right > 0)
            bent = np.where(same, np.minimum(2 * second, abs(shift) * third), 2 * second)
            bend = (right - left) ** 2 / 8 * bent
            (a, a_margin), (b, b_margin) = values
            return np.minimum(a - a_margin, b - b_margin) - bend, np.maximum(
                a + a_margin, b + b_margin
            ) + bend

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
    parameters=(WEIGHT,),
    equal=(({"beta": 0.0}, gaussian), ({"beta": 1.0}, laplace)),
)
