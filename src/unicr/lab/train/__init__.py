"""Classifiers trained with the noise that they will be smoothed with.

The settings are light; all else loads torch when it is asked for.
"""

from typing import TYPE_CHECKING

from unicr.extras import lazy_names
from unicr.lab.train._settings import SelectorTraining, TrainError, Training

if TYPE_CHECKING:
    from unicr.lab.train._examples import Examples, examples_of
    from unicr.lab.train._folder import train_run
    from unicr.lab.train._method import Method, Step, Tuned
    from unicr.lab.train._selector import train_selector, write_selector
    from unicr.lab.train._trainer import DivergedError, Fitted
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "DivergedError": "_trainer",
            "Examples": "_examples",
            "Fitted": "_trainer",
            "Method": "_method",
            "Step": "_method",
            "Tuned": "_method",
            "examples_of": "_examples",
            "train_run": "_folder",
            "train_selector": "_selector",
            "write_selector": "_selector",
        },
    )

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
