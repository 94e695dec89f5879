"""Where does the density live, and where is it not smooth?

The scan is turned into effective ends of the support and into anchors: modes, edges, singular
points and the places the user named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unicr.errors import NoiseError
from unicr.noise._quadrature._chebyshev import Array
from unicr.noise._quadrature._logdensity import LogDensity
from unicr.noise._quadrature._scan import (
    LOWEST,
    check_infinities,
    refine_maxima,
    scan,
    width_at,
    zigzag_maxima,
)

SOFT = 300.0  # a density cut off this many nats below its peak counts as unbounded


@dataclass
class Landscape:
    """Where the density lives: scanned points, effective ends, and anchors for the panels."""

    x: Array
    value: Array
    low: float
    high: float
    hard_low: bool
    hard_high: bool
    anchors: list[float]
    centre: float
    peak: float


def bisect_edges(f: LogDensity, inside: Array, outside: Array) -> tuple[Array, Array]:
    """Shrink [finite density, zero density] brackets to neighbouring floats."""
    for _ in range(120):
        mid = inside + (outside - inside) / 2.0
        active = (mid != inside) & (mid != outside)
        if not active.any():
            break
        zero = np.isneginf(f.strict(mid))
        inside = np.where(active & ~zero, mid, inside)
        outside = np.where(active & zero, mid, outside)
    return inside, outside


def edge_position(inside: float, outside: float) -> float:
    slack = 2.0 * float(np.spacing(abs(inside)))
    low, high = min(inside, outside) - slack, max(inside, outside) + slack
    if low <= 0.0 <= high or abs(inside) < 1e-200:
        return 0.0
    for digits in (3, 6, 9, 12):
        nice = float(f"{inside:.{digits}g}")
        if low <= nice <= high:
            return nice
    return inside


def survey(f: LogDensity, points: Sequence[float], places: Array) -> Landscape:
    """Scan the density and read its ends and anchors off; `points` become anchors, too."""
    x, value = scan(f, points, places)
    singular = check_infinities(f, x, value)
    alive = ~np.isneginf(value)
    share = np.where(np.isfinite(value), value, -np.inf) + np.log(np.gradient(x))
    peak = float(value[int(np.argmax(share))])

    change = np.flatnonzero(alive[1:] != alive[:-1])
    inside = np.where(alive[change], x[change], x[change + 1])
    outside = np.where(alive[change], x[change + 1], x[change])
    inside, outside = bisect_edges(f, inside, outside)
    at_edge = f(inside)
    hard = (np.abs(inside) < 1e30) & ((at_edge > peak - SOFT) | (np.abs(inside) < 1e-200))
    low, high = f.support
    hard_low, hard_high = math.isfinite(low), math.isfinite(high)
    first, last = np.flatnonzero(alive)[[0, -1]]
    edges = []
    for i, j in enumerate(change):
        edge = edge_position(float(inside[i]), float(outside[i]))
        if hard[i]:
            edges.append(edge)
        if j + 1 == first:
            low, hard_low = (edge, True) if hard[i] else (float(x[first]), False)
        elif j == last:
            high, hard_high = (edge, True) if hard[i] else (float(x[last]), False)
    if math.isinf(low):
        low = float(x[first])
    if math.isinf(high):
        high = float(x[last])

    ranked = np.where(alive, np.where(np.isposinf(value), 1.7e308, value), LOWEST)
    maxima = np.array(zigzag_maxima(ranked), dtype=np.int64)
    if maxima.size > 1500:
        raise NoiseError(
            f"logpdf has {maxima.size} local maxima on the scan; it looks like noise or an "
            "oscillation, which cannot be integrated reliably; give a smoother log-density"
        )
    centre, top = refine_maxima(f, x, value, maxima)
    centre = np.where(np.isposinf(top) & (np.abs(centre) < 1e-30), 0.0, centre)
    reach = np.full(centre.size, max(high - low, 1e-290))
    both = np.stack([width_at(f, centre, s, reach) for s in (-1.0, 1.0)])
    weight = np.where(np.isposinf(top), peak, top) + np.log(both.max(axis=0))
    keep = (weight > weight.max() - 80.0) | np.isposinf(top)
    best = float(centre[int(np.argmax(weight))])

    given = [*edges, *singular, *points, *(e for e in f.support if math.isfinite(e))]
    if low < 0.0 < high:
        given.append(0.0)
    anchors = merge([], given)
    narrow = both.min(axis=0)
    aside = np.stack([f(centre + 0.25 * sign * narrow) for sign in (-1.0, 1.0)])
    with np.errstate(invalid="ignore"):
        flat = np.all(np.abs(aside - top) <= 1e-12 * (1.0 + np.abs(top)), axis=0)
    for i in np.flatnonzero(keep).tolist():
        left, right = 1.1 * both[:, i] if flat[i] else 1e-3 * narrow[[i, i]]
        if not any(centre[i] - left <= a <= centre[i] + right for a in anchors):
            anchors = merge(anchors, [float(centre[i])])
    anchors = [a for a in anchors if low <= a <= high] or [best]
    return Landscape(x, value, low, high, hard_low, hard_high, anchors, best, peak)


def merge(anchors: Sequence[float], extra: Sequence[float]) -> list[float]:
    merged = list(anchors)
    for x in extra:
        if all(abs(x - a) > 64.0 * np.spacing(abs(a)) for a in merged):
            merged.append(x)
    return sorted(merged)
