"""Families meet: General Normal 2 is Gaussian, mixtures end in Laplace and Gaussian.

What is known in closed form of the plainer law then serves the other name too.
"""

from __future__ import annotations

import math

from unicr.noise._base import Noise
from unicr.noise._expmix import ExponentialMix
from unicr.noise._gaussian import Gaussian
from unicr.noise._gennorm import GeneralNormal
from unicr.noise._lapgauss import LaplaceGauss
from unicr.noise._laplace import Laplace

ENDS: dict[tuple[type[Noise], float], type[Gaussian] | type[Laplace]] = {
    (GeneralNormal, 1.0): Laplace,
    (GeneralNormal, 2.0): Gaussian,
    (LaplaceGauss, 0.0): Gaussian,
    (LaplaceGauss, 1.0): Laplace,
    (ExponentialMix, 0.0): Gaussian,
    (ExponentialMix, 1.0): Laplace,
}


def plainest(noise: Noise) -> Noise:
    """The same law under its plainest name: Gaussian or Laplace where it is one of them."""
    end = ENDS.get((type(noise), getattr(noise, "beta", math.nan)))
    return noise if end is None else end(sigma=noise.sigma)
