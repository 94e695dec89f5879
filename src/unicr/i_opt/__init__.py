"""I-OPT: for every input the noise that certifies the largest radius around it."""

from unicr.i_opt._lattice import Axis, Lattice
from unicr.i_opt._run import i_opt_run
from unicr.i_opt._search import Curves, IOpt, Method, optimised

__all__ = ["Axis", "Curves", "IOpt", "Lattice", "Method", "i_opt_run", "optimised"]
