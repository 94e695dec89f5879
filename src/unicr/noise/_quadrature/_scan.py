"""Where is the density worth looking at?

A two-sided logarithmic scan with refinements around every local maximum. NaN and +inf are
tolerated only where they cannot matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from unicr.errors import NoiseError
from unicr.noise._quadrature._chebyshev import Array, IntArray
from unicr.noise._quadrature._logdensity import HINT, LogDensity, nan_error

LOWEST = -1.7e308


def primary_grid(support: tuple[float, float], points: Sequence[float]) -> Array:
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


def zigzag_maxima(value: Array) -> list[int]:
    """Indices of the local maxima that stand out of their surroundings by more than rounding."""
    found: list[int] = []
    best, lowest, rising, index = -math.inf, math.inf, True, 0
    for i, v in enumerate(value.tolist()):
        noise = 1e-10 * (1.0 + min(abs(v), 1e300))
        if rising:
            if v > best:
                best, index = v, i
            elif v < best - noise:
                found.append(index)
                rising, lowest = False, v
        elif v < lowest:
            lowest = v
        elif v > lowest + noise:
            rising, best, index = True, v, i
    if rising and best > LOWEST:
        found.append(index)
    return found


def _round_nice(x: Array, digits: int) -> Array:
    return np.array([float(f"{v:.{digits}g}") for v in x])


def refine_maxima(f: LogDensity, x: Array, value: Array, index: IntArray) -> tuple[Array, Array]:
    """Golden-section search around grid maxima; round numbers win ties."""
    centre, top = x[index], value[index]
    a, b = x[np.maximum(index - 1, 0)], x[np.minimum(index + 1, x.size - 1)]
    ratio = (math.sqrt(5.0) - 1.0) / 2.0

    def evaluate(at: Array) -> Array:
        got = f.strict(at)
        return np.where(np.isneginf(got), LOWEST, got)

    c, d = b - ratio * (b - a), a + ratio * (b - a)
    fc, fd = evaluate(c), evaluate(d)
    for _ in range(90):
        left = fc > fd
        a, b = np.where(left, a, c), np.where(left, d, b)
        c_new, d_new = b - ratio * (b - a), a + ratio * (b - a)
        probe = np.where(left, c_new, d_new)
        got = evaluate(probe)
        fc, fd = np.where(left, got, fd), np.where(left, fc, got)
        c, d = np.where(left, c_new, d), np.where(left, c, d_new)
        if np.all(b - a <= 2.0 * np.spacing(np.abs(a) + np.abs(b))):
            break
    candidates = [c, d, a, b]
    candidates += [_round_nice(c, digits) for digits in (15, 12, 9, 6)]
    for candidate in candidates:
        got = evaluate(candidate)
        nicer = (got >= top) if candidate is not c else got > top
        centre, top = np.where(nicer, candidate, centre), np.where(nicer, got, top)
    return centre, top


def forgive_nan(x: Array, value: Array) -> tuple[Array, Array]:
    """Cut NaNs off the far ends if the density is negligible there; refuse all others."""
    bad = np.isnan(value)
    if not bad.any():
        return x, value
    if bad.all():
        raise nan_error(float(x[x.size // 2]))
    weight = np.where(bad, -np.inf, value) + np.log(np.maximum(np.abs(x), 1e-300))
    peak = int(np.argmax(weight))
    keep = np.ones(x.size, dtype=bool)
    for order in (np.arange(peak, x.size), np.arange(peak, -1, -1)):
        where = np.flatnonzero(bad[order])
        if where.size == 0:
            continue
        first = where[0]
        beyond = weight[order[first:]]
        small = weight[order[first - 1]] < weight[peak] - 100.0
        if not small or np.any(beyond > weight[peak] - 100.0):
            raise nan_error(float(x[order[first]]))
        keep[order[first:]] = False
    return x[keep], value[keep]


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
                f"logpdf is +inf on an interval around x = {point:.17g}; the density must be "
                f"finite except at isolated points ({HINT})"
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
            "the density is zero (logpdf = -inf) at every scanned point; if its mass is narrow "
            "and far from zero, name a place where it is positive with `points=(x0, ...)`"
        )
    finite = np.where(np.isneginf(value), LOWEST, np.where(np.isposinf(value), 1.7e308, value))
    maxima = np.array(zigzag_maxima(finite), dtype=np.int64)
    weight = finite[maxima] + np.log(np.maximum(np.gradient(x)[maxima], 1e-300))
    maxima = maxima[np.argsort(-weight)[:24]]
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
