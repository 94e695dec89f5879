"""Which noise of equal σ certifies the largest radius, and what of that is proved."""

from unicr.lab.optimality._compare import (
    Comparison,
    Standing,
    compare_average,
    compare_noises,
    gallery,
    list_galleries,
    rescale_to,
)
from unicr.lab.optimality._inputs import RunInputs, read_run

__all__ = [
    "Comparison",
    "RunInputs",
    "Standing",
    "compare_average",
    "compare_noises",
    "gallery",
    "list_galleries",
    "read_run",
    "rescale_to",
]
