"""Symmetric Pareto noise, density ∝ 1/(1 + |x/α|)^(β+1); its variance is finite for β > 2 only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unicr.noise._base import Facts, Family, positive
from unicr.values import Array


class Pareto(Family):
    """Power-law tails with a cusp at zero."""

    name = "pareto"
    formula = "1/(1+|x/a|)^(b+1)"
    _unit_breaks = (0.0,)
    beta: float

    def __init__(
        self, *, beta: float, sigma: float | None = None, scale: float | None = None
    ) -> None:
        super().__init__(sigma, scale, beta=positive("beta", beta))

    @property
    def facts(self) -> Facts:
        return Facts(
            symmetric=True,
            log_concave=False,
            bounded=False,
            finite_variance=self.beta > 2,
            positive=True,
        )

    @property
    def mean(self) -> float:
        return 0.0 if self.beta > 1 else math.nan

    def ratio_turns(self, shift: float) -> tuple[float, ...] | None:
        return (0.0, shift)  # log-convex on either side of zero

    @property
    def _std(self) -> float:
        b = self.beta
        return math.sqrt(2 / ((b - 1) * (b - 2))) if b > 2 else math.inf

    @property
    def _log_norm(self) -> float:
        return math.log(2 / self.beta)

    def _kernel(self, z: Any, xp: Any) -> Any:
        return -(self.beta + 1) * xp.log1p(xp.abs(z))

    def _tail(self, z: Array) -> Array:
        return 0.5 * np.exp(-self.beta * np.log1p(z))

    def _tail_inverse(self, v: Array) -> Array:
        return np.expm1(-np.log(2 * v) / self.beta)


pareto = Pareto
