"""The one place where a proved radius is rounded down, and the charges of all theorems in a table.

Each charge is a bound of what floating point can do to the number named, and is taken off on the
safe side. docs/theory.md#rounding-charges tells the reasons at length; `CHARGES` is that table.
"""

from __future__ import annotations

from typing import NamedTuple, overload

from unicr.values import Array

# Relative, off every proved radius after it was multiplied by the scale. Quantile functions of the
# families are right to 3e-15 of their value (tests/radius/test_rounding.py compares them with
# 40 digits); powers such as d^(1/p − 1/2), the scale and the product add a few units of 2e-16.
RADIUS_CHARGE = 1e-13

# Relative, onto a tail probability before its quantile is taken. Near p_A = 1/2 a quantile is a
# small difference: an error of one unit in the last place of the probability is then a large
# relative error of the radius, which `RADIUS_CHARGE` alone would not cover.
TAIL_CHARGE = 2e-15


class Charge(NamedTuple):
    """A number that floating point may spoil, by how much, why not by more, and which constant."""

    theorems: str
    of: str
    size: str
    reason: str
    constant: str


CHARGES = (
    Charge(
        "all", "the radius, after the scale", "1e-13, relative",
        "quantiles, powers, products", "radius/_rounding.py RADIUS_CHARGE",
    ),
    Charge(
        "b, d", "1 − p_A and p_B", "2e-15, relative",
        "quantiles near 1/2 are differences", "radius/_rounding.py TAIL_CHARGE",
    ),
    Charge(
        "a, c, f, n", "H(t) of a composition", "2e-13 + 1.2e-14 per coordinate",
        "Fourier sums; masses of one law", "tradeoff/_compose.py ROUNDING, ROUNDING_EACH",
    ),
    Charge(
        "a, c, f, j, n, q", "edges of a law that lies 100 widths from zero or farther",
        "1 unit of |place| + u, times the density",
        "places that are moved by the shift are rounded", "tradeoff/_ratio.py FAR",
    ),
    Charge(
        "a, c, f, n", "mass outside the window", "1e-15 on each side",
        "Chernoff", "tradeoff/_compose.py OUTSIDE_WINDOW",
    ),
    Charge(
        "a, c, f, j, n", "L in a cell", "4 units of its terms",
        "two log-densities", "tradeoff/_ratio.py RANGE_UNITS",
    ),
    Charge(
        "a, c, f, j, n", "masses of a cell against its L", "1e-11, and 64 units of each tail",
        "terms of some thousand; gamma functions", "tradeoff/_ratio.py LOG_ROUNDING, MASS_UNITS",
    ),
    Charge(
        "a, c, f, j, n", "a place beside a jump of a table", "12 units of the place",
        "two sums and a product", "tradeoff/_ratio.py JUMP_UNITS",
    ),
    Charge(
        "i, l, m, o", "mass of a cell", "2η, relative; 1e-10 where it is tabulated",
        "chords of the log-density", "tradeoff/_falling.py TABULATED",
    ),
    Charge(
        "i, l, m, o", "a gap that was tested", "2e-12, relative",
        "a quotient and a logarithm", "tradeoff/_falling.py TESTED",
    ),
    Charge(
        "i, l, m, o", "how fast a gap falls", "1e-12",
        "a quotient of two slopes", "tradeoff/_falling.py SLOPE_CHARGE",
    ),
    Charge(
        "i, o", "a tail of the angle", "4e-12, relative, and 16 units of y",
        "10,400 terms, their places", "tradeoff/_angle.py ROUNDING, PLACE",
    ),
    Charge(
        "l, m, o", "a power of 1 − share", "1e-12, relative",
        "exponents of at most 700", "tradeoff/_falling.py CLOSED",
    ),
    Charge(
        "i, l, m", "H(t)", "2e-14",
        "two sums over 12,000 cells", "tradeoff/_falling.py ROUNDING",
    ),
    Charge(
        "o", "both parts of the dual", "1e-9·(1 + e^t)",
        "sums over 4,000 cells", "tradeoff/_two.py DUAL_CHARGE",
    ),
    Charge(
        "a", "T and its inverse in closed form", "1e-11, relative",
        "quantiles, one density", "radius/theorems/one_dimension.py CLOSED_FORM_CHARGE",
    ),
    Charge(
        "a", "a shift in closed form", "4 units of the farthest place + u",
        "places far from zero, each rounded", "radius/theorems/one_dimension.py PLACE_UNITS",
    ),
    Charge(
        "j", "a finite pair of a step", "4e-15",
        "sums, quotients and logarithms of its masses",
        "radius/bellman/_kernel.py STEP_ROUNDING",
    ),
    Charge(
        "j", "a jump", "2e-15 + 1e-12, relative",
        "masses of one law; sums over coordinates",
        "radius/bellman/_jumps.py MASS_ROUNDING, SUM_ROUNDING",
    ),
    Charge(
        "j", "a convolution", "8e-15 of its terms",
        "FFT or 15 products; sums of 20 in a weight", "radius/bellman/_verify.py CONVOLUTION",
    ),
    Charge(
        "j", "Φ at a mesh point", "1e-14",
        "FFT with values of at most 1; one reading", "radius/bellman/_sheet.py SMOOTHING_CHARGE",
    ),
    Charge(
        "j", "H of the first coordinate", "3e-14",
        "its masses, and the places of its atoms", "radius/bellman/_sheet.py START_CHARGE",
    ),
    Charge(
        "j", "a budget", "1e-11, relative",
        "r^p − u^p + κ(d − 1), at least r^p/2000", "radius/bellman/_sheet.py BUDGET_CHARGE",
    ),
    Charge(
        "j", "integrals in a kernel", "1.3e-14",
        "masses of one law; sums of positive terms", "radius/bellman/_verify.py KERNEL_ROUNDING",
    ),
    Charge(
        "j", "cumulated sums of masses",
        "2(n + 2) units of long double and 1 of double, for each of 4 values",
        "n additions, one after the other", "radius/bellman/_kernel.py LONG_UNIT",
    ),
    Charge(
        "j", "one inequality", "16 units of double",
        "its sums, and the places in cells of budgets",
        "radius/bellman/_verify.py ROUNDINGS_PER_CHECK",
    ),
    Charge(
        "j, q", "an excess over a chord", "1e-13, and 64 units of each cell",
        "masses, densities and places of edges", "radius/bellman/_chord.py EXCESS_ROUNDING",
    ),
    Charge(
        "j", "a bend", "1e-9, relative",
        "two slopes and two quotients, right to 1e-12", "radius/bellman/_chord.py BEND_ROUNDING",
    ),
    Charge(
        "j", "ψ(u) − ψ(0)", "1e-12",
        "values of some hundred, right to some units", "radius/bellman/_chord.py REACH_ROUNDING",
    ),
    Charge(
        "f, j", "a kink", "64 units of the farthest jump, times the variation",
        "a difference of two places, right to two of them", "radius/bellman/_chord.py KINK_UNITS",
    ),
    Charge(
        "j", "a term of a stencil", "1e-13, relative",
        "exponents of at most 110; Gauss points", "radius/bellman/_stencil.py ROUNDING",
    ),
    Charge(
        "curves", "a reading between steps", "4e-15, relative",
        "one product and one sum", "radius/_readings.py READING_CHARGE",
    ),
    Charge(
        "curves", "a stored radius", "1e-12, relative, twice",
        "exp and log of some hundred", "radius/_cache.py PACKED_CHARGE",
    ),
    Charge(
        "curves", "a stored probit, in steps", "1e-6",
        "log, a quotient and a quantile", "radius/_cache.py PROBIT_CHARGE",
    ),
    Charge(
        "curves", "H of each coordinate, packaged", "1.3e-14",
        "made with a smaller charge of a kernel", "radius/_cache.py SHIPPED_LACK",
    ),
)  # fmt: skip


@overload
def lower_radius(radius: float, scale: float) -> float: ...
@overload
def lower_radius(radius: Array, scale: float) -> Array: ...
def lower_radius(radius: float | Array, scale: float) -> float | Array:
    """A proved radius at unit scale in real units, rounded down: at most what the theorem gives.

    Every proved radius goes through here, once, after its theorem and before anybody sees it.
    """
    return radius * scale * (1.0 - RADIUS_CHARGE)


@overload
def raise_tail(tail: float) -> float: ...
@overload
def raise_tail(tail: Array) -> Array: ...
def raise_tail(tail: float | Array) -> float | Array:
    """A probability of not being in the top class, rounded up."""
    return tail * (1.0 + TAIL_CHARGE)
