"""Gaussian noise, density ∝ exp(−|x/α|²), so σ = α/√2."""

from __future__ import annotations

import math
from typing import Any

from scipy import special

from unicr.noise._family import Family
from unicr.values import Array


class Gaussian(Family):
    """The noise of Cohen et al.: the optimum for ℓ2 at high dimension, exact against every ℓp."""

    name = "gaussian"
    formula = "exp(-|x/a|^2)"
    example = "gaussian(sigma=0.5)"
    _std = math.sqrt(0.5)
    _log_norm = 0.5 * math.log(math.pi)

    @property
    def normal_sigma(self) -> float:
        return self.sigma

    def _kernel(self, z: Any, xp: Any) -> Any:
        return -z * z

    def _tail(self, z: Array) -> Array:
        return special.ndtr(-z * math.sqrt(2))

    def _tail_inverse(self, v: Array) -> Array:
        return -special.ndtri(v) / math.sqrt(2)
