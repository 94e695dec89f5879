"""What the published formulas share: a search over a parameter, a bisection, logs kept exact."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

# (noise, dim, p_A, p_B) → radius, where p_B < p_A and p_B ≤ 1 − p_A are already granted
Case = Callable[[Any, int, float, float], float]
# Relative, onto a probability before its logarithm: sums, roots and powers of some units each.
ROUNDING = 64 * sys.float_info.epsilon


def maximise_on_grid(value: Callable[[float], float], low: float, high: float) -> float:
    """The largest value met on a grid that is refined around its best point.

    Every point gives a valid certificate, so a missed optimum costs radius, not soundness.
    """
    best, count = 0.0, 49
    for _ in range(7):
        grid = np.linspace(low, high, count)
        values = [value(float(x)) for x in grid]
        top = int(np.argmax(values))
        best = max(best, values[top])
        low, high = float(grid[max(top - 1, 0)]), float(grid[min(top + 1, count - 1)])
        count = 17
    return best


def bisect_boundary(accepts: Callable[[float], bool], start: float) -> float:
    """The inner end of the boundary of a set [0, r], by doubling and bisection."""
    low, high = 0.0, start
    while accepts(high):
        low, high = high, 2 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if accepts(middle) else (low, middle)
    return low


def make_binary(radius: Callable[[Any, int, float], float]) -> Case:
    """A two-class formula: it asks that class A keeps half the mass, so p_B plays no part."""
    return lambda noise, dim, p_a, p_b: radius(noise, dim, p_a) if p_a > 0.5 else 0.0


def log_ratio(p_a: float, p_b: float) -> float:
    """log(p_A/p_B), digits kept where the two are close."""
    if p_b == 0:
        return math.inf
    return math.log1p((p_a - p_b) / p_b) if p_a < 2 * p_b else math.log(p_a) - math.log(p_b)


def log_of_rest(p_a: float, p_b: float) -> float:
    """−log(1 − p_A + p_B), digits kept at both ends."""
    gap = p_a - p_b
    return -math.log1p(-gap) if gap < 0.5 else minus_log((1.0 - p_a) + p_b)


def minus_log(x: float) -> float:
    return -math.log(x) if x > 0 else math.inf
