"""Is a density symmetric, log-concave or unimodal, as far as rounding lets one see?

Each question is answered from values of the log-density on a dense grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unicr.law._quadrature._chebyshev import EPS
from unicr.law._quadrature._scan import SOFT
from unicr.values import Array


def is_symmetric(
    logpdf: Callable[[Array], Array],
    grid: Array,
    breakpoints: Sequence[float],
    floor: float,
    slack: float = 1e-12,
) -> bool:
    """Whether logpdf(x) = logpdf(-x) away from the breakpoints; values below `floor` are equal."""
    x = np.unique(np.abs(grid))
    breaks = np.abs(np.array(breakpoints))
    distance = np.min(np.abs(x[:, None] - breaks[None, :]), axis=1)
    x = x[distance > 8.0 * np.spacing(x)]
    right, left = (np.clip(logpdf(side), floor, 1e300) for side in (x, -x))
    return bool(np.all(np.abs(right - left) <= slack + 8.0 * EPS * np.abs(right)))


def is_log_concave(
    x: Array, value: Array, ends: tuple[float, float], offset: float, *, soft: bool = True
) -> bool:
    """Whether no value lies below a chord; `offset` was added to the values, and costs rounding.

    `soft` leaves out the last nats of a density that underflows at its ends.
    """
    inner = (x > ends[0]) & (x < ends[1])
    if np.isposinf(value).any() or np.isneginf(value[inner]).any():
        return False
    finite = np.isfinite(value)
    x, value = x[finite], value[finite]
    lowest = min(value[0], value[-1])
    if soft and value.max() - 900.0 < lowest < value.max() - SOFT:
        keep = value > lowest + 60.0
        x, value = x[keep], value[keep]
    for stride in (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000):
        if x.size <= 2 * stride:
            break
        x0, x1, x2 = x[: -2 * stride], x[stride:-stride], x[2 * stride :]
        v0, v1, v2 = value[: -2 * stride], value[stride:-stride], value[2 * stride :]
        with np.errstate(all="ignore"):
            lam = (x2 - x1) / (x2 - x0)
            chord = lam * v0 + (1.0 - lam) * v2
            size = 1.0 + np.abs(v0) + np.abs(v1) + np.abs(v2)
            steep = np.abs(v2 - v0) / (x2 - x0) * np.maximum(np.abs(x0), np.abs(x2))
            noise = 1e-14 * size + 16.0 * EPS * steep
        if np.any(chord - v1 > noise + 32.0 * EPS * (size + offset)):
            return False
    return True


def is_unimodal(value: Array, least: float = 1e-12) -> bool:
    """Whether the values rise, then fall, up to `least` and rounding."""
    value = np.where(np.isnan(value), -np.inf, value)
    top = int(np.argmax(value))
    slack = least + 64.0 * EPS * np.abs(np.where(np.isfinite(value), value, 0.0))
    with np.errstate(invalid="ignore"):
        rising = np.maximum.accumulate(value[: top + 1]) - value[: top + 1]
        falling = np.maximum.accumulate(value[top:][::-1])[::-1] - value[top:]
    return bool(np.all(~(rising > slack[: top + 1])) and np.all(~(falling > slack[top:])))
