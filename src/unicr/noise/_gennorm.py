"""General Normal noise, density ∝ exp(−|x/α|^β): Laplace at β = 1, Gaussian at β = 2."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from unicr.errors import NoiseError
from unicr.noise._base import Facts, Family, positive
from unicr.values import Array


class GeneralNormal(Family):
    """One family from sharp peaks (β < 1, not log-concave) to nearly uniform (β large)."""

    name = "gennorm"
    formula = "exp(-|x/a|^b)"
    beta: float

    def __init__(
        self, *, beta: float, sigma: float | None = None, scale: float | None = None
    ) -> None:
        super().__init__(sigma, scale, beta=positive("beta", beta))

    @property
    def facts(self) -> Facts:
        return Facts(
            symmetric=True,
            log_concave=self.beta >= 1,
            bounded=False,
            finite_variance=True,
            positive=True,
        )

    def ratio_turns(self, shift: float) -> tuple[float, ...] | None:
        return (0.0, shift)  # log-concave, or log-convex on either side of zero

    @property
    def _unit_breaks(self) -> tuple[float, ...]:  # type: ignore[override]
        smooth = self.beta % 2 == 0
        return () if smooth else (0.0,)

    @property
    def _std(self) -> float:
        log_second = math.lgamma(3 / self.beta) - math.lgamma(1 / self.beta)
        if log_second > 1400:
            raise NoiseError(f"beta={self.beta} is too small: sigma/scale exceeds 1e300")
        return math.exp(0.5 * log_second)

    @property
    def _log_norm(self) -> float:
        return math.log(2) + math.lgamma(1 + 1 / self.beta)

    def _kernel(self, z: Any, xp: Any) -> Any:
        return -(xp.abs(z) ** self.beta)

    def _tail(self, z: Array) -> Array:
        return np.asarray(0.5 * special.gammaincc(1 / self.beta, z**self.beta), dtype=np.float64)

    def _tail_inverse(self, v: Array) -> Array:
        shape = 1 / self.beta
        far = special.gammainccinv(shape, 2 * v)
        near = special.gammaincinv(shape, 1 - 2 * v)
        return np.asarray(np.where(v < 0.25, far, near) ** shape, dtype=np.float64)


gennorm = GeneralNormal
