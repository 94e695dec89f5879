"""Uniform noise on [−α, α], σ = α/√3."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unicr.noise._base import Facts, Family
from unicr.values import Array


class Uniform(Family):
    """Bounded support: shifted copies have mass where the other has none (infinite log-ratio)."""

    name = "uniform"
    formula = "1 on [-a, a]"
    _unit_breaks = (-1.0, 1.0)

    def __init__(self, *, sigma: float | None = None, scale: float | None = None) -> None:
        super().__init__(sigma, scale)

    @property
    def facts(self) -> Facts:
        return Facts(symmetric=True, log_concave=True, bounded=True, finite_variance=True)

    @property
    def support(self) -> tuple[float, float]:
        return (-self.scale, self.scale)

    @property
    def _std(self) -> float:
        return 1 / math.sqrt(3)

    @property
    def _log_norm(self) -> float:
        return math.log(2)

    def _kernel(self, z: Any, xp: Any) -> Any:
        return xp.where(xp.abs(z) <= 1, xp.zeros_like(z), -math.inf)

    def _tail(self, z: Array) -> Array:
        return np.maximum(0.5 * (1 - z), 0.0)

    def _tail_inverse(self, v: Array) -> Array:
        return 1 - 2 * v


uniform = Uniform
