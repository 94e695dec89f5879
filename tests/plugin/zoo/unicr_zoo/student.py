"""Student's t noise, density ∝ (1 + (x/α)²/ν)^(−(ν+1)/2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from unicr.law import SymmetricLaw
from unicr.noise import IIDFamily, Parameter
from unicr.values import Array


@dataclass(frozen=True)
class Student(SymmetricLaw):
    """Heavier tails than Gaussian noise, which it approaches for large ν."""

    nu: float
    log_concave = False

    @property
    def std(self) -> float:
        return math.sqrt(self.nu / (self.nu - 2))

    @property
    def log_norm(self) -> float:
        return 0.5 * math.log(self.nu) + float(special.betaln(0.5, self.nu / 2))

    def kernel(self, z: Any, xp: Any) -> Any:
        return -(self.nu + 1) / 2 * xp.log1p(z * z / self.nu)

    def tail(self, z: Array) -> Array:
        return np.asarray(special.stdtr(self.nu, -z))

    def tail_inverse(self, v: Array) -> Array:
        return np.asarray(-special.stdtrit(self.nu, v))


student = IIDFamily(
    "student",
    Student,
    formula="(1+(x/a)^2/n)^(-(n+1)/2)",
    example="student(nu=5, sigma=1)",
    parameters=(
        Parameter("nu", low=2.5, high=100.0, slider=(2.5, 30.0, 5.0), gallery=(3.0, 5.0, 9.0)),
    ),
)
