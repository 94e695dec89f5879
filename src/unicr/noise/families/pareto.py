"""Symmetric Pareto noise, density ∝ 1/(1 + |x/α|)^(β+1); its variance is finite for β > 2 only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from unicr.law import Curvature, SymmetricLaw
from unicr.noise._family import IIDFamily, Parameter
from unicr.values import Array


@dataclass(frozen=True)
class Pareto(SymmetricLaw):
    """Power-law tails with a cusp at zero."""

    beta: float
    log_concave = False
    breakpoints = (0.0,)

    @property
    def mean(self) -> float:
        return 0.0 if self.beta > 1 else math.nan

    def ratio_turns(self, shift: float) -> tuple[float, ...] | None:
        return (0.0, shift)  # log-convex on either side of zero

    @property
    def std(self) -> float:
        b = self.beta
        return math.sqrt(2 / ((b - 1) * (b - 2))) if b > 2 else math.inf

    @property
    def log_norm(self) -> float:
        return math.log(2 / self.beta)

    @property
    def curvature(self) -> Curvature:
        """Convex on either side of the cusp, whose slopes are ±β(β + 1)/2."""
        cusp = np.zeros(1)
        return Curvature(cusp, cusp, (), self.beta * (self.beta + 1), 0.0, self.beta)

    def kernel(self, z: Any, xp: Any) -> Any:
        return -(self.beta + 1) * xp.log1p(xp.abs(z))

    def tail(self, z: Array) -> Array:
        return 0.5 * np.exp(-self.beta * np.log1p(z))

    def tail_inverse(self, v: Array) -> Array:
        return np.expm1(-np.log(2 * v) / self.beta)


pareto = IIDFamily(
    "pareto",
    Pareto,
    formula="1/(1+|x/a|)^(b+1)",
    example="pareto(beta=3, scale=0.5)",
    parameters=(
        Parameter(
            "beta",
            low=0.5,
            high=1000.0,
            slider=(0.5, 20.0, 3.0),
            axis=(2.25, 6.0, 0.25),
            gallery=(2.5, 3.0, 4.0, 6.0),
        ),
    ),
)
