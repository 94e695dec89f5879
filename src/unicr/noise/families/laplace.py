"""Laplace noise, density ∝ exp(−|x/α|), σ = α√2."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unicr.noise._family import Family
from unicr.values import Array


class Laplace(Family):
    """The noise of Teng et al. against ℓ1. Its log-ratio has atoms at ±u/α."""

    name = "laplace"
    formula = "exp(-|x/a|)"
    example = "laplace(sigma=0.5)"
    _breaks = (0.0,)
    _std = math.sqrt(2)
    _log_norm = math.log(2)

    def _kernel(self, z: Any, xp: Any) -> Any:
        return -xp.abs(z)

    def _tail(self, z: Array) -> Array:
        return 0.5 * np.exp(-z)

    def _tail_inverse(self, v: Array) -> Array:
        return -np.log(2 * v)
