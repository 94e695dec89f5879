"""The law of the angle between a uniform direction of R^d and a fixed one, from both sides.

The cosine is sin y, where y has the density c·cos^m y on [−π/2, π/2], m = d − 2. Tail
probabilities are tabulated at even steps of y and continued by cubic pieces with the right values
and slopes at both ends; their error is at most h⁴/384 times the largest fourth derivative, for
which there is a formula (docs/theory.md#the-angle).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from unicr.values import Array

CELLS = 10_400  # of .0025 deviations each: what the Gauss rule and the cubic below are counted for
REACH = 13.0  # deviations: a tail of 6e-39, below any that a radius asks for
# Of every tabulated tail. The exponent of the density is at most REACH²/2 in size and is right to
# ten roundings, 2e-13; c to 2e-13 (Stirling); sums of up to 10,400 terms to as many halves of a
# rounding, 1.2e-12.
ROUNDING = 4e-12
# Of a cell, outwards, for the place of a given y and of the table's own points: each is right to
# five roundings of the table's length, and a cell is 1/CELLS of that.
PLACE = 16 * CELLS * float(np.finfo(np.float64).eps)
EPS = float(np.finfo(np.float64).eps)


class Angle:
    """P(cos θ > x) for a uniform direction in R^d, never above it, or never below it."""

    def __init__(self, dim: int) -> None:
        m, c = dim - 2, density_at_zero(dim)
        self._end = end = min(math.pi / 2, REACH / math.sqrt(dim - 1))
        y, h = np.linspace(-end, end, CELLS + 1), 2 * end / CELLS
        self._per_unit = 1 / h
        # Gauss rules of five points on cells so short have no error: (h·√m)^10/10! is below 1e-30
        node, weight = np.polynomial.legendre.leggauss(5)
        mass = 0.5 * h * c * _power(m, y[:-1, None] + 0.5 * h * (1 + node)) @ weight
        # what lies beyond the table is left out: from below that is right, and 6e-39 from above
        tail = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
        fall = c * h * _power(m, y)
        left, right, down, after = tail[:-1], tail[1:], fall[:-1], fall[1:]
        drop = left - right
        self._cubic = np.stack([2 * drop - down - after, down + down + after - 3 * drop, -down], 1)
        error = c * h**4 / 384 * _third_derivative(m, y) + ROUNDING * left
        self._low, self._high = left - error, left + error
        self._high += 1e-38

    def beyond(self, x: Array, *, above: bool = False) -> Array:
        """P(cos θ > x) from below; `above`: from above. x may be off by four roundings."""
        x = x + (-4 * EPS if above else 4 * EPS) * np.abs(x)
        y = np.arcsin(np.clip(x, -1.0, 1.0))
        place = (np.clip(y, -self._end, self._end) + self._end) * self._per_unit
        place += -PLACE if above else PLACE
        cell = np.clip(place.astype(np.intp), 0, CELLS - 1)
        u, c = place - cell, self._cubic[cell]
        start = (self._high if above else self._low)[cell]
        value = start + u * (c[..., 2] + u * (c[..., 1] + u * c[..., 0]))
        if above:
            value = np.where(y < -self._end, 1.0, np.minimum(value, 1.0))
            return np.where(x >= 1.0, 0.0, value)
        return np.where(y > self._end, 0.0, np.maximum(value, 0.0))


def density_at_zero(dim: int) -> float:
    """c = Γ(d/2)/(√π·Γ((d − 1)/2)), the density of the cosine at 0."""
    x = 0.5 * (dim - 1)
    if dim < 200:
        ratio = math.gamma(x + 0.5) / math.gamma(x)
    else:  # by Stirling's series; the next term is 1/640x⁵ < 2e-13
        ratio = math.sqrt(x) * math.exp(-1 / (8 * x) + 1 / (192 * x**3))
    return ratio / math.sqrt(math.pi)


def _power(m: int, y: Array) -> Array:
    """cos^m y, right to ten roundings of its logarithm, for the y that is given."""
    if not m:
        return np.ones_like(y)
    sine = np.minimum(np.sin(y) ** 2, 0.5)
    with np.errstate(divide="ignore"):
        # one keeps its digits where cos y is near 1 and m large, the other where it is near 0
        log = np.where(sine < 0.5, 0.5 * np.log1p(-sine), np.log(np.maximum(np.cos(y), 0.0)))
        return np.exp(m * log)


def _third_derivative(m: int, y: Array) -> Array:
    """At least |(cos^m)‴| in each cell of y.

    (cos^m)‴ = (3m² − 2m)·sin·cos^(m−1) − m(m−1)(m−2)·sin³·cos^(m−3); the sines count at the
    outer end of the cell and the cosines at the inner one.
    """
    near, far = np.sort(np.abs(np.stack([y[:-1], y[1:]])), axis=0)
    total = np.zeros(near.size)
    for factor, power in ((3.0 * m * m - 2.0 * m, 1), (float(m) * (m - 1) * (m - 2), 3)):
        if factor:
            total += factor * np.sin(far) ** power * _power(m - power, near)
    return total


@lru_cache(maxsize=16)
def angle_law(dim: int) -> Angle:
    """The table of one dimension, kept."""
    return Angle(dim)
