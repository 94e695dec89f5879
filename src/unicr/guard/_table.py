"""All regions of a memory in arrays, and which of them hold or come near a point.

Look-up is a linear scan: a lower bound of the distance from 64 coordinates for every region, the
distance itself for the few that are left. It misses nothing, in any norm. With 20,000 digits in
d = 784, on a busy machine, a look-up took 15 ms in l2, 26 in l1 and 17 in linf, where distances to
all take 163, 130 and 145; with 10,000 CIFAR-10 images in d = 3072, 6 to 10 ms where all take 310 to
340. Distances to 16 pivots and the triangle inequality were tried in place of the coordinates: 1.6
times faster in l2, 2.8 times in l1, and in linf, where all digits are equally far apart, slower
than no filter. They were left out. With a million regions in d = 784 a look-up in l2 takes 0.31 s
of one core; a k-d tree over 16 principal components (a contraction, so nothing would be missed)
finds its candidates in 2 to 9 ms, but has to be built again as the memory grows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unicr.guard._metric import Floats, Metric

HEAD = 64
SMALLEST = 64


class Table:
    """The regions in arrays that grow; rows that are there never change."""

    def __init__(self, dim: int) -> None:
        some = np.random.default_rng(dim).permutation(dim)[:HEAD]
        self.head = np.sort(some) if dim > 2 * HEAD else None
        self.size = 0
        self.points = np.empty((SMALLEST, dim), np.float32)
        self.heads = np.empty((SMALLEST, HEAD if self.head is not None else 0))
        self.reach = np.empty(SMALLEST)
        self.label = np.empty(SMALLEST, np.int64)

    def append(self, point: NDArray[np.float32], reach: float, label: int) -> None:
        if self.size == len(self.points):
            for name in ("points", "heads", "reach", "label"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.empty_like(old)]))
        self.points[self.size] = point
        if self.head is not None:
            self.heads[self.size] = point[self.head]
        self.reach[self.size], self.label[self.size] = reach, label
        self.size += 1

    def snapshot(self) -> Snapshot:
        n = self.size
        return Snapshot(self.head, self.points[:n], self.heads[:n], self.reach[:n], self.label[:n])


@dataclass(frozen=True)
class Snapshot:
    """The regions at one moment. Positions count from 0, region numbers from 1."""

    head: NDArray[np.int64] | None
    points: NDArray[np.float32]
    heads: Floats
    reach: Floats
    label: NDArray[np.int64]

    def near(self, metric: Metric, x: Floats, within: float = 0.0) -> NDArray[np.intp]:
        """Positions of all regions whose distance from x may be at most reach + within."""
        if self.head is None:
            return np.arange(len(self.reach))
        return np.flatnonzero(metric.below(x[self.head], self.heads) <= self.reach + within)

    def holding(self, metric: Metric, x: Floats) -> list[tuple[int, float]]:
        """(position, distance from above) of every region that x is in, the deepest first.

        A region is its centre and all points with ρ < reach.
        """
        some = self.near(metric, x)
        some = some[metric.below(x, self.points[some]) <= self.reach[some]]
        found = []
        for at in some.tolist():
            away = metric.above(x, self.points[at].astype(np.float64))
            if away == 0 or away < self.reach[at]:
                found.append((at, away))
        return sorted(found, key=lambda one: (one[1] - float(self.reach[one[0]]), one[0]))

    def room(self, metric: Metric, x: Floats, label: int, reach: float) -> float:
        """The largest reach, at most this one, that stays clear of every other class's region.

        Open balls are disjoint where ρ ≥ reach + reach′, and r ≤ ρ keeps a lone centre out.
        """
        some = self.near(metric, x, reach)
        some = some[self.label[some] != label]
        if not len(some):
            return reach
        free = np.nextafter(metric.below(x, self.points[some]) - self.reach[some], -np.inf)
        return max(0.0, min(reach, float(free.min())))
