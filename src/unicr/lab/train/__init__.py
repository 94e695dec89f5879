"""Classifiers trained with the noise that they will be smoothed with."""

from unicr.lab.train._examples import Examples, TrainError, examples_of
from unicr.lab.train._folder import train_run
from unicr.lab.train._method import Method, Step, Tuned
from unicr.lab.train._selector import SelectorTraining, train_selector, write_selector
from unicr.lab.train._settings import Training
from unicr.lab.train._trainer import DivergedError, Fitted

__all__ = [
    "DivergedError",
    "Examples",
    "Fitted",
    "Method",
    "SelectorTraining",
    "Step",
    "TrainError",
    "Training",
    "Tuned",
    "examples_of",
    "train_run",
    "train_selector",
    "write_selector",
]
