"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.optimize._optimality import (
    Comparison,
    Report,
    Standing,
    at_sigma,
    gallery,
    validate,
    validate_average,
)
from unicr.optimize._optuna import optuna_search

__all__ = [
    "Comparison",
    "Report",
    "Standing",
    "at_sigma",
    "gallery",
    "optuna_search",
    "validate",
    "validate_average",
]
