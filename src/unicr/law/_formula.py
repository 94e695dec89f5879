"""A symmetric law written as formulas, and the inverse of a tail that has none.

A subclass is a frozen dataclass of its parameters with a kernel (log-density up to a constant), the
constant, the tail and its inverse; everything else follows from symmetry.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from unicr.law._base import Facts, Law
from unicr.values import Array

if TYPE_CHECKING:
    import torch

FARTHEST = 800.0  # exp(−800) is below every float: no tail that falls like exp(−z) is searched on
SMALLEST = 5e-324  # the least float above 0: quantiles below it are infinite
MOST_STEPS = 180  # halving every third step, 60 halvings reach the last place of z
# A step this short changes z by no more than its own last place.
SETTLED, SETTLED_SHARE = 1e-16, 4e-16


class SymmetricLaw(Law):
    """A density p(x) = p(−x), by formulas for x ≥ 0.

    Its tail must have full relative accuracy, and its inverse too: the sampler's thresholds and the
    closed forms of radii rest on them.
    """

    @property
    def log_concave(self) -> bool:
        """Whether the kernel is concave."""
        return True

    @property
    def mean(self) -> float:
        return 0.0

    @property
    def support(self) -> tuple[float, float]:
        return (-math.inf, math.inf)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return ()

    @property
    @abstractmethod
    def log_norm(self) -> float:
        """log of the integral of exp(kernel) over the line."""

    @abstractmethod
    def kernel(self, z: Any, xp: Any) -> Any:
        """Unnormalised log-density, written with functions that numpy and torch both have."""

    @abstractmethod
    def tail(self, z: Array) -> Array:
        """P(X > z) for z ≥ 0."""

    @abstractmethod
    def tail_inverse(self, v: Array) -> Array:
        """The z ≥ 0 with P(X > z) = v, for 0 ≤ v ≤ 1/2."""

    @property
    def facts(self) -> Facts:
        bounded = math.isfinite(self.support[1])
        return Facts(
            symmetric=True,
            log_concave=self.log_concave,
            bounded=bounded,
            finite_variance=math.isfinite(self.std),
            positive=not bounded,
        )

    def log_density(self, x: Array, log_unit: float) -> Array:
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            kernel = np.asarray(self.kernel(x, np), dtype=np.float64)
        return kernel - (self.log_norm + log_unit)

    def log_density_of_tensor(self, x: torch.Tensor, log_unit: float) -> torch.Tensor:
        kernel: torch.Tensor = self.kernel(x, _torch())
        return kernel - (self.log_norm + log_unit)

    def sf(self, x: ArrayLike) -> Array:
        z = np.asarray(x, dtype=np.float64)
        with np.errstate(over="ignore", under="ignore"):
            tail = self.tail(np.abs(z))
        return np.where(z > 0, tail, 1.0 - tail)

    def cdf(self, x: ArrayLike) -> Array:
        return self.sf(-np.asarray(x, dtype=np.float64))

    def isf(self, u: ArrayLike) -> Array:
        v = np.asarray(u, dtype=np.float64)
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            z = self.tail_inverse(np.minimum(v, 1.0 - v))
        return np.where((v >= 0) & (v <= 1), np.where(v <= 0.5, z, -z), np.nan)

    def ppf(self, u: ArrayLike) -> Array:
        return -self.isf(u)


def _torch() -> Any:
    import torch

    return torch


def invert_tail(
    tail: Callable[[Array], Array], density: Callable[[Array], Array], v: Array
) -> Array:
    """The z ≥ 0 with tail(z) = v, for a tail that falls at least like exp(−z).

    Newton's method on the logarithm of the tail, inside a bracket that every third step halves:
    Newton alone creeps where a steep tail turns into a flat one.
    """
    v = np.asarray(v, dtype=np.float64)
    flat = np.clip(v.ravel(), SMALLEST, 0.5)
    low, high = np.zeros_like(flat), np.full_like(flat, FARTHEST)
    z = np.minimum(-np.log(2 * flat), FARTHEST / 2)
    goal = np.log(flat)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        settled = np.zeros(flat.shape, dtype=bool)
        for step_number in range(MOST_STEPS):
            value = tail(z)
            above = value > flat
            low, high = np.where(above, z, low), np.where(above, high, z)
            step = z + (np.log(value) - goal) * value / density(z)
            settled |= np.abs(step - z) <= SETTLED + SETTLED_SHARE * np.abs(z)
            inside = (step > low) & (step < high) & (step_number % 3 < 2)
            z = np.where(settled, z, np.where(inside, step, 0.5 * (low + high)))
            if settled.all():
                break
    return np.where(v > 0, z.reshape(v.shape), np.inf)
