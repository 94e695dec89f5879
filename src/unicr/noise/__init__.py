"""Noise: the densities that a classifier is smoothed with, as values.

>>> from unicr import noise
>>> noise.gennorm(beta=1.5, sigma=1)
gennorm(beta=1.5, sigma=1)
>>> noise.parse("gaussian(sigma=0.5)") == noise.gaussian(sigma=0.5)
True
"""

from unicr.noise._anisotropic import Anisotropic
from unicr.noise._base import IID, Facts, Family, Noise
from unicr.noise._cauchy import Cauchy, cauchy
from unicr.noise._data import from_data, to_data
from unicr.noise._density import Tabulated, from_density, from_scipy, from_torch
from unicr.noise._expmix import ExponentialMix, expmix
from unicr.noise._gaussian import Gaussian, gaussian
from unicr.noise._gennorm import GeneralNormal, gennorm
from unicr.noise._joint import Joint
from unicr.noise._lapgauss import LaplaceGauss, lapgauss
from unicr.noise._laplace import Laplace, laplace
from unicr.noise._pareto import Pareto, pareto
from unicr.noise._sech import Sech, sech
from unicr.noise._spec import FAMILIES, parse
from unicr.noise._spherical import (
    Ball,
    Spherical,
    SphericalExp,
    SphericalGG,
    SphericalNoise,
    ball,
    spherical_exp,
    spherical_gg,
)
from unicr.noise._truncated import Truncated
from unicr.noise._uniform import Uniform, uniform

__all__ = [
    "FAMILIES",
    "IID",
    "Anisotropic",
    "Ball",
    "Cauchy",
    "ExponentialMix",
    "Facts",
    "Family",
    "Gaussian",
    "GeneralNormal",
    "Joint",
    "Laplace",
    "LaplaceGauss",
    "Noise",
    "Pareto",
    "Sech",
    "Spherical",
    "SphericalExp",
    "SphericalGG",
    "SphericalNoise",
    "Tabulated",
    "Truncated",
    "Uniform",
    "ball",
    "cauchy",
    "expmix",
    "from_data",
    "from_density",
    "from_scipy",
    "from_torch",
    "gaussian",
    "gennorm",
    "lapgauss",
    "laplace",
    "pareto",
    "parse",
    "sech",
    "spherical_exp",
    "spherical_gg",
    "to_data",
    "uniform",
]
