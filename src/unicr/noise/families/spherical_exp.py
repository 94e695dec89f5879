"""Spherical noise ∝ exp(−‖z/s‖^k): Gaussian at k = 2."""

from __future__ import annotations

from unicr.noise._family import Parameter, family_of
from unicr.noise._spherical import Powered, SphericalNoise


class SphericalExp(Powered, SphericalNoise):
    """Heavier than Gaussian noise for k < 2, towards the uniform ball for large k."""

    name = "spherical_exp"
    formula = "exp(-|z/s|^k)"
    example = "spherical_exp(k=1, sigma=1, dim=784)"
    parameters = (Parameter("k", low=0.1, high=100.0, slider=(0.2, 8.0, 1.0)),)


spherical_exp = family_of(SphericalExp)
