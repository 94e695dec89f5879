"""Solve log P(ε > z) = log v for z ≥ 0 where the tail has a formula but its inverse has none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def invert_tail(
    tail: Callable[[Array], Array], pdf: Callable[[Array], Array], v: Array, upper: float
) -> Array:
    """Newton on the logarithm of the tail, kept inside a bracket that shrinks every step.

    `tail` falls from 1/2 at 0 and is below every representable v at `upper`.
    """
    v = np.asarray(v, dtype=np.float64)
    flat = np.clip(v.ravel(), 5e-324, 0.5)
    low, high = np.zeros_like(flat), np.full_like(flat, upper)
    z = np.minimum(-np.log(2 * flat), upper / 2)
    goal = np.log(flat)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        for _ in range(80):
            value = tail(z)
            above = value > flat
            low, high = np.where(above, z, low), np.where(above, high, z)
            step = z + (np.log(value) - goal) * value / pdf(z)
            inside = (step > low) & (step < high)
            new = np.where(inside, step, 0.5 * (low + high))
            done = np.abs(new - z) <= 1e-16 + 2e-16 * np.abs(new)
            z = new
            if done.all():
                break
    return np.where(v > 0, z.reshape(v.shape), np.inf)
