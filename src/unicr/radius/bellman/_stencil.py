"""Normal densities at the points of a mesh in place of one between them, from above.

A tent is 1 at a mesh point, 0 at its neighbours and straight in γ between. With τ_j the tent of
point j smeared by N(0, s²), over h, row m of `stencils` has numbers c_j, some negative, with

    φ_s(y − mh/parts) ≤ Σ_j c_j τ_j(y)        for ALL real y,

and a sum hardly above 1: found by linear programming, proved by `dominates`. Over the left side the
right one is Σ c_j e_j, where e_j = τ_j(y)/φ_s(y − mh/parts) is a positive mixture of exponentials
e^(tx), x = y/s. So e_j and e_j″ are convex: between two x of a grid a term with c_j < 0 is at most
its chord, and one with c_j > 0 less than its chord by at most width²/8 of the larger e_j″ of the
two ends. Beyond the grid e_j/e_i grows with x for j > i, and so does e_j for j > m/parts: where the
last term alone is larger than 1 and all the negative ones, it stays so.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import optimize

from unicr.values import Array

# Nothing here needs to be right for the proof but `dominates` and its ROUNDING: coefficients that
# it accepts are good, however they were found.
REACH = 5  # mesh points of a stencil on its lower side, one more on the upper
POINTS = np.arange(-REACH, REACH + 2.0)  # of a stencil
GRID_END = 40.0  # of s: the grid of x; beyond it the outermost term alone decides
GRID_STEP = 0.01  # of it, where the inequality is checked
SEARCH_STEP = 0.1  # the same where coefficients are sought
# Relative, of every term: exponents are at most 110, so that exp is right to 2.5e-14; and 16 Gauss
# points integrate e^(16v), the steepest term of the grid, to 2e-15
# (tests/radius/test_rounding.py compares with 40 digits).
ROUNDING = 1e-13
SMALLNESS = 1e-3  # what Σ|c_j| and points far away count beside Σc_j
MARGIN = 1e-4  # of the largest term: what is asked for beyond the inequality, for what is between


def compute_terms(x: Array, place: float, step: float, smooth: float) -> tuple[Array, Array]:
    """e_j and e_j″ at each x, for the density that stands at `place` steps."""
    node, weight = np.polynomial.legendre.leggauss(16)
    node, weight = 0.5 * (node + 1), 0.5 * weight
    rising = np.expm1(step * node) / np.expm1(step)  # the tent between its lower neighbour and it
    v = np.concatenate([node - 1, node])
    height = np.concatenate([weight * rising, weight * (1 - rising)])
    j, q = POINTS, step / smooth
    value, second = np.zeros((2, len(j), len(x)))
    for at, much in zip(v, height, strict=True):
        t = ((j + at - place) * q)[:, None]
        term = much * np.exp(t * (x - 0.5 * q * (j + at + place)[:, None]))
        value += term
        second += t**2 * term
    return value, second


def dominates(c: Array, place: float, step: float, smooth: float) -> bool:
    """Whether the inequality of the module holds for every real y (docs/theory.md#theorem-j)."""
    x = np.linspace(-GRID_END, GRID_END, 1 + round(2 * GRID_END / GRID_STEP))
    value, second = compute_terms(x, place, step, smooth)
    up, down = np.maximum(c, 0.0), np.maximum(-c, 0.0)
    rounding = ROUNDING * (up @ value + down @ value + 1.0)
    excess = c @ value - 1.0 - rounding
    bent = up @ second
    between = np.minimum(excess[1:], excess[:-1])
    # 1e-9: for the rounding of second derivatives, which are sums of positive terms
    between -= (1 + 1e-9) * GRID_STEP**2 / 8 * np.maximum(bent[1:], bent[:-1])
    ends = [
        c[j] * value[j, i] > 1.0 + down @ value[:, i] + rounding[i] for j, i in ((-1, -1), (0, 0))
    ]
    return bool(np.all(between >= 0) and all(ends))


@lru_cache(maxsize=32)
def find_stencils(step: float, smooth: float, parts: int) -> Array:
    """A row of coefficients for each place m/parts of a cell, m = 0 … parts − 1."""
    return np.array([_find_stencil(m / parts, step, smooth) for m in range(parts)])


def _find_stencil(place: float, step: float, smooth: float) -> Array:
    x = np.linspace(-GRID_END, GRID_END, 1 + round(2 * GRID_END / SEARCH_STEP))
    value, _ = compute_terms(x, place, step, smooth)
    largest = np.max(value, axis=0)
    rows, cost = (value / largest).T, 1.0 + SMALLNESS * (POINTS - place) ** 2
    for care in (MARGIN, 4 * MARGIN, 16 * MARGIN):
        solution = optimize.linprog(  # c = its positive part − its negative part, both small
            np.concatenate([cost + SMALLNESS, SMALLNESS - cost]),
            A_ub=np.hstack([-rows, rows]),
            b_ub=-(1.0 / largest + care),
        )
        if solution.x is not None:
            c = solution.x[: len(cost)] - solution.x[len(cost) :]
            if dominates(c, place, step, smooth):
                return c
    raise ValueError(f"no stencil for mesh step {step!r} and width {smooth!r} was found")
