"""Cauchy noise, density ∝ 1/(1 + (x/α)²): no variance, no mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from unicr.law import Curvature, SymmetricLaw
from unicr.noise._family import IIDFamily
from unicr.values import Array


@dataclass(frozen=True)
class Cauchy(SymmetricLaw):
    """Heavy tails: `sigma=` is an error here, give `scale=` or truncate."""

    std = math.inf
    mean = math.nan
    log_concave = False
    log_norm = math.log(math.pi)

    def ratio_turns(self, shift: float) -> tuple[float, ...] | None:
        root = math.hypot(shift, 2)  # the derivative is 0 where z² − shift·z = 1
        return (0.5 * (shift - root), 0.5 * (shift + root))

    @property
    def curvature(self) -> Curvature:
        """Concave between ±1/√3, where its slope is ∓3√3/8π."""
        turn = 1 / math.sqrt(3)
        return Curvature(
            places=np.array([-turn, turn]),
            falls=np.empty(0),
            concave=((-turn, turn),),
            slope_fall=3 * math.sqrt(3) / (4 * math.pi),
            jump=0.0,
            variation=2 / math.pi,
        )

    def kernel(self, z: Any, xp: Any) -> Any:
        return -xp.log1p(z * z)

    def tail(self, z: Array) -> Array:
        return np.arctan2(1.0, z) / math.pi

    def tail_inverse(self, v: Array) -> Array:
        return np.where(v < 0.25, 1 / np.tan(math.pi * v), np.tan(math.pi * (0.5 - v)))


cauchy = IIDFamily(
    "cauchy",
    Cauchy,
    formula="1/(1+(x/a)^2)",
    example="cauchy(scale=0.3)",
    sizes=("scale",),
    colour=4,
)
