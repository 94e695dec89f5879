"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.noise._base import positive
from unicr.noise._chacha import derive
from unicr.noise._family import Named, Parameter
from unicr.noise._keyed import LatticeNoise
from unicr.noise._lattice import lattice_for
from unicr.noise._quadrature._logdensity import HINT
from unicr.noise._spec import check_parses
from unicr.noise._spherical import CrossNoise, CubeNoise, RadialNoise
from unicr.noise._within import Within, within
from unicr.noise.families import plainest

__all__ = [
    "HINT",
    "CrossNoise",
    "CubeNoise",
    "LatticeNoise",
    "Named",
    "Parameter",
    "RadialNoise",
    "Within",
    "check_parses",
    "derive",
    "lattice_for",
    "plainest",
    "positive",
    "within",
]
