"""Uniform noise on [−α, α], σ = α/√3."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unicr.noise._base import Facts
from unicr.noise._family import Family
from unicr.values import Array


class Uniform(Family):
    """Bounded support: shifted copies have mass where the other has none (infinite log-ratio)."""

    name = "uniform"
    formula = "1 on [-a, a]"
    example = "uniform(sigma=1)"
    _breaks = (-1.0, 1.0)
    _std = 1 / math.sqrt(3)
    _log_norm = math.log(2)

    @property
    def facts(self) -> Facts:
        return Facts(symmetric=True, log_concave=True, bounded=True, finite_variance=True)

    @property
    def half_width(self) -> float:
        return self.scale

    @property
    def support(self) -> tuple[float, float]:
        return (-self.scale, self.scale)

    def _kernel(self, z: Any, xp: Any) -> Any:
        return xp.where(xp.abs(z) <= 1, xp.zeros_like(z), -math.inf)

    def _tail(self, z: Array) -> Array:
        return np.maximum(0.5 * (1 - z), 0.0)

    def _tail_inverse(self, v: Array) -> Array:
        return 1 - 2 * v
