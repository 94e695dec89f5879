"""Hyperbolic secant noise, density ∝ sech(x/α), σ = α·π/2."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unicr.noise._family import Family
from unicr.values import Array


class Sech(Family):
    """Gaussian-like at the centre, Laplace-like tails, smooth."""

    name = "sech"
    formula = "sech(x/a)"
    example = "sech(sigma=1)"
    _std = math.pi / 2
    _log_norm = math.log(math.pi)

    def _kernel(self, z: Any, xp: Any) -> Any:
        a = xp.abs(z)
        return math.log(2) - a - xp.log1p(xp.exp(-2 * a))

    def _tail(self, z: Array) -> Array:
        return 2 / math.pi * np.arctan(np.exp(-z))

    def _tail_inverse(self, v: Array) -> Array:
        return -np.log(np.tan(math.pi / 2 * v))
