"""Uniform noise on [−α, α], σ = α/√3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from unicr.law import SymmetricLaw
from unicr.noise._family import IIDFamily
from unicr.values import Array


@dataclass(frozen=True)
class Uniform(SymmetricLaw):
    """Bounded support: shifted copies have mass where the other has none (infinite log-ratio)."""

    std = 1 / math.sqrt(3)
    half_width = 1.0
    support = (-1.0, 1.0)
    breakpoints = (-1.0, 1.0)
    log_norm = math.log(2)

    def kernel(self, z: Any, xp: Any) -> Any:
        return xp.where(xp.abs(z) <= 1, xp.zeros_like(z), -math.inf)

    def tail(self, z: Array) -> Array:
        return np.maximum(0.5 * (1 - z), 0.0)

    def tail_inverse(self, v: Array) -> Array:
        return 1 - 2 * v


uniform = IIDFamily(
    "uniform", Uniform, formula="1 on [-a, a]", example="uniform(sigma=1)", colour=3
)
