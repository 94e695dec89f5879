"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.radius._curve import shape_of as shape_of
from unicr.radius._direction import search as search
from unicr.radius._radius import check_dimension as check_dimension
from unicr.radius._result import guarantee_of as guarantee_of
from unicr.radius._worst import from_below as from_below
from unicr.radius.theorems import exact as exact
