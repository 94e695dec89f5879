"""All regions of a memory in arrays, and which of them hold or come near a point.

A look-up misses nothing, in any norm: a lower bound of the distance from 64 coordinates, then the
distance itself for the few that are left. Up to LEAST new regions are scanned so; older ones are in
trees (`_index`) that name those to look at. A tree is built over new regions and all before them
that are no more, so each region is in about log2(n / LEAST) of them in its life, and what is built
never changes. With a million digits in d = 784, on a busy machine, the tree takes 4.5 s to build
and a look-up 19 ms in l2, 9 in l1 and 10 in linf (the slowest of twelve: 52), where scanning takes
403, 234 and 237. Where half of all regions reach everywhere, trees help nobody and cost little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unicr.guard._index import Block
from unicr.guard._metric import Floats, Metric

HEAD = 64
SMALLEST = 64
LEAST = 16_384  # regions that make a tree worth while


class Table:
    """The regions in arrays that grow; rows that are there never change."""

    def __init__(self, dim: int, least: int = LEAST) -> None:
        some = np.random.default_rng(dim).permutation(dim)[:HEAD]
        self.head = np.sort(some) if dim > 2 * HEAD else None
        self.size, self.least = 0, least
        self.blocks: tuple[Block, ...] = ()
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
        n, blocks = self.size, list(self.blocks)
        if n - (blocks[-1].last if blocks else 0) >= self.least:
            while blocks and 2 * blocks[-1].last - blocks[-1].first <= n:
                blocks.pop()
            first = blocks[-1].last if blocks else 0
            self.blocks = (*blocks, Block(self.points, self.reach, first, n))
        arrays = (self.points[:n], self.heads[:n], self.reach[:n], self.label[:n])
        return Snapshot(self.head, *arrays, self.blocks)


@dataclass(frozen=True)
class Snapshot:
    """The regions at one moment. Positions count from 0, region numbers from 1."""

    head: NDArray[np.int64] | None
    points: NDArray[np.float32]
    heads: Floats
    reach: Floats
    label: NDArray[np.int64]
    blocks: tuple[Block, ...] = ()

    def near(self, metric: Metric, x: Floats, within: float = 0.0) -> NDArray[np.intp]:
        """Positions of all regions whose distance from x may be at most reach + within."""
        parts = [part for block in self.blocks for part in block.near(metric, x, within)]
        new = self.blocks[-1].last if self.blocks else 0
        if self.head is None:
            return np.sort(np.concatenate([*parts, np.arange(new, len(self.reach))]))
        head = x[self.head]
        parts = [
            part[metric.below(head, self.heads[part]) <= self.reach[part] + within]
            for part in parts
        ]
        away = metric.below(head, self.heads[new:])
        parts.append(new + np.flatnonzero(away <= self.reach[new:] + within))
        return np.sort(np.concatenate(parts))

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
