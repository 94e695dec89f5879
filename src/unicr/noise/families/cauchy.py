"""Cauchy noise, density ∝ 1/(1 + (x/α)²): no variance, no mean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unicr.noise._family import Family
from unicr.values import Array


class Cauchy(Family):
    """Heavy tails: `sigma=` is an error here, give `scale=` or truncate."""

    name = "cauchy"
    formula = "1/(1+(x/a)^2)"
    example = "cauchy(scale=0.3)"
    sizes = ("scale",)
    mean = math.nan
    _log_concave = False
    _std = math.inf
    _log_norm = math.log(math.pi)

    def ratio_turns(self, shift: float) -> tuple[float, ...] | None:
        root = math.hypot(shift, 2 * self.scale)  # z² − shift·z = scale²
        return (0.5 * (shift - root), 0.5 * (shift + root))

    def _kernel(self, z: Any, xp: Any) -> Any:
        return -xp.log1p(z * z)

    def _tail(self, z: Array) -> Array:
        return np.arctan2(1.0, z) / math.pi

    def _tail_inverse(self, v: Array) -> Array:
        return np.where(v < 0.25, 1 / np.tan(math.pi * v), np.tan(math.pi * (0.5 - v)))
