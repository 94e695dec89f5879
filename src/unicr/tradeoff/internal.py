"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.tradeoff._envelope import envelope
from unicr.tradeoff._ratio import interval_mass
from unicr.tradeoff._spherical import spherical_tradeoff

__all__ = ["envelope", "interval_mass", "spherical_tradeoff"]
