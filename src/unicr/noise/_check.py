"""Does the sampler draw from the law? Every table answers this before a sample is made from it.

The table puts a known mass on every one of its pieces. The law's own cdf and sf say how much it
should be: their difference, summed, is the total variation between the two at that resolution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import NoiseError
from unicr.noise._inverse import CONTRACT_TAIL, InverseTable
from unicr.values import Array

if TYPE_CHECKING:
    from unicr.noise._base import IID

MOST_CDF = 1e-6
MOST_VARIATION = 1e-5
MOST_ATOM = 1e-9
MOST_TAIL = 0.5


class Law(Protocol):
    """What a table needs to know of a 1-D distribution."""

    @property
    def breakpoints(self) -> tuple[float, ...]: ...
    def cdf(self, x: ArrayLike) -> Array: ...
    def sf(self, x: ArrayLike) -> Array: ...
    def ppf(self, u: ArrayLike) -> Array: ...
    def isf(self, u: ArrayLike) -> Array: ...


@dataclass(frozen=True)
class SamplerError:
    """How far the sampled law is from the one it stands for; all measured, none estimated.

    `cdf`: the largest |F(x(u)) − u| relative to min(u, 1 − u), for tails down to 1e-12, forgiving
    the rounding of x. `variation`: the total variation between the two laws on the pieces of the
    table. `atom`: the largest probability of one float beyond what its own rounding explains.
    `tail`: the largest relative error of a tail below 1e-12, down to the last draw at 2^-55.
    """

    cdf: float
    variation: float
    atom: float
    tail: float


def evaluate_error(table: InverseTable, law: Law) -> SamplerError:
    """Compare every piece of the table with the law, at both its ends."""
    quarter, lo, width, coefficients = table.pieces()
    upper = quarter >= 2
    ends = [coefficients @ np.array([1.0, s, s * s, s**3]) for s in (-0.5, 0.5)]

    def probability(x: Array) -> Array:
        return np.where(upper, law.sf(x), law.cdf(x))

    with np.errstate(all="ignore"):
        reached = [probability(x) for x in ends]
        mass = np.abs(reached[1] - reached[0])
        least, most = np.minimum(*ends), np.maximum(*ends)
        step = 4 * np.spacing(np.maximum(np.abs(least), np.abs(most)))
        around = np.abs(probability(most + step) - probability(least - step))
        tail = (quarter == 0) | (quarter == 3)
        small = tail & (lo / 4 < CONTRACT_TAIL)
        wanted = [np.where(tail, d / 4, 0.5 - d / 4) for d in (lo, lo + width)]
        off = [_outside(probability, x, w) / w for x, w in zip(ends, wanted, strict=True)]
    return SamplerError(
        cdf=table.max_error,
        variation=0.5 * float(np.sum(np.abs(mass - width / 4))),
        atom=float(np.max(width / 4 - around, initial=0.0)),
        tail=float(np.max(np.where(small, np.maximum(*off), 0.0), initial=0.0)),
    )


@lru_cache(maxsize=256)
def table_of(unit: IID) -> InverseTable:
    """The table of an i.i.d. noise at unit scale, made once and kept."""
    return checked_table(unit, unit.text)


def _outside(probability: Callable[[Array], Array], x: Array, w: Array) -> Array:
    """How far w is from the probabilities of x, up to the rounding of x."""
    step = 4 * np.spacing(np.abs(x))
    ends = (probability(x - step), probability(x + step))
    return np.maximum(0.0, np.maximum(np.minimum(*ends) - w, w - np.maximum(*ends)))


def checked_table(law: Law, name: str) -> InverseTable:
    """The table of a 1-D law, split where its density is not smooth; NoiseError if it is wrong."""
    at = np.asarray(law.cdf(np.asarray(law.breakpoints, dtype=np.float64)))
    breaks = sorted({float(u) for u in at if 0.0 < u < 1.0})
    table = InverseTable.build(law.ppf, law.isf, law.cdf, law.sf, breaks=breaks)
    error = evaluate_error(table, law)
    for what, value, most in (
        ("a cdf error", error.cdf, MOST_CDF),
        ("a total variation", error.variation, MOST_VARIATION),
        ("an atom of probability", error.atom, MOST_ATOM),
        ("a relative error of the far tail", error.tail, MOST_TAIL),
    ):
        if not value <= most:
            raise NoiseError(
                f"{name} cannot be sampled: its table has {what} of {value:.3g}, and {most:g} is "
                "allowed; take a smoother or lighter density, or name its jumps with points="
            )
    return table
