"""Which pieces of the line are integrated as one?

Panels are graded geometrically towards and away from the anchors: linear next to an anchor,
logarithmic in the distance further out, power laws at the very ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unicr.errors import NoiseError
from unicr.law._quadrature._chebyshev import EPS, NODES, N
from unicr.law._quadrature._logdensity import LogDensity
from unicr.law._quadrature._scan import Landscape, resolution, width_at
from unicr.values import Array, IntArray

LINEAR, LOG, INNER_POWER = 0, 1, 2  # how a panel maps its nodes to x


@dataclass
class Panels:
    """Pieces of the line: x = base + direction * s, s = distance from an anchor.

    `start` and `length` are measured in s (kind linear, power) or in log s (kind log);
    `mass` and `values` carry the common factor exp(-shift).
    """

    base: Array
    direction: Array
    kind: IntArray
    start: Array
    length: Array
    closest: Array
    depth: IntArray
    stagnation: IntArray
    parent_error: Array
    log_values: Array
    kappa: Array
    mass: Array

    @staticmethod
    def new(
        base: Any, direction: Any, kind: Any, start: Array, length: Array, closest: Any = 0.0
    ) -> Panels:
        """Panels not yet sampled; what they share may be one number."""
        n = start.size

        def full(value: Any) -> Any:
            return np.full(n, value)

        return Panels(
            *(full(base), full(direction), full(kind), full(start), full(length), full(closest)),
            *(full(0), full(0), full(np.inf), np.full((n, N), np.nan), full(np.nan), full(np.nan)),
        )

    def take(self, index: Any) -> Panels:
        return Panels(**{k: v[index] for k, v in self.__dict__.items()})

    @staticmethod
    def concatenate(parts: Sequence[Panels]) -> Panels:
        keys = parts[0].__dict__
        return Panels(**{k: np.concatenate([p.__dict__[k] for p in parts]) for k in keys})

    @property
    def size(self) -> int:
        return self.base.size

    def distance(self, z: Array) -> Array:
        """s at relative position z (shape (panels,) or (panels, nodes))."""
        pad = (slice(None),) + (None,) * (z.ndim - 1)
        along = self.start[pad] + self.length[pad] * z
        with np.errstate(over="ignore"):
            return np.where(self.kind[pad] == LOG, np.exp(along), along)

    def order(self) -> IntArray:
        middle = self.distance(np.full(self.size, 0.5))
        return np.lexsort((self.direction * middle, self.base)).astype(np.int64)


def initial_panels(f: LogDensity, land: Landscape) -> Panels:
    anchors = np.array(land.anchors)
    middle = anchors[:-1] + np.diff(anchors) / 2.0
    left_end = np.concatenate([[land.low], middle])
    right_end = np.concatenate([middle, [land.high]])
    closest = resolution(f, anchors)
    alive = ~np.isneginf(land.value)
    parts: list[Panels] = []
    for direction, ends in ((-1.0, left_end), (1.0, right_end)):
        reach = np.abs(ends - anchors)
        width = width_at(f, anchors, direction, np.maximum(reach, 1e-290))
        for i, (a, end) in enumerate(zip(anchors.tolist(), ends.tolist(), strict=True)):
            length = float(reach[i])
            if length <= 4.0 * EPS * abs(a) or length < 1e-290:
                continue
            lo, hi = min(a, end), max(a, end)
            i0, i1 = np.searchsorted(land.x, [lo, hi])
            probe = np.linspace(lo, hi, 67)[1:-1]
            if not alive[i0:i1].any() and np.isneginf(f(probe)).all():
                continue
            near = float(closest[i])
            inner = min(max(float(width[i]) / 8.0, near), length)
            zero, whole = np.array([0.0]), np.array([inner])
            parts.append(Panels.new(a, direction, LINEAR, zero, whole, near))
            if inner < length:
                t0, t1 = math.log(inner), math.log(length)
                t = np.linspace(t0, t1, 2 + int((t1 - t0) / 2.0))
                parts.append(Panels.new(a, direction, LOG, t[:-1], np.diff(t), near))
    if not parts:
        raise NoiseError(f"the density has no mass on [{land.low:.6g}, {land.high:.6g}]")
    return Panels.concatenate(parts)


def split(panels: Panels) -> Panels:
    near, far = panels.take(slice(None)), panels.take(slice(None))
    linear = panels.kind == LINEAR
    half = panels.length / 2.0
    with np.errstate(divide="ignore"):
        log_cut = np.log(panels.length / 32.0)
    near.length = np.where(linear, panels.length / 32.0, half)
    far.start = np.where(linear, log_cut, panels.start + half)
    far.length = np.where(linear, math.log(32.0), half)
    far.kind = np.where(linear, LOG, panels.kind)
    far.depth = np.where(linear, 0, panels.depth + 1)
    near.depth = np.where(linear, panels.depth, panels.depth + 1)
    return Panels.concatenate([near, far])


def x_edges(panels: Panels) -> tuple[Array, Array]:
    near = panels.base + panels.direction * panels.distance(np.zeros(panels.size))
    near = np.where(panels.kind == LOG, near, panels.base)
    far = panels.base + panels.direction * panels.distance(np.ones(panels.size))
    return np.minimum(near, far), np.maximum(near, far)


def mesh(p: Panels, left: Array, right: Array) -> Array:
    """Ends of sampled panels and of their quarters.

    The density is a polynomial of degree 19 on each panel, to rounding, so five points on each
    quarter show its shape. Panels in a row on which it is one constant count as one.
    """
    nodes = p.distance(np.broadcast_to(NODES, (p.size, N)))
    with np.errstate(divide="ignore"):
        value = p.log_values - np.where((p.kind == LOG)[:, None], np.log(nodes), 0.0)
    low, high = value.min(axis=1), value.max(axis=1)
    with np.errstate(invalid="ignore"):
        flat = high - low <= 1e-12 * (1.0 + np.abs(high))
        joined = flat[1:] & flat[:-1] & (left[1:] == right[:-1])
        joined &= np.abs(np.diff(high)) <= 1e-12 * (1.0 + np.abs(high[1:]))
    curved = p.take(~flat)
    inner = np.broadcast_to(np.array([0.25, 0.5, 0.75]), (curved.size, 3))
    quarters = curved.base[:, None] + curved.direction[:, None] * curved.distance(inner)
    ends = [left[np.append(True, ~joined)], right[np.append(~joined, True)]]
    return np.unique(np.concatenate([*ends, quarters.ravel()]))
