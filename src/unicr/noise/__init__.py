"""Noise: the densities that a classifier is smoothed with, as values.

>>> from unicr import noise
>>> noise.gennorm(beta=1.5, sigma=1)
gennorm(beta=1.5, sigma=1)
>>> noise.parse("gaussian(sigma=0.5)") == noise.gaussian(sigma=0.5)
True
"""

from typing import TYPE_CHECKING

from unicr.law import Facts
from unicr.noise._anisotropic import Anisotropic
from unicr.noise._base import IID, Noise, SamplerError
from unicr.noise._data import from_data, to_data
from unicr.noise._density import from_density, from_radial_density, from_scipy, from_torch
from unicr.noise._family import Family, IIDFamily, Parameter, RadialFamily
from unicr.noise._joint import Joint
from unicr.noise._lattice import Lattice
from unicr.noise._radial import RadialNoise, UnitBall
from unicr.noise._spec import parse
from unicr.noise._sum import Sum
from unicr.noise.families import FAMILIES
from unicr.noise.families._balls import L1, L2, LINF
from unicr.noise.families.ball import ball
from unicr.noise.families.cauchy import cauchy
from unicr.noise.families.expmix import expmix
from unicr.noise.families.gaussian import gaussian
from unicr.noise.families.gennorm import gennorm
from unicr.noise.families.l1_exp import l1_exp
from unicr.noise.families.lapgauss import lapgauss
from unicr.noise.families.laplace import laplace
from unicr.noise.families.linf_exp import linf_exp
from unicr.noise.families.linf_pareto import linf_pareto
from unicr.noise.families.pareto import pareto
from unicr.noise.families.sech import sech
from unicr.noise.families.spherical_exp import spherical_exp
from unicr.noise.families.spherical_gg import spherical_gg
from unicr.noise.families.splitting import splitting
from unicr.noise.families.uniform import uniform

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Family[Noise]:
        """A family whose file was added: `noise.NAME`, like the ones that type checkers know."""
        if name in FAMILIES:
            return FAMILIES[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *FAMILIES})


__all__ = [
    "FAMILIES",
    "IID",
    "L1",
    "L2",
    "LINF",
    "Anisotropic",
    "Facts",
    "Family",
    "IIDFamily",
    "Joint",
    "Lattice",
    "Noise",
    "Parameter",
    "RadialFamily",
    "RadialNoise",
    "SamplerError",
    "Sum",
    "UnitBall",
    "ball",
    "cauchy",
    "expmix",
    "from_data",
    "from_density",
    "from_radial_density",
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
