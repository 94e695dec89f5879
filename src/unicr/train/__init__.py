"""Classifiers trained with the noise that they will be smoothed with."""

from unicr.train._examples import Examples, TrainError, examples_of
from unicr.train._folder import train_run
from unicr.train._settings import Training
from unicr.train._trainer import DivergedError, Fitted

__all__ = [
    "DivergedError",
    "Examples",
    "Fitted",
    "TrainError",
    "Training",
    "examples_of",
    "train_run",
]
