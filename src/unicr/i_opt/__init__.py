"""I-OPT: for every input the noise that certifies the largest radius around it."""

from unicr.i_opt._grid import Axis, Grid
from unicr.i_opt._run import i_opt_run
from unicr.i_opt._search import Curves, IOpt, Method, optimised

__all__ = ["Axis", "Curves", "Grid", "IOpt", "Method", "i_opt_run", "optimised"]
