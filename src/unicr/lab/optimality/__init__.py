"""Which noise of equal σ certifies the largest radius, and what of that is proved."""

from unicr.lab.optimality._compare import (
    Comparison,
    Standing,
    at_sigma,
    families_with_gallery,
    gallery,
    validate,
    validate_average,
)
from unicr.lab.optimality._inputs import RunInputs, read_run

__all__ = [
    "Comparison",
    "RunInputs",
    "Standing",
    "at_sigma",
    "families_with_gallery",
    "gallery",
    "read_run",
    "validate",
    "validate_average",
]
