"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.noise._base import positive
from unicr.noise._ends import ENDS, plainest
from unicr.noise._quadrature._logdensity import HINT
from unicr.noise._spec import check_parses

__all__ = ["ENDS", "HINT", "check_parses", "plainest", "positive"]
