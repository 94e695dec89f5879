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
# relative error of the radius, which `RADIUS` alone would not cover.
TAIL_CHARGE = 2e-15


class Charge(NamedTuple):
    """A number that floating point may spoil, by how much, and why not by more."""

    theorems: str
    of: str
    size: str
    reason: str


CHARGES = (
    Charge("all", "the radius, after the scale", "1e-13, relative", "quantiles, powers, products"),
    Charge("b, d", "1 − p_A and p_B", "2e-15, relative", "quantiles near 1/2 are differences"),
    Charge("a, c, f, n", "H(t) of a composition", "2e-13 + 4e-16 per coordinate",
           "Fourier sums; masses of one law"),
    Charge("a, c, f, n", "mass outside the window", "2e-15", "Chernoff, on both sides"),
    Charge("a, c, f, j, n", "L in a cell", "4 units of its terms", "two log-densities"),
    Charge("i, l, m, o", "mass of a cell", "2η, relative; 1e-10 where it is tabulated",
           "chords of the log-density"),
    Charge("i, l, m, o", "a gap that was tested", "2e-12, relative", "a quotient and a logarithm"),
    Charge("i, o", "a tail of the angle", "4e-12, relative, and 16 units of y",
           "10,400 terms, their places"),
    Charge("l, m, o", "a power of 1 − share", "1e-12, relative", "exponents of at most 700"),
    Charge("i, l, m", "H(t)", "2e-14", "two sums over 12,000 cells"),
    Charge("o", "both parts of the dual", "1e-9·(1 + e^t)", "sums over 4,000 cells"),
    Charge("a", "T and its inverse in closed form", "1e-11, relative", "quantiles, one density"),
    Charge("j", "a convolution", "8e-15 of its terms",
           "FFT or 15 products; sums of 20 in a weight"),
    Charge("j", "Φ at a mesh point", "1e-14", "FFT with values of at most 1; one reading"),
    Charge("j", "H of the first coordinate", "1e-14", "its masses, and the places of its atoms"),
    Charge("j", "a budget", "1e-11, relative", "r^p − u^p + κ(d − 1), at least r^p/2000"),
    Charge("j", "integrals in a kernel", "1e-15", "sums of positive terms"),
    Charge("j", "cumulated sums of masses", "2n units of long double and 4 of double",
           "n additions, one after the other"),
    Charge("curves", "a reading between steps", "4e-15, relative", "one product and one sum"),
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
