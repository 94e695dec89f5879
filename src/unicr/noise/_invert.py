"""Solve log P(ε > z) = log v for z ≥ 0 where the tail has a formula but its inverse has none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unicr.values import Array


def invert_tail(
    tail: Callable[[Array], Array], pdf: Callable[[Array], Array], v: Array, upper: float
) -> Array:
    """Newton on the logarithm of the tail, inside a bracket that every third step halves.

    `tail` falls from 1/2 at 0 and is below every representable v at `upper`. Newton alone creeps
    where a steep tail turns into a flat one.
    """
    v = np.asarray(v, dtype=np.float64)
    flat = np.clip(v.ravel(), 5e-324, 0.5)
    low, high = np.zeros_like(flat), np.full_like(flat, upper)
    z = np.minimum(-np.log(2 * flat), upper / 2)
    goal = np.log(flat)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        settled = np.zeros(flat.shape, dtype=bool)
        for step_number in range(180):
            value = tail(z)
            above = value > flat
            low, high = np.where(above, z, low), np.where(above, high, z)
            step = z + (np.log(value) - goal) * value / pdf(z)
            settled |= np.abs(step - z) <= 1e-16 + 4e-16 * np.abs(z)
            inside = (step > low) & (step < high) & (step_number % 3 < 2)
            z = np.where(settled, z, np.where(inside, step, 0.5 * (low + high)))
            if settled.all():
                break
    return np.where(v > 0, z.reshape(v.shape), np.inf)
