"""Find the noise: train classifiers with it, and search the family for the best robustness."""

from unicr.optimize._copt import (
    COpt,
    Family,
    Line,
    Point,
    Result,
    Search,
    best_of,
    c_opt,
    grid,
    lines_of,
    search_of,
)
from unicr.optimize._iopt import Curves, IOpt, optimised
from unicr.optimize._iopt_run import i_opt_run
from unicr.optimize._lattice import Axis, Lattice
from unicr.optimize._optimality import Comparison, Standing, gallery, validate, validate_average
from unicr.optimize._train import (
    DivergedError,
    Examples,
    Fitted,
    TrainError,
    Training,
    examples_of,
    train_run,
)

__all__ = [
    "Axis",
    "COpt",
    "Comparison",
    "Curves",
    "DivergedError",
    "Examples",
    "Family",
    "Fitted",
    "IOpt",
    "Lattice",
    "Line",
    "Point",
    "Result",
    "Search",
    "Standing",
    "TrainError",
    "Training",
    "best_of",
    "c_opt",
    "examples_of",
    "gallery",
    "grid",
    "i_opt_run",
    "lines_of",
    "optimised",
    "search_of",
    "train_run",
    "validate",
    "validate_average",
]
