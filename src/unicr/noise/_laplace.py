"""Laplace noise, density ∝ exp(−|x/α|), σ = α√2."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unicr.noise._base import Facts, Family
from unicr.values import Array


class Laplace(Family):
    """The noise of Teng et al. against ℓ1. Its log-ratio has atoms at ±u/α."""

    name = "laplace"
    formula = "exp(-|x/a|)"
    _unit_breaks = (0.0,)

    def __init__(self, *, sigma: float | None = None, scale: float | None = None) -> None:
        super().__init__(sigma, scale)

    @property
    def facts(self) -> Facts:
        return Facts(
            symmetric=True, log_concave=True, bounded=False, finite_variance=True, positive=True
        )

    @property
    def _std(self) -> float:
        return math.sqrt(2)

    @property
    def _log_norm(self) -> float:
        return math.log(2)

    def _kernel(self, z: Any, xp: Any) -> Any:
        return -xp.abs(z)

    def _tail(self, z: Array) -> Array:
        return 0.5 * np.exp(-z)

    def _tail_inverse(self, v: Array) -> Array:
        return -np.log(2 * v)


laplace = Laplace
