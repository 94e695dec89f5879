"""The trade-off function when given numbers of coordinates, all alike, move by given shifts.

One coordinate of a log-concave density has a closed form, T_u(α) = F(F⁻¹(1 − α) − u).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import RadiusError
from unicr.noise import IID, Noise
from unicr.tradeoff._base import Bound, TradeOff
from unicr.tradeoff._compose import compose
from unicr.tradeoff._falling import cube_tradeoff
from unicr.tradeoff._ratio import make_ratio_law
from unicr.values import Array


@dataclass(frozen=True, eq=False)
class ClosedForm(TradeOff):
    """The likelihood ratio is monotone, so the best test is a threshold.

    docs/theory.md#theorem-a. Values are rounded to nearest: whoever proves with them lowers them
    (`radius.theorems.one_dimension`).
    """

    noise: IID
    shift: float
    bound: Bound = "exact"

    def __post_init__(self) -> None:
        if not self.noise.facts.log_concave:
            raise RadiusError(
                f"{self.noise.text} is not log-concave, so it has no closed form: use "
                "compute_tradeoff"
            )

    def beta(self, alpha: ArrayLike) -> Array:
        a = np.asarray(alpha, dtype=np.float64)
        if self.shift >= 0:
            return np.where(a >= 1, 0.0, self.noise.cdf(self.noise.isf(a) - self.shift))
        return np.where(a >= 1, 0.0, self.noise.sf(self.noise.ppf(a) - self.shift))

    def alpha(self, beta: ArrayLike) -> Array:
        b = np.asarray(beta, dtype=np.float64)
        if self.shift >= 0:
            return np.where(b >= 1, 0.0, self.noise.sf(self.noise.ppf(b) + self.shift))
        return np.where(b >= 1, 0.0, self.noise.cdf(self.noise.isf(b) + self.shift))


def compute_tradeoff(
    noise: Noise,
    shifts: Iterable[tuple[float, int]],
    *,
    spread: float = 2e-5,
    closed: bool = True,
) -> TradeOff:
    """Return the trade-off function T for a perturbation of independent coordinates.

    One coordinate of a log-concave noise is the closed form, exact; anything else is composed and
    is a lower bound (docs/theory.md#lemma-2).

    Parameters
    ----------
    noise
        The noise, whose coordinates are independent and alike.
    shifts
        Pairs (shift, count): so many coordinates move by this much.
    spread
        How much the lower bound may lose, about as a share of the radius.
    closed
        False composes also where there is a closed form.

    Returns
    -------
    TradeOff
        T, exact or from below; `T.bound` says which.
    """
    if noise.radial is not None and math.isinf(noise.radial.order):
        return cube_tradeoff(noise.radial, shifts)
    if noise.iid is None:
        raise RadiusError(
            f"{noise.text} has no trade-off function of single coordinates, because they are not "
            "independent"
        )
    unit, scale = noise.iid.unit, noise.scale
    moved = [(shift / scale, count) for shift, count in shifts if shift != 0 and count > 0]
    if closed and unit.facts.log_concave and sum(count for _, count in moved) == 1:
        return ClosedForm(unit, moved[0][0])
    return compose([(make_ratio_law(unit, shift, spread), count) for shift, count in moved])
