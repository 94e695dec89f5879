"""General Normal noise, density ∝ exp(−|x/α|^β): Laplace at β = 1, Gaussian at β = 2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from unicr.law import Curvature, SymmetricLaw
from unicr.noise._family import IIDFamily, Parameter
from unicr.noise.families.gaussian import gaussian
from unicr.noise.families.laplace import laplace
from unicr.values import Array

FLAT = 1e-18  # |z|^β below it changes no double of the density, and its powers may underflow


@dataclass(frozen=True)
class GeneralNormal(SymmetricLaw):
    """One family from sharp peaks (β < 1, not log-concave) to nearly uniform (β large)."""

    beta: float

    @property
    def log_concave(self) -> bool:
        return self.beta >= 1

    @property
    def breakpoints(self) -> tuple[float, ...]:
        smooth = self.beta % 2 == 0  # then |z|^β is a polynomial
        return () if smooth else (0.0,)

    def ratio_turns(self, shift: float) -> tuple[float, ...] | None:
        return (0.0, shift)  # log-concave, or log-convex on either side of zero

    @property
    def std(self) -> float:
        log_second = math.lgamma(3 / self.beta) - math.lgamma(1 / self.beta)
        return math.exp(0.5 * log_second)

    @property
    def log_norm(self) -> float:
        return math.log(2) + math.lgamma(1 + 1 / self.beta)

    @property
    def curvature(self) -> Curvature:
        """β ≤ 1: convex on either side of a cusp; beyond, concave up to |x|^β = 1 − 1/β."""
        peak, beta = math.exp(-self.log_norm), self.beta
        if beta <= 1:
            cusp, fall = np.zeros(1), 1.0 if beta == 1 else math.inf
            return Curvature(cusp, cusp, (), fall, 0.0, 2 * peak)
        turn = (1 - 1 / beta) ** (1 / beta)
        steepest = peak * beta * turn ** (beta - 1) * math.exp(1 / beta - 1)
        return Curvature(
            places=np.array([-turn, turn]),
            falls=np.empty(0),
            concave=((-turn, turn),),
            slope_fall=2 * steepest * (1 + 1e-12),
            jump=0.0,
            variation=2 * peak,
        )

    def kernel(self, z: Any, xp: Any) -> Any:
        return -(xp.abs(z) ** self.beta)

    def tail(self, z: Array) -> Array:
        power = z**self.beta
        flat = 0.5 - 0.5 * z / math.gamma(1 + 1 / self.beta)
        curved = 0.5 * special.gammaincc(1 / self.beta, power)
        return np.asarray(np.where(power < FLAT, flat, curved), dtype=np.float64)

    def tail_inverse(self, v: Array) -> Array:
        shape = 1 / self.beta
        far = special.gammainccinv(shape, 2 * v)
        near = special.gammaincinv(shape, 1 - 2 * v)
        flat = (1 - 2 * v) * math.gamma(1 + shape)
        # Each inverse is accurate where its argument is small: change at the quartile.
        curved = np.where(v < 0.25, far, near) ** shape
        return np.asarray(np.where(flat**self.beta < FLAT, flat, curved), dtype=np.float64)


gennorm = IIDFamily(
    "gennorm",
    GeneralNormal,
    formula="exp(-|x/a|^b)",
    example="gennorm(beta=1.5, sigma=1)",
    parameters=(
        Parameter(
            "beta",
            low=0.1,
            high=100.0,
            slider=(0.3, 10.0, 1.5),
            axis=(1.0, 3.0, 0.25),
            gallery=(1.0, 1.5, 2.0, 2.5, 3.0),
        ),
    ),
    equal=(({"beta": 1.0}, laplace), ({"beta": 2.0}, gaussian)),
    usual=True,
    colour=2,
)
