"""C-OPT: the noise of a family that trains and certifies the most robust classifier."""

from unicr.lab.c_opt._optuna import optuna_search
from unicr.lab.c_opt._points import Point, Scales, Search, grid, make_search
from unicr.lab.c_opt._scores import ShapeScore, Trained, find_best_shape
from unicr.lab.c_opt._search import COpt, c_opt

__all__ = [
    "COpt",
    "Point",
    "Scales",
    "Search",
    "ShapeScore",
    "Trained",
    "c_opt",
    "find_best_shape",
    "grid",
    "make_search",
    "optuna_search",
]
