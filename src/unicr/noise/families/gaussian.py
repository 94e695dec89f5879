"""Gaussian noise, density ∝ exp(−|x/α|²), so σ = α/√2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy import special

from unicr.law import SymmetricLaw
from unicr.noise._anisotropic import Anisotropic
from unicr.noise._family import IIDFamily
from unicr.noise._frame import factor_covariance
from unicr.values import Array


@dataclass(frozen=True)
class Gaussian(SymmetricLaw):
    """The noise of Cohen et al.: the optimum for ℓ2 at high dimension, exact against every ℓp."""

    std = math.sqrt(0.5)
    normal_sigma = math.sqrt(0.5)
    log_norm = 0.5 * math.log(math.pi)

    def kernel(self, z: Any, xp: Any) -> Any:
        return -z * z

    def tail(self, z: Array) -> Array:
        return special.ndtr(-z * math.sqrt(2))

    def tail_inverse(self, v: Array) -> Array:
        return -special.ndtri(v) / math.sqrt(2)


class GaussianFamily(IIDFamily):
    """Independent coordinates of one size, or any covariance."""

    def with_covariance(self, cov: Any) -> Anisotropic:
        """Lz, z with unit variances, L the lower Cholesky factor of `cov` with 26 bits a row."""
        return Anisotropic(self(sigma=1.0), matrix=factor_covariance(cov))


gaussian = GaussianFamily(
    "gaussian",
    Gaussian,
    formula="exp(-|x/a|^2)",
    example="gaussian(sigma=0.5)",
    elsewhere=("normal", "gauss"),
    colour=0,
)
