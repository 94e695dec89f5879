"""I-OPT that holds for every input, without memory: the choice of the noise is certified too."""

from unicr.select._classifier import SelectiveClassifier
from unicr.select._file import file_of, load_selector
from unicr.smoothing.procedures import Selector

__all__ = [
    "SelectiveClassifier",
    "Selector",
    "file_of",
    "load_selector",
]
