"""Where does the density live, and where is it not smooth?

A two-sided logarithmic scan with refinements around every local maximum is turned into effective
ends of the support and into anchors: modes, edges, singular points and those the user named. NaN
and +inf are tolerated only where they cannot matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unicr.errors import NoiseError
from unicr.law._quadrature._logdensity import HINT, LogDensity, nan_error
from unicr.values import Array, IntArray

SOFT = 300.0  # a density cut off this many nats below its peak counts as unbounded
LOWEST = -1.7e308  # stands for −inf where differences are taken
MOST_MAXIMA = 1500  # more of them are noise or an oscillation, which panels cannot follow
KEPT_MAXIMA = 24  # the heaviest, around which the scan is made finer
NEGLIGIBLE = 80.0  # nats below the heaviest mode: e^−80 of its mass is below every tail asked for


def primary_grid(support: tuple[float, float], points: Sequence[float]) -> Array:
    """Points at which a density of unknown place and width is looked at first.

    From 1e-3 to 1e6 they are a thousandth apart (as logarithms), so that a mode of relative width
    1e-3 is met without being named.
    """
    decades = [(-300, -12, 12), (-12, -3, 100), (-3, 6, 2303), (6, 12, 100), (12, 300, 12)]
    offset = np.concatenate(
        [np.logspace(a, b, (b - a) * per, endpoint=False) for a, b, per in decades] + [[1e300]]
    )
    grids: list[Any] = [-offset, [0.0], offset, np.linspace(-200.0, 200.0, 20001)]
    low, high = support
    if math.isfinite(low) and math.isfinite(high):
        grids.append(np.linspace(low, high, 4003))
    for hint in [*points, *(end for end in support if math.isfinite(end))]:
        near = max(abs(hint), 1.0) * np.logspace(-13, 4, 340)
        grids += [hint - near, [hint], hint + near]
    x: Array = np.unique(np.concatenate(grids))
    return x[(x > low) & (x < high)]


def zigzag_maxima(value: Array) -> IntArray:
    """Indices of the local maxima that stand out of their surroundings by more than rounding."""
    maxima: list[int] = []
    best, lowest, rising, index = -math.inf, math.inf, True, 0
    for i, v in enumerate(np.clip(value, LOWEST, -LOWEST).tolist()):
        noise = 1e-10 * (1.0 + min(abs(v), 1e300))
        if rising:
            if v > best:
                best, index = v, i
            elif v < best - noise:
                maxima.append(index)
                rising, lowest = False, v
        elif v < lowest:
            lowest = v
        elif v > lowest + noise:
            rising, best, index = True, v, i
    if rising and best > LOWEST:
        maxima.append(index)
    return np.array(maxima, dtype=np.int64)


def nice(x: float, slack: float) -> float:
    """The roundest number within `slack` of x, or x itself."""
    for digits in (3, 6, 9, 12):
        rounded = float(f"{x:.{digits}g}")
        if abs(rounded - x) <= slack:
            return rounded
    return x


def refine_maxima(f: LogDensity, x: Array, value: Array, index: IntArray) -> tuple[Array, Array]:
    """Zoom in on grid maxima; round numbers win ties."""
    centre, top = x[index], value[index]
    a, b = x[np.maximum(index - 1, 0)], x[np.minimum(index + 1, x.size - 1)]

    def evaluate(at: Array) -> Array:
        value_at = f.strict(at)
        return np.where(np.isneginf(value_at), LOWEST, value_at)

    rows = np.arange(index.size)
    for _ in range(26):  # each a quarter of the one before
        at = a[:, None] + (b - a)[:, None] * np.linspace(0.0, 1.0, 9)
        value_at = evaluate(at)
        best = value_at.argmax(axis=1)
        better = value_at[rows, best] > top
        centre, top = np.where(better, at[rows, best], centre), np.fmax(value_at[rows, best], top)
        a, b = at[rows, np.maximum(best - 1, 0)], at[rows, np.minimum(best + 1, 8)]
    for digits in (15, 12, 9, 6):
        rounded = np.array([float(f"{x:.{digits}g}") for x in centre])
        value_at = evaluate(rounded)
        centre, top = np.where(value_at >= top, rounded, centre), np.fmax(value_at, top)
    return centre, top


def forgive_nan(x: Array, value: Array) -> tuple[Array, Array]:
    """Cut NaNs off the far ends if the density is negligible there; refuse all others."""
    bad = np.flatnonzero(np.isnan(value))
    if not bad.size:
        return x, value
    if bad.size == x.size:
        raise nan_error(float(x[x.size // 2]))
    weight = np.where(np.isnan(value), -np.inf, value) + np.log(np.maximum(np.abs(x), 1e-300))
    first, last = np.flatnonzero(weight >= weight.max() - 100.0)[[0, -1]]
    inside = bad[(bad >= first - 1) & (bad <= last + 1)]
    if inside.size:
        raise nan_error(float(x[inside[0]]))
    kept = slice(bad[bad < first].max(initial=-1) + 1, bad[bad > last].min(initial=x.size))
    return x[kept], value[kept]


def check_infinities(f: LogDensity, x: Array, value: Array) -> list[float]:
    """+inf is tolerated at single points (and where a power of x underflows around them)."""
    index = np.flatnonzero(np.isposinf(value))
    if index.size == 0:
        return []
    runs = np.split(index, np.flatnonzero(np.diff(index) > 1) + 1)
    singular = []
    for run in runs:
        a, b = float(x[run[0]]), float(x[run[-1]])
        point = 0.0 if a <= 0.0 <= b else a
        slack = max(1e-30, 64.0 * float(np.spacing(abs(point))))
        around = f.strict(np.array([point - 2.0 * slack, point + 2.0 * slack]))
        if b - a > 2.0 * slack or np.isposinf(around).any():
            raise NoiseError(
                f"logpdf is +inf on an interval around x = {point:.17g}: the density may be "
                f"infinite at single points only ({HINT})"
            )
        singular.append(point)
    return singular


def width_at(f: LogDensity, anchor: Array, direction: float, reach: Array) -> Array:
    """Distance over which the log-density first changes by about one."""
    tiny = resolution(f, anchor)
    low, high = np.log(tiny), np.log(np.maximum(reach, tiny * 4.0))
    reference = f(anchor + direction * tiny)
    for _ in range(40):
        mid = (low + high) / 2.0
        with np.errstate(invalid="ignore"):
            change = np.abs(f(anchor + direction * np.exp(mid)) - reference)
        far = ~(change < 1.0)
        low, high = np.where(far, low, mid), np.where(far, mid, high)
    return np.exp(low)


def resolution(f: LogDensity, anchor: Array) -> Array:
    """The distance to an anchor below which float64, or the function, cannot resolve it well."""
    out = np.where(anchor == 0.0, 1e-290, 2.0**14 * np.spacing(np.abs(anchor)))
    for _ in range(60):
        nearest = 1e-4 * out
        blind = (anchor == 0.0) & (np.isposinf(f(-nearest)) | np.isposinf(f(nearest)))
        if not blind.any():
            break
        out = np.where(blind, out * 1e5, out)
    return out


def scan(f: LogDensity, points: Sequence[float], places: Array) -> tuple[Array, Array]:
    """Points and values of the log-density, dense wherever it may have mass."""
    low, high = f.support
    x = np.union1d(primary_grid(f.support, points), places[(places > low) & (places < high)])
    value = f(x)
    x, value = forgive_nan(x, value)
    if np.isneginf(value).all():
        raise NoiseError(
            "the density is zero (logpdf = -inf) at every point that was tried; if its mass is "
            "narrow and far from zero, name a place where it is positive with `points=(x0, ...)`"
        )
    maxima = zigzag_maxima(value)
    weight = np.minimum(value[maxima], -LOWEST) + np.log(np.maximum(np.gradient(x)[maxima], 1e-300))
    maxima = maxima[np.argsort(-weight)[:KEPT_MAXIMA]]
    centre, _ = refine_maxima(f, x, value, maxima)
    reach = np.full(centre.size, x[-1] - x[0])
    width = np.minimum(width_at(f, centre, 1.0, reach), width_at(f, centre, -1.0, reach))
    width = np.maximum(width, 1e-12 * np.abs(centre))
    steps = np.concatenate([np.linspace(0.0, 120.0, 900), np.logspace(-3, 6, 180)])
    steps = np.concatenate([-steps, steps])
    more = np.unique((centre[:, None] + width[:, None] * steps).ravel())
    more = more[(more > x[0]) & (more < x[-1])]
    x, first = np.unique(np.concatenate([x, more]), return_index=True)
    value = np.concatenate([value, f(more)])[first]
    return forgive_nan(x, value)


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
    """Where the density ends, between two neighbouring floats: a round number if one is there."""
    slack = abs(outside - inside) + 2.0 * float(np.spacing(abs(inside)))
    if abs(inside) <= slack or abs(inside) < 1e-200:
        return 0.0
    return nice(inside, slack)


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

    maxima = zigzag_maxima(value)
    if maxima.size > MOST_MAXIMA:
        raise NoiseError(
            f"logpdf has {maxima.size} local maxima, so it looks like noise or an oscillation, "
            "which cannot be integrated reliably: give a smoother log-density"
        )
    centre, top = refine_maxima(f, x, value, maxima)
    centre = np.where(np.isposinf(top) & (np.abs(centre) < 1e-30), 0.0, centre)
    reach = np.full(centre.size, max(high - low, 1e-290))
    both = np.stack([width_at(f, centre, s, reach) for s in (-1.0, 1.0)])
    weight = np.where(np.isposinf(top), peak, top) + np.log(both.max(axis=0))
    keep = (weight > weight.max() - NEGLIGIBLE) | np.isposinf(top)
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
    return Landscape(x, value, low, high, hard_low, hard_high, anchors, best)


def merge(anchors: Sequence[float], extra: Sequence[float]) -> list[float]:
    """Both, in order; points within 64 roundings of another are one point."""
    merged = list(anchors)
    for x in extra:
        if all(abs(x - a) > 64.0 * np.spacing(abs(a)) for a in merged):
            merged.append(x)
    return sorted(merged)
