"""I-OPT: the best noise for every input (the procedure is `unicr.smoothing.procedures.IOpt`)."""

from unicr.i_opt._run import commit_i_opt, i_opt_run
from unicr.smoothing.procedures import Axis, Grid, IOpt, Method

__all__ = ["Axis", "Grid", "IOpt", "Method", "commit_i_opt", "i_opt_run"]
