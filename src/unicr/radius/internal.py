"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.radius._curve import shape_of
from unicr.radius._direction import search
from unicr.radius._radius import check_dimension
from unicr.radius._result import guarantee_of
from unicr.radius._worst import from_below
from unicr.radius.theorems import exact

__all__ = [
    "check_dimension",
    "exact",
    "from_below",
    "guarantee_of",
    "search",
    "shape_of",
]
