"""How are probabilities and quantiles of an arbitrary one-dimensional log-density computed?

The mass is located by a two-sided logarithmic scan (`_scan`), every mode, edge, jump and kink
becomes an anchor, and the density is integrated on panels graded towards and away from the anchors
(`_panels`, `_adapt`). A second, independent quadrature must agree (`_checks`) before a table is
handed out.
"""

from unicr.law._quadrature._table import TabulatedDensity

__all__ = ["TabulatedDensity"]
