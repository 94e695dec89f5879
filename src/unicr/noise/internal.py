"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.law.internal import HINT as HINT
from unicr.noise._base import positive as positive
from unicr.noise._family import Parameter as Parameter
from unicr.noise._family import plainest as plainest
from unicr.noise._frame import Frame as Frame
from unicr.noise._frame import Matrix as Matrix
from unicr.noise._frame import measure as measure
from unicr.noise._lattice import LatticeNoise as LatticeNoise
from unicr.noise._lattice import choose_lattice as choose_lattice
from unicr.noise._lattice import find_finest as find_finest
from unicr.noise._lattice import find_own_grid as find_own_grid
from unicr.noise._lattice import lattice_for as lattice_for
from unicr.noise._radial import within as within
from unicr.noise._spec import check_parses as check_parses
from unicr.noise.families import usual_family as usual_family
from unicr.sample import derive as derive
