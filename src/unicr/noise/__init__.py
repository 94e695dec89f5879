"""Noise: the densities that a classifier is smoothed with, as values.

>>> from unicr import noise
>>> noise.gennorm(beta=1.5, sigma=1)
gennorm(beta=1.5, sigma=1)
>>> noise.parse("gaussian(sigma=0.5)") == noise.gaussian(sigma=0.5)
True
"""

from typing import TYPE_CHECKING

from unicr.noise._anisotropic import Anisotropic
from unicr.noise._base import IID, Facts, Noise, SamplerError
from unicr.noise._data import from_data, to_data
from unicr.noise._density import Tabulated, from_density, from_scipy, from_torch
from unicr.noise._family import Family, Parameter
from unicr.noise._joint import Joint
from unicr.noise._lattice import Lattice
from unicr.noise._spec import parse
from unicr.noise._spherical import Spherical, SphericalNoise
from unicr.noise._truncated import Truncated
from unicr.noise.families import FAMILIES
from unicr.noise.families.ball import Ball
from unicr.noise.families.cauchy import Cauchy
from unicr.noise.families.expmix import ExponentialMix
from unicr.noise.families.gaussian import Gaussian
from unicr.noise.families.gennorm import GeneralNormal
from unicr.noise.families.l1_exp import L1Exp
from unicr.noise.families.lapgauss import LaplaceGauss
from unicr.noise.families.laplace import Laplace
from unicr.noise.families.linf_exp import LinfExp
from unicr.noise.families.linf_pareto import LinfPareto
from unicr.noise.families.pareto import Pareto
from unicr.noise.families.sech import Sech
from unicr.noise.families.spherical_exp import SphericalExp
from unicr.noise.families.spherical_gg import SphericalGG
from unicr.noise.families.splitting import Splitting
from unicr.noise.families.uniform import Uniform

ball, cauchy, expmix, gaussian = Ball, Cauchy, ExponentialMix, Gaussian
gennorm, lapgauss, laplace, pareto = GeneralNormal, LaplaceGauss, Laplace, Pareto
sech, spherical_exp, spherical_gg, uniform = Sech, SphericalExp, SphericalGG, Uniform
l1_exp, linf_exp, linf_pareto, splitting = L1Exp, LinfExp, LinfPareto, Splitting

if not TYPE_CHECKING:

    def __getattr__(name: str) -> type[Noise]:
        """A family whose file was added: `noise.NAME`, like the ones that type checkers know."""
        if name in FAMILIES:
            return FAMILIES[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *FAMILIES})


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
    "L1Exp",
    "Laplace",
    "LaplaceGauss",
    "Lattice",
    "LinfExp",
    "LinfPareto",
    "Noise",
    "Parameter",
    "Pareto",
    "SamplerError",
    "Sech",
    "Spherical",
    "SphericalExp",
    "SphericalGG",
    "SphericalNoise",
    "Splitting",
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
    "l1_exp",
    "lapgauss",
    "laplace",
    "linf_exp",
    "linf_pareto",
    "pareto",
    "parse",
    "sech",
    "spherical_exp",
    "spherical_gg",
    "splitting",
    "to_data",
    "uniform",
]
