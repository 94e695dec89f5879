"""Hyperbolic secant noise, density ∝ sech(x/α), σ = α·π/2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from unicr.law import SymmetricLaw
from unicr.noise._family import IIDFamily
from unicr.values import Array


@dataclass(frozen=True)
class Sech(SymmetricLaw):
    """Gaussian-like at the centre, Laplace-like tails, smooth."""

    std = math.pi / 2
    log_norm = math.log(math.pi)

    def kernel(self, z: Any, xp: Any) -> Any:
        a = xp.abs(z)
        return math.log(2) - a - xp.log1p(xp.exp(-2 * a))

    def tail(self, z: Array) -> Array:
        return 2 / math.pi * np.arctan(np.exp(-z))

    def tail_inverse(self, v: Array) -> Array:
        return -np.log(np.tan(math.pi / 2 * v))


sech = IIDFamily("sech", Sech, formula="sech(x/a)", example="sech(sigma=1)")
