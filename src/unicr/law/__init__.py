"""Laws: one-dimensional distributions, by formula or by table.

A noise is a structure (independent coordinates, or a length times a direction), a law and a scale.
Multiplying a law (`scaled`) and conditioning it (`given`) give laws again; what is known of a law
(`Facts`) goes with it.
"""

from unicr.law._base import Curvature, Facts, Law, Scaled, SymmetricLaw, invert_tail
from unicr.law._length import LengthLaw, RadialDensity
from unicr.law._table import Table

__all__ = [
    "Curvature",
    "Facts",
    "Law",
    "LengthLaw",
    "RadialDensity",
    "Scaled",
    "SymmetricLaw",
    "Table",
    "invert_tail",
]
