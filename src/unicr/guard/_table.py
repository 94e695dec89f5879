"""All regions of a memory in arrays, and which of them hold or come near a point.

A look-up scans every region and misses none, in any norm: first a lower bound of the distance from
64 coordinates, which leaves few regions, then the distance itself for those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unicr.guard._metric import Floats, Metric

# Coordinates that the first bound looks at. A partial sum, or a maximum over some coordinates, is
# never above the distance, so the choice decides the speed alone.
HEAD = 64
SMALLEST = 64  # regions that the arrays have room for at first; they double when they are full


class Table:
    """The regions in arrays that grow; rows that are there never change."""

    def __init__(self, dim: int) -> None:
        chosen = np.random.default_rng(dim).permutation(dim)[:HEAD]
        self.head = np.sort(chosen) if dim > 2 * HEAD else None
        self.size = 0
        self.points = np.empty((SMALLEST, dim), np.float32)
        self.heads = np.empty((SMALLEST, HEAD if self.head is not None else 0))
        self.reach = np.empty(SMALLEST)
        self.label = np.empty(SMALLEST, np.int64)

    def append(self, point: NDArray[np.float32], reach: float, label: int) -> None:
        """Add one region behind the others."""
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
        """The regions that are there now; later ones do not show in it."""
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
        away = metric.below(x[self.head], self.heads)
        return np.flatnonzero(away <= self.reach + within)

    def list_holding(self, metric: Metric, x: Floats) -> list[tuple[int, float]]:
        """(position, distance from above) of every region that x is in, the deepest first.

        A region is its centre and all points with ρ < reach. See docs/theory.md#the-guard.
        """
        candidates = self.near(metric, x)
        away = metric.below(x, self.points[candidates])
        candidates = candidates[away <= self.reach[candidates]]
        inside = []
        for at in candidates.tolist():
            distance = metric.above(x, self.points[at].astype(np.float64))
            if distance == 0 or distance < self.reach[at]:
                inside.append((at, distance))
        return sorted(inside, key=lambda pair: (pair[1] - float(self.reach[pair[0]]), pair[0]))

    def room(self, metric: Metric, x: Floats, label: int, reach: float) -> float:
        """The largest reach, at most this one, that stays clear of every other class's region.

        Open balls are disjoint where ρ ≥ reach + reach′, and r ≤ ρ keeps a lone centre out.

        See docs/theory.md#the-guard.
        """
        others = self.near(metric, x, reach)
        others = others[self.label[others] != label]
        if not len(others):
            return reach
        # rounded down once more: the subtraction itself may round up by half a unit
        free = np.nextafter(metric.below(x, self.points[others]) - self.reach[others], -np.inf)
        return max(0.0, min(reach, float(free.min())))
