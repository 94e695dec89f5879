"""Theorem (g): the differential method, a proved ℓ1 radius for any i.i.d. density (Yang et al.).

Moving one coordinate by dr changes a probability q by at most Φ(q)·dr, where Φ(q) is the largest
mean score −p′/p over a set of mass q. With G the function that has G(1/2) = 0 and G′ = 1/Φ this
certifies ‖δ‖₁ < (G(p_A) − G(p_B))/2; for log-concave noise G is the quantile function itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from unicr.noise import IID
from unicr.tradeoff.internal import interval_mass
from unicr.values import Array

SMALLEST = 1e-16
ROUNDING = 1e-12  # of the sums, where slopes are steep


@dataclass(frozen=True, eq=False)
class _Rate:
    """Φ from above as the lower envelope of lines c·q + excess(c)."""

    slopes: Array
    excess: Array

    def __call__(self, q: Array) -> Array:
        return np.min(self.slopes[:, None] * q + self.excess[:, None], axis=0)


def _rate(noise: IID, sign: float) -> _Rate:
    """Lines c·q + E(S − c)₊ ≥ Φ(q) for the score S = −sign·p′/p, each valid for every c."""
    probits = np.linspace(-10.0, 10.0, 6001)
    z = np.concatenate(
        [noise.ppf(special.ndtr(probits[:3001])), noise.isf(special.ndtr(-probits[3001:]))]
    )
    corners = [b for b in noise.breakpoints if math.isfinite(b)]
    spread = float(noise.isf(0.25) - noise.ppf(0.25))
    near = [b + s * spread * np.geomspace(1e-12, 1.0, 400) for b in corners for s in (-1.0, 1.0)]
    ends = [e for e in noise.support if math.isfinite(e)]
    z = np.unique(np.concatenate([z, *near, np.asarray(corners + ends), noise.mesh]))
    z = z[(z >= noise.support[0]) & (z <= noise.support[1])]
    mass = interval_mass(noise, z)
    keep = mass > 0
    density = noise.pdf(z)
    if np.any(np.isinf(density)):  # a top without end: no rate bounds its growth
        return _Rate(np.zeros(1), np.full(1, np.inf))
    gain = sign * (density[:-1] - density[1:])
    # jumps at the ends of the support and at the edges of holes are scores of infinite size
    edges = np.array([-sign * density[0], sign * density[-1], *gain[~keep]])
    jump = float(np.sum(np.maximum(edges, 0.0)))
    gain, mass = gain[keep], mass[keep]
    score = gain / mass
    around = np.pad(score, 1, mode="edge")
    wobble = np.abs(around[2:] - around[:-2])
    order = np.argsort(-score)
    levels = score[order][:: max(1, len(score) // 1500)]
    over = score[None, :] - levels[:, None]
    straddle = np.abs(over) <= wobble[None, :]
    excess = np.maximum(over, 0.0) @ mass + (straddle * wobble[None, :]) @ mass + jump
    return _Rate(levels, excess + ROUNDING * np.abs(levels))


@dataclass(frozen=True, eq=False)
class _Growth:
    """G at p = 1 − q for a grid of q ≤ 1/2: from below and from above, and 1/Φ at its smallest."""

    q: Array
    lower: Array
    upper: Array
    slowest: Array

    def at_least(self, p: float) -> float:
        """A lower bound of G(p)."""
        q = 1.0 - p
        if q > 0.5:
            return -self.at_most(q)
        i = int(np.searchsorted(self.q, q, side="left"))
        partial = (self.q[i] - q) * self.slowest[i - 1] if i > 0 else 0.0
        return float(self.lower[i] + partial)

    def at_most(self, p: float) -> float:
        """An upper bound of G(p)."""
        q = 1.0 - p
        if q > 0.5:
            return -self.at_least(q)
        i = int(np.searchsorted(self.q, q, side="left"))
        return float(self.upper[i - 1]) if i > 0 else math.inf


@lru_cache(maxsize=64)
def _growth(unit: IID) -> _Growth:
    q = np.concatenate([np.geomspace(SMALLEST, 0.01, 6000), np.linspace(0.01, 0.5, 8000)[1:]])
    rates = [_rate(unit, 1.0)]
    if not unit.facts.symmetric:
        rates.append(_rate(unit, -1.0))

    def rate(at: Array) -> Array:
        values = [r(at) for r in rates]
        values += [r(1 - at) for r in rates] if len(rates) > 1 else []
        return np.max(values, axis=0)

    ends = rate(q)
    middle = np.maximum(rate(0.5 * (q[1:] + q[:-1])), 1e-300)
    step = np.diff(q)
    highest = np.maximum(np.maximum(ends[1:], ends[:-1]), middle)
    # 1/Φ is convex for one concave Φ: the midpoint is a lower sum, the trapezoid an upper one
    lower = step / (middle if len(rates) == 1 else highest)
    upper = step * 0.5 * (1 / np.maximum(ends[1:], 1e-300) + 1 / np.maximum(ends[:-1], 1e-300))
    total_lower = np.concatenate([np.cumsum(lower[::-1])[::-1], [0.0]])
    total_upper = np.concatenate([np.cumsum(upper[::-1])[::-1], [0.0]])
    return _Growth(q, total_lower, total_upper, 1 / np.maximum(highest, 1e-300))


def differential_l1(noise: IID, p_a: float, p_b: float) -> float:
    """A proved ℓ1 radius in any dimension, for i.i.d. noise whose density has bounded variation.

    Rounded down: lines bound Φ from above, the integral is a lower sum, and p_A, p_B are moved to
    the grid point that certifies less.
    """
    growth = _growth(noise.unit)
    return max(0.0, 0.5 * (growth.at_least(p_a) - growth.at_most(p_b))) * noise.scale
