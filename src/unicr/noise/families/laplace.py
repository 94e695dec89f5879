"""Laplace noise, density ∝ exp(−|x/α|), σ = α√2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from unicr.law import Curvature, SymmetricLaw
from unicr.noise._family import IIDFamily
from unicr.values import Array


@dataclass(frozen=True)
class Laplace(SymmetricLaw):
    """The noise of Teng et al. against ℓ1. Its log-ratio has atoms at ±u/α."""

    std = math.sqrt(2)
    log_norm = math.log(2)
    breakpoints = (0.0,)

    @property
    def curvature(self) -> Curvature:
        """Convex on either side of the cusp, whose slopes are ±½."""
        cusp = np.zeros(1)
        return Curvature(cusp, cusp, (), slope_fall=1.0, jump=0.0, variation=1.0)

    def kernel(self, z: Any, xp: Any) -> Any:
        return -xp.abs(z)

    def tail(self, z: Array) -> Array:
        return 0.5 * np.exp(-z)

    def tail_inverse(self, v: Array) -> Array:
        return -np.log(2 * v)


laplace = IIDFamily(
    "laplace", Laplace, formula="exp(-|x/a|)", example="laplace(sigma=0.5)", colour=1
)
