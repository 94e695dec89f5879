"""I-OPT that holds for every input, without memory: the choice of the noise is certified too."""

from unicr.select._certify import selective
from unicr.select._classifier import SelectiveClassifier
from unicr.select._run import Recount, select_run
from unicr.select._selector import Selector, file_of

__all__ = [
    "Recount",
    "SelectiveClassifier",
    "Selector",
    "file_of",
    "select_run",
    "selective",
]
