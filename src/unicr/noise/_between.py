"""Laws between Gaussian (β = 0) and Laplace (β = 1), whose tail has a formula and its inverse none.

The inverse is found by Newton's method on the logarithm of the tail.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from unicr.noise._family import Family, Parameter
from unicr.values import Array

FARTHEST = 800.0  # the tail is below every float there


class Between(Family):
    """A family with one β from 0 to 1; a subclass gives density, norm and tail."""

    parameters = (
        Parameter(
            "beta",
            low=0.0,
            high=1.0,
            slider=(0.0, 1.0, 0.5),
            axis=(0.0, 1.0, 0.25),
            gallery=(0.0, 0.25, 0.5, 0.75, 1.0),
            equal=((0.0, "gaussian"), (1.0, "laplace")),
        ),
    )
    beta: float

    @property
    def _breaks(self) -> tuple[float, ...]:
        return (0.0,) if self.beta > 0 else ()

    @abstractmethod
    def _density(self, z: Array) -> Array:
        """The density at unit scale, for z ≥ 0."""

    def _tail_inverse(self, v: Array) -> Array:
        """Inside a bracket that every third step halves: Newton alone creeps where a steep tail
        turns into a flat one.
        """
        v = np.asarray(v, dtype=np.float64)
        flat = np.clip(v.ravel(), 5e-324, 0.5)
        low, high = np.zeros_like(flat), np.full_like(flat, FARTHEST)
        z = np.minimum(-np.log(2 * flat), FARTHEST / 2)
        goal = np.log(flat)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            settled = np.zeros(flat.shape, dtype=bool)
            for step_number in range(180):
                value = self._tail(z)
                above = value > flat
                low, high = np.where(above, z, low), np.where(above, high, z)
                step = z + (np.log(value) - goal) * value / self._density(z)
                settled |= np.abs(step - z) <= 1e-16 + 4e-16 * np.abs(z)
                inside = (step > low) & (step < high) & (step_number % 3 < 2)
                z = np.where(settled, z, np.where(inside, step, 0.5 * (low + high)))
                if settled.all():
                    break
        return np.where(v > 0, z.reshape(v.shape), np.inf)
