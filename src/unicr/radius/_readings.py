"""Steps (1 − p_k, r_k) made readable in nanoseconds: straight pieces that stay below the steps.

r_k holds for every p ≥ p_k, so a piece that lies below each step at its right end lies below what
is proved, whatever the curve does in between.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import RadiusError
from unicr.values import Array

LAST_TAIL = 1e-11  # 1 − p_A where curves end: beyond, a reading stays what it was there
LAST_LOG = -math.log(2 * LAST_TAIL)  # the same as x
CELLS = 1 << 14  # pieces of a curve: each is below the steps, so more of them only lose less
BLOCK = 1 << 16  # probabilities that are read at once, so that all arrays stay in the cache
# Of a piece's terms, off its start: x = −log(2 − 2p) is right to two units of itself, its cell may
# be the next one, where both pieces hold; a product and a sum follow, some units of 2e-16 each.
READING_CHARGE = 4e-15
FIRST_LOG = 1e-7  # the first x: p_A = 0.50000005

# where a closed form is evaluated: 0.04 % apart in the radius or closer
FINE_TAILS = 0.5 * np.exp(
    -np.concatenate([np.geomspace(FIRST_LOG, 1, 41_000), np.linspace(1, LAST_LOG, 59_000)])
)


class Readings:
    """Straight pieces on a uniform grid of x = −log(2(1 − p)), below the given steps.

    `alpha` = 1 − p falls, `radius` rises. Below the first step the reading is 0, beyond the last it
    stays; at p = 1 it is `at_one`.
    """

    def __init__(self, alpha: Array, radius: Array, at_one: float | None = None) -> None:
        used = (alpha < 0.5) & (alpha > 0) & (radius > 0)
        x = np.minimum(-np.log(2 * alpha[used]), LAST_LOG)
        order = np.argsort(x, kind="stable")
        x = x[order]
        r = np.maximum.accumulate(radius[used][order]) if x.size else x
        edges = np.linspace(0.0, LAST_LOG, CELLS + 1)
        x, r = np.concatenate([[0.0], x, [2 * LAST_LOG]]), np.concatenate([[0.0], r])
        r = np.append(r, r[-1])
        at = r[np.searchsorted(x, edges, side="right") - 1]
        slope = np.diff(at) * (CELLS / LAST_LOG)
        # the lowest corner of each cell: just before the next step, or at the cell's right edge
        cell = np.minimum((x[1:] * (CELLS / LAST_LOG)).astype(np.int64), CELLS - 1)
        start = r[np.searchsorted(x, edges[1:], side="left") - 1] - slope * edges[1:]
        np.minimum.at(start, cell, r[:-1] - slope[cell] * np.minimum(x[1:], edges[cell + 1]))
        self._slope, self._start = (
            slope,
            start - READING_CHARGE * (np.abs(start) + slope * edges[1:]),
        )
        ends = np.maximum(self._start + slope * edges[1:], 0.0)  # what held before holds after
        self._floor = np.concatenate([[0.0], np.maximum.accumulate(ends)[:-1]])
        self._last = float(r[-1])
        self._at_one = self._last if at_one is None else at_one

    def read(self, p: ArrayLike) -> Array:
        """The radius at each p; an error if one is not a probability."""
        p = np.asarray(p, dtype=np.float64)
        flat = np.ravel(p)
        if flat.size and not (np.min(flat) >= 0 and np.max(flat) <= 1):
            bad = flat[~((flat >= 0) & (flat <= 1))][0]
            raise RadiusError(f"p_a={bad!r} must be a probability between 0 and 1")
        result = np.empty_like(flat)
        for first in range(0, flat.size, BLOCK):
            part = flat[first : first + BLOCK]
            with np.errstate(divide="ignore"):
                x = np.minimum(-np.log(2.0 - 2.0 * part), LAST_LOG)
            cell = np.clip(x * (CELLS / LAST_LOG), 0, CELLS - 1).astype(np.int32)
            values = np.maximum(self._start[cell] + self._slope[cell] * x, self._floor[cell])
            result[first : first + BLOCK] = np.where(x > 0, np.minimum(values, self._last), 0.0)
        np.maximum(result, 0.0, out=result)
        if flat.size and np.max(flat) == 1:
            result[flat == 1] = self._at_one
        return result.reshape(p.shape)
