"""C-OPT: the noise of a family that trains and certifies the most robust classifier."""

from unicr.lab.c_opt._optuna import optuna_search
from unicr.lab.c_opt._points import Point, Scales, Search, grid, search_of
from unicr.lab.c_opt._scores import ShapeScore, Trained, best_of
from unicr.lab.c_opt._search import COpt, c_opt

__all__ = [
    "COpt",
    "Point",
    "Scales",
    "Search",
    "ShapeScore",
    "Trained",
    "best_of",
    "c_opt",
    "grid",
    "optuna_search",
    "search_of",
]
