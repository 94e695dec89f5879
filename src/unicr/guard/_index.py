"""Which of very many regions can be near a point, without a look at each: k-d trees that miss none.

A projection Q onto a few orthonormal directions makes no distance longer: ‖Q(x − c)‖₂ ≤
‖x − c‖₂ ≤ d^max(0, 1/2 − 1/p)·‖x − c‖_p. So every region whose distance from x is at most its reach
(and what is added to it) has its projection in a ball round that of x, and a tree finds those.
Rounding is paid for in the radius of the ball. Which directions are taken decides the speed alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from unicr.guard._metric import Floats, Metric

DIRECTIONS = 16
SAMPLE = 256  # rows that choose the directions
SHARES = (0.9, 0.99)  # regions by their reach: a few wide ones must not widen the ball of all
ROWS = 4096  # projected at a time
FAR = 1e100  # a ball this wide holds everything


@dataclass(frozen=True)
class _Group:
    """Regions of about one reach: where they are, the widest reach, and the tree over them."""

    rows: NDArray[np.intp]
    reach: float
    tree: cKDTree


class Block:
    """Regions first … last − 1 of a table, indexed; they never change."""

    def __init__(self, points: NDArray[np.float32], reach: Floats, first: int, last: int) -> None:
        self.first, self.last = first, last
        some = np.linspace(first, last - 1, min(SAMPLE, last - first)).astype(np.intp)
        sample = points[some].astype(np.float64)
        scale = float(np.abs(sample).max(initial=0.0)) or 1.0
        sample = (sample - sample.mean(0)) / scale
        _, vectors = np.linalg.eigh(sample @ sample.T)
        leading = sample.T @ vectors[:, ::-1][:, :DIRECTIONS]
        self._axes = np.linalg.qr(leading + 1e-6 * np.eye(*leading.shape))[0]
        flat = np.empty((last - first, self._axes.shape[1]))
        self._size = 0.0  # the largest ‖c‖₂
        for a in range(first, last, ROWS):
            part = points[a : min(a + ROWS, last)].astype(np.float64)
            flat[a - first : a - first + len(part)] = part @ self._axes
            self._size = max(self._size, float(np.linalg.norm(part, axis=1).max()))
        order = np.argsort(reach[first:last], kind="stable")
        cuts = [int(share * len(order)) for share in SHARES]
        self._groups = []
        for rows in np.split(order, cuts):
            if len(rows):
                widest = float(reach[first + rows[-1]])
                tree = cKDTree(flat[rows], balanced_tree=False, compact_nodes=False)
                self._groups.append(_Group(first + rows, widest, tree))

    def near(self, metric: Metric, x: Floats, within: float) -> list[NDArray[np.intp]]:
        """Positions of regions, all those among them whose distance is at most reach + within.

        Projections err by less than slack: the sums of d products each, of rows of norm ≤ 1.
        """
        there, dim = x @ self._axes, len(x)
        slack = 8 * (dim + DIRECTIONS) * 2.0**-52 * (self._size + float(np.linalg.norm(x)))
        stretch = dim ** max(0.0, 0.5 - (0.0 if math.isinf(metric.norm.p) else 1 / metric.norm.p))
        found = []
        for group in self._groups:
            radius = _root(group.reach + within, metric.power) * stretch
            ball = radius * (1 + 1e-9) + slack
            if ball < FAR:
                inside = group.tree.query_ball_point(there, ball, return_sorted=False)
                found.append(group.rows[np.asarray(inside, dtype=np.intp)])
            else:
                found.append(group.rows)
        return found


def _root(reach: float, power: float) -> float:
    """The distance in the norm that ρ ≤ reach allows."""
    if power == 1.0 or math.isinf(reach):
        return reach
    try:
        return float(reach ** (1 / power))
    except OverflowError:
        return math.inf
