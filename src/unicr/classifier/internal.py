"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.classifier._base import labels_of
from unicr.classifier._load import RESNETS, usable
from unicr.classifier._module import evaluating
from unicr.classifier._weights import read_weights

__all__ = ["RESNETS", "evaluating", "labels_of", "read_weights", "usable"]
