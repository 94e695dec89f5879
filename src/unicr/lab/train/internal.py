"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.lab.train._examples import arrays_of
from unicr.lab.train._folder import WEIGHTS, open_training
from unicr.lab.train._schedule import one_cycle
from unicr.lab.train._selector import estimate_worth, lost_radius, train_network
from unicr.lab.train._settings import build
from unicr.lab.train._trainer import fix_seed, stream

__all__ = [
    "WEIGHTS",
    "arrays_of",
    "build",
    "estimate_worth",
    "fix_seed",
    "lost_radius",
    "one_cycle",
    "open_training",
    "stream",
    "train_network",
]
