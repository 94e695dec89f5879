"""Distances with a direction: bounds from above and below that rounding cannot break.

Regions are compared by the triangle inequality. ‖·‖_p obeys it from p = 1 on; below, ‖·‖_p^p does.
So ρ(x, c) is ‖x − c‖_p, or ‖x − c‖_p^p where p < 1, and a radius R becomes the reach R, or R^p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unicr.norms import Norm

Floats = NDArray[np.float64]
ERROR = 1e-12  # relative; a sum that is rounded once errs by a few times 1e-16
CELLS = 1 << 20  # differences held at a time by a scan


@dataclass(frozen=True)
class Metric:
    """ρ for one norm. Points are float32 values, held as float64 while computing."""

    norm: Norm

    @property
    def power(self) -> float:
        """ρ = ‖·‖_p to this power: 1, or p where p < 1."""
        return min(1.0, self.norm.p)

    def reach(self, radius: float) -> float:
        """A reach such that ρ < reach implies ‖δ‖_p < radius."""
        if self.power == 1.0 or math.isinf(radius):
            return radius
        return float(radius**self.power * (1 - ERROR))

    def radius(self, reach: float) -> float:
        """A radius such that ‖δ‖_p < radius implies ρ < reach."""
        if self.power == 1.0 or math.isinf(reach):
            return reach
        return float(reach ** (1 / self.power) * (1 - ERROR))

    def above(self, x: Floats, c: Floats) -> float:
        """ρ(x, c), rounded up by at most three ERROR; 0 exactly where x = c.

        The same numbers give the same result whatever stands beside them: the sum is rounded once.

        See docs/theory.md#the-guard.
        """
        return self._single(np.abs(x - c)) * (1 + ERROR)

    def _single(self, sizes: Floats) -> float:
        p, top = self.norm.p, float(np.max(sizes, initial=0.0))
        if math.isinf(p) or top == 0:
            return top
        if p == 1:
            return math.fsum(sizes.tolist())
        if p == 2:
            return math.sqrt(math.fsum((sizes * sizes).tolist()))
        if p < 1:
            return math.fsum(math.pow(v, p) for v in sizes.tolist() if v)
        total = math.fsum(math.pow(v, p) for v in (sizes / top).tolist())
        return float(top * math.pow(total, 1 / p))

    def below(self, x: Floats, rows: NDArray[Any]) -> Floats:
        """ρ from x to every row, rounded down (docs/theory.md#the-guard)."""
        distances = np.empty(len(rows))
        step = max(1, CELLS // max(1, rows.shape[1]))
        for first in range(0, len(rows), step):
            part = np.abs(rows[first : first + step].astype(np.float64) - x)
            distances[first : first + step] = self._several(part)
        distances *= 1 - ERROR - 4 * rows.shape[1] * 2.0**-53
        return distances

    def _several(self, sizes: Floats) -> Floats:
        p = self.norm.p
        if math.isinf(p):
            return np.asarray(sizes.max(axis=1, initial=0.0))
        if p == 1:
            return np.asarray(sizes.sum(axis=1))
        if p == 2:
            return np.asarray(np.sqrt(np.einsum("ij,ij->i", sizes, sizes)))
        if p < 1:
            return np.asarray((sizes**p).sum(axis=1))
        top = sizes.max(axis=1, initial=0.0)
        scaled = sizes / np.where(top > 0, top, 1.0)[:, None]
        return np.asarray(top * (scaled**p).sum(axis=1) ** (1 / p))

    def shrink_radius(self, reach: float, away: float = 0.0) -> float:
        """The radius round a point `away` from a centre that the region of this reach still holds.

        Every point nearer than that passes the test `above` < reach, rounding included.
        """
        if math.isinf(reach):
            return reach
        return self.radius(max(0.0, reach * (1 - 4 * ERROR) - away))
