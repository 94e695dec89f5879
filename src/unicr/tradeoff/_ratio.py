"""The law of the log-likelihood ratio of one shifted coordinate, as a list of atoms.

P is the law of ε, Q that of ε + u, L(z) = log p(z − u) − log p(z). The line is cut into cells;
each cell keeps its exact P- and Q-mass and puts them on the two ends of the range that L takes
there. That is a mean-preserving spread of the likelihood ratio, so the atoms are easier to tell
apart than P and Q are: every trade-off computed from them is a LOWER bound (Blackwell).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy import special

from unicr.noise import IID
from unicr.tradeoff._base import Bound
from unicr.values import Array

TAIL = 1e-26


@dataclass(frozen=True, eq=False)
class RatioLaw:
    """Atoms of L under Q, sorted by `loss`; `infinite` is the Q-mass where P has none.

    The P-mass of an atom is mass·exp(−loss); what is missing from 1 there is P-mass at L = −∞.
    """

    loss: Array
    mass: Array
    infinite: float
    bound: Bound = "lower"

    @property
    def variance(self) -> float:
        """Second moment of L around zero under Q, the finite part."""
        return float(np.sum(self.mass * self.loss**2))


def interval_mass(noise: IID, z: Array) -> Array:
    """P-mass between consecutive points, from whichever tail keeps the digits."""
    below, above = noise.cdf(z), noise.sf(z)
    left = np.diff(below)
    right = -np.diff(above)
    return np.maximum(np.where(below[1:] < 0.5, left, right), 0.0)


def _log_ratio(noise: IID, z: Array, shift: float) -> Array:
    with np.errstate(invalid="ignore"):
        return noise.logpdf(z - shift) - noise.logpdf(z)


def _starting_points(noise: IID, shift: float) -> Array:
    deepest = float(special.ndtri(TAIL))
    probits = np.linspace(deepest, -deepest, 193)
    lower = noise.ppf(special.ndtr(probits[:97]))
    upper = noise.isf(special.ndtr(-probits[97:]))
    z = np.concatenate([lower, upper])
    corners = np.asarray([*noise.breakpoints, *noise.support], dtype=np.float64)
    corners = corners[np.isfinite(corners)]
    between = (c + abs(shift) * np.linspace(-1, 2, 25) for c in corners)
    points = np.concatenate([z, z + shift, corners, corners + shift, *between])
    points = np.unique(points[np.isfinite(points)])
    gaps = np.diff(points)
    keep = np.concatenate([[True], gaps > 1e-13 * np.maximum(1e-300, np.abs(points[1:]))])
    return points[keep]


def _cell_ranges(noise: IID, z: Array, shift: float, monotone: bool) -> tuple[Array, Array]:
    """Lowest and highest L on each cell; exact where L is monotone, with a margin elsewhere."""
    inner = z[:-1, None] + np.diff(z)[:, None] * np.array([[1e-9, 0.25, 0.5, 0.75, 1 - 1e-9]])
    if monotone:
        inner = inner[:, [0, -1]]
    values = _log_ratio(noise, inner, shift)
    low, high = np.min(values, axis=1), np.max(values, axis=1)
    if not monotone:
        with np.errstate(invalid="ignore"):
            bend = np.max(np.abs(np.diff(values, n=2, axis=1)), axis=1)
        bend = np.where(np.isfinite(bend), bend, 0.0)
        low, high = low - bend, high + bend
    return low, high


@lru_cache(maxsize=4096)
def ratio_law(
    noise: IID, shift: float, spread: float = 2e-5, bound: Literal["lower", "upper"] = "lower"
) -> RatioLaw:
    """Atoms of L for ε against ε + shift: a bound of the trade-off, tight to `spread`.

    "upper" puts each cell on one atom instead of two: forgetting where in the cell a point lies
    can only hide the shift.

    `spread` is the variance that the atoms may add, relative to that of L: a radius loses about
    half of it. Rigorous up to rounding for log-concave noise (L is monotone); for other densities
    the range of L on a cell is taken from five points plus their curvature.
    """
    if shift == 0:
        return RatioLaw(np.zeros(1), np.ones(1), 0.0, bound)
    z = _starting_points(noise, shift)
    monotone = noise.facts.log_concave
    for _ in range(40):
        p, q = interval_mass(noise, z), interval_mass(noise, z - shift)
        low, high = _cell_ranges(noise, z, shift, monotone)
        both = (p > 0) & (q > 0) & np.isfinite(low) & np.isfinite(high)
        average = 0.5 * (p + q)
        low, high = np.where(both, low, 0.0), np.where(both, high, 0.0)
        width, middle = high - low, 0.5 * (high + low)
        variance = float(np.sum(average * middle**2))
        cost = average * width**2 / 6
        if float(np.sum(cost)) <= spread * max(variance, 1e-300) or len(z) > 200_000:
            break
        share = spread * variance / len(z)
        split = cost > 0.7 * share
        wide = np.flatnonzero(split)
        z = np.sort(np.concatenate([z, 0.5 * (z[wide] + z[wide + 1])]))
        z = z[np.concatenate([[True], np.diff(z) > 0])]
    p, q, low, high = p[both], q[both], low[both], high[both]
    ratio = np.clip(np.log(q) - np.log(p), low, high)
    if bound == "upper":
        low, high = ratio, ratio
    return _atoms(q, ratio, low, high, bound)


def _atoms(q: Array, ratio: Array, low: Array, high: Array, bound: Bound) -> RatioLaw:
    """Atoms at both ends of each cell's range, with the cell's exact P- and Q-mass."""
    width = high - low
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(width > 0, np.expm1(high - ratio) / np.expm1(width), 1.0)
    share = np.clip(share, 0.0, 1.0)
    loss = np.concatenate([low, high])
    mass = np.concatenate([q * share, q * (1 - share)])
    used = mass > 0
    order = np.argsort(loss[used], kind="stable")
    loss, mass = loss[used][order], mass[used][order]
    total = math.fsum(mass)
    return RatioLaw(loss, mass, max(0.0, 1.0 - total), bound)
