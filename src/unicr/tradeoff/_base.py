"""The trade-off function T(α): the least type-II error of a test with type-I error at most α.

T is convex, so it is the upper envelope of its supporting lines. The line of slope −e^t is
1 − H(t) − e^t·α with H the hockey-stick divergence sup_A Q(A) − e^t·P(A). A `Lines` keeps
finitely many of them: with H from above it lies below T, whatever the grid of t.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import RadiusError
from unicr.values import Array

Bound = Literal["lower", "estimate", "upper", "exact"]
STEEPEST = 700.0  # e^t stays finite; a steeper line matters at α = 0 only, where it counts the same


def combine_bounds(bounds: list[Bound]) -> Bound:
    """The direction that values can be combined in, or an error that names both directions."""
    sided = {bound for bound in bounds if bound != "exact"}
    if len(sided) > 1:
        raise RadiusError(
            f"cannot compose trade-off functions of different directions: {sorted(sided)}"
        )
    return sided.pop() if sided else "exact"


class TradeOff(ABC):
    """T for one perturbation δ, with the direction in which its values err."""

    bound: Bound

    @abstractmethod
    def beta(self, alpha: ArrayLike) -> Array:
        """T(α)."""

    @abstractmethod
    def alpha(self, beta: ArrayLike) -> Array:
        """The smallest α with T(α) ≤ β."""

    def find_least_p_a(self) -> float:
        """Binary case: the least p_A that certifies this perturbation, 1 − T⁻¹(1/2).

        See docs/theory.md#certifies.
        """
        return 1.0 - float(self.alpha(0.5))


@dataclass(frozen=True, eq=False)
class Lines(TradeOff):
    """T as the upper envelope of lines with slopes −e^`t` (ascending) and hockey-sticks `h`.

    With `h` from above it lies below T, whatever the `t` (docs/theory.md#lemma-1).
    """

    t: Array
    h: Array
    bound: Bound

    def beta(self, alpha: ArrayLike) -> Array:
        a = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
        slopes = np.exp(np.minimum(self.t, STEEPEST))
        result = np.empty_like(a)
        for i, level in enumerate(a.ravel()):
            result.flat[i] = np.max(1.0 - self.h - slopes * level)
        return np.clip(result, 0.0, 1.0).reshape(np.shape(alpha))

    def alpha(self, beta: ArrayLike) -> Array:
        b = np.atleast_1d(np.asarray(beta, dtype=np.float64))
        slopes = np.exp(np.minimum(-self.t, STEEPEST))
        result = np.empty_like(b)
        for i, level in enumerate(b.ravel()):
            result.flat[i] = np.max((1.0 - level - self.h) * slopes)
        return np.clip(result, 0.0, 1.0).reshape(np.shape(beta))


@dataclass(frozen=True, eq=False)
class LeastTradeOff(TradeOff):
    """The least of several at every α: below T_δ wherever one of them is below it."""

    parts: tuple[TradeOff, ...]
    bound: Bound = "lower"

    def beta(self, alpha: ArrayLike) -> Array:
        return np.min([part.beta(alpha) for part in self.parts], axis=0)

    def alpha(self, beta: ArrayLike) -> Array:
        return np.min([part.alpha(beta) for part in self.parts], axis=0)
