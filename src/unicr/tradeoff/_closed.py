"""Closed form of one shifted coordinate: T_u(α) = F(F⁻¹(1 − α) − u) for log-concave densities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import RadiusError
from unicr.noise import IID
from unicr.tradeoff._base import Bound, TradeOff
from unicr.values import Array


@dataclass(frozen=True, eq=False)
class ClosedForm(TradeOff):
    """The likelihood ratio is monotone, so the best test is a threshold (THEORY (a))."""

    noise: IID
    shift: float
    bound: Bound = "exact"

    def __post_init__(self) -> None:
        if not self.noise.facts.log_concave:
            raise RadiusError(f"{self.noise.text} is not log-concave: no closed form, compose it")

    def beta(self, alpha: ArrayLike) -> Array:
        a = np.asarray(alpha, dtype=np.float64)
        if self.shift >= 0:
            return np.where(a >= 1, 0.0, self.noise.cdf(self.noise.isf(a) - self.shift))
        return np.where(a >= 1, 0.0, self.noise.sf(self.noise.ppf(a) - self.shift))

    def alpha(self, beta: ArrayLike) -> Array:
        b = np.asarray(beta, dtype=np.float64)
        if self.shift >= 0:
            return np.where(b >= 1, 0.0, self.noise.sf(self.noise.ppf(b) + self.shift))
        return np.where(b >= 1, 0.0, self.noise.cdf(self.noise.isf(b) + self.shift))
