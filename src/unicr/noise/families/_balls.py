"""The balls of ℓ1, ℓ2 and ℓ∞, which densities of a length belong to.

Directions are made of noise with independent coordinates whose density is one of a length too:
of ‖z‖₁ in Laplace noise, of ‖z‖₂ in Gaussian and of ‖z‖_∞ in uniform noise.
"""

from __future__ import annotations

import math

from unicr.noise._radial import UnitBall
from unicr.noise.families.gaussian import gaussian
from unicr.noise.families.laplace import laplace
from unicr.noise.families.uniform import uniform


def _surface_of_l1(dim: int) -> float:
    return dim * math.log(2) - math.lgamma(dim)


def _surface_of_l2(dim: int) -> float:
    return math.log(2) + dim / 2 * math.log(math.pi) - math.lgamma(dim / 2)


def _surface_of_linf(dim: int) -> float:
    return math.log(dim) + dim * math.log(2)


def _square_of_l1(dim: int) -> float:
    return 2 / (dim * (dim + 1))


def _square_of_l2(dim: int) -> float:
    return 1 / dim


def _square_of_linf(dim: int) -> float:
    return (dim + 2) / (3 * dim)  # one coordinate is ±1, the others are uniform


# p, the power in which distances are compared, and coordinates that make uniform directions.
L1 = UnitBall(1.0, 1, laplace(scale=1), _surface_of_l1, _square_of_l1)
L2 = UnitBall(2.0, 2, gaussian(sigma=1), _surface_of_l2, _square_of_l2)
LINF = UnitBall(math.inf, 1, uniform(scale=1), _surface_of_linf, _square_of_linf)
