"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.classifier._base import labels_of
from unicr.classifier._load import usable
from unicr.classifier._weights import load_weights, read_weights
from unicr.classifier.adapters.builtin import RESNETS
from unicr.classifier.adapters.module import evaluating
from unicr.classifier.adapters.selective import FILE as SELECTOR_FILE
from unicr.classifier.adapters.selective import read as read_selector

__all__ = [
    "RESNETS",
    "SELECTOR_FILE",
    "evaluating",
    "labels_of",
    "load_weights",
    "read_selector",
    "read_weights",
    "usable",
]
