"""Votes under two laws: spherical noise, and the same noise kept within a ball (DSRS, Li et al.).

f has mass ≥ p_A under P and ≥ q_A under P(· | ‖z‖ ≤ T), P(‖z‖ ≤ T) = c. Its mass under the shifted
law is at least λ_out·(p_A − c·q_A) + λ_in·c·q_A − ∫(m − p_δ)₊ for every λ_in ≥ λ_out ≥ 0, with
m = λ_in·p inside the ball and λ_out·p outside (weak duality). m falls with the length, so
∫ min(m, p_δ) is an integral of overlaps of balls and falls with ‖δ‖: what holds at one length
holds at every shorter one. Inside and outside are two separate functions of one λ each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unicr.noise import SphericalNoise
from unicr.tradeoff._falling import Levels
from unicr.tradeoff._radial import Angle, angle_law
from unicr.values import Array

CELLS = 4000
LINES = 200


@dataclass(frozen=True, eq=False)
class TwoParts:
    """∫(e^t·p − p_δ)₊ from above over the ball (`inside`, a row for each share) and beyond it."""

    t: Array
    inside: Array
    outside: Array

    def least(self, p_a: float, q_a: float, share: float, row: int) -> float:
        """The least mass of f under the shifted law, from below: the best pair λ_out ≤ λ_in."""
        slope, inner = np.exp(self.t), share * q_a
        outer = np.append(0.0, slope * (p_a - inner) - self.outside[row])
        best = np.maximum.accumulate(outer)[1:]  # λ_out = 0 is allowed too
        return float(np.max(best + slope * inner - self.inside[row]))


def levels_for_two(noise: SphericalNoise) -> Levels:
    """The cells of the length for `two_parts`."""
    return _levels(noise.unit)


@lru_cache(maxsize=4)
def _levels(noise: SphericalNoise) -> Levels:
    return Levels(noise, 2, CELLS)


def two_parts(found: Levels, noise: SphericalNoise, shift: float, shares: Array) -> TwoParts:
    """Both parts for a shift of the given ℓ2 length and balls that hold the given shares of P."""
    s, law, angle = shift / noise.scale, noise._law, angle_law(noise.dim)
    mu = s * found.slope / math.sqrt(noise.dim)
    t = mu * np.linspace(-4.0, 6.0, LINES) + 0.5 * mu * mu
    a, b = found.edges[:-1], found.edges[1:]
    balls = law.ppf(np.minimum(shares, 1.0 - 1e-15))[:, None]
    share_in = np.clip((shares[:, None] - law.cdf(a)) / np.maximum(found.mass, 1e-300), 0.0, 1.0)
    # P(‖z − δ‖ < T | r) in a cell, from both sides: x = (s² − T²)/2sr + r/2s
    rest = (s * s - balls * balls) / (2 * s)
    low = angle.beyond(rest / np.where(rest > 0, a, b) + b / (2 * s))
    high = angle.beyond(rest / np.where(rest > 0, b, a) + a / (2 * s))
    inside, outside = np.empty((2, shares.size, LINES))
    for i, one in enumerate(t.tolist()):
        above, below = (_chance(found, side, s, a, b, angle) for side in (one, -one))
        seen, growth = found.mass * above, math.exp(one)
        within = share_in @ seen
        # {L < t} under the shifted law is {‖z − δ‖ < ρ(r, −t)} under P: in the ball where ρ < T
        inside[:, i] = growth * (shares - within) - np.minimum(below, low) @ found.mass
        beyond = np.maximum(below - high, 0.0) @ found.mass
        outside[:, i] = growth * (1 - shares - (float(np.sum(seen)) - within)) - beyond
    slack = 1e-9 * (1 + np.exp(t))
    return TwoParts(t, np.maximum(inside, 0.0) + slack, np.maximum(outside, 0.0) + slack)


def _chance(found: Levels, t: float, s: float, a: Array, b: Array, angle: Angle) -> Array:
    gap = found.gap(t)
    over = np.where(gap > -math.inf, s * s - gap, math.inf)
    x = over / (2 * s * np.where(over > 0, a, b))
    return angle.beyond(x)


def total_variation(noise: SphericalNoise, lengths: Array) -> Array:
    """TV between the noise and its shifts by these lengths, from above: P(|z₁| < s/2), φ falling.

    {p_δ > p} is the half-space beyond δ/2, and P(cos θ > s/2r) grows with r.
    """
    found, angle = levels_for_two(noise), angle_law(noise.dim)
    flat = np.ravel(lengths) / noise.scale
    half = [float(angle.beyond(s / (2 * found.edges[:-1])) @ found.mass) for s in flat]
    return np.maximum(1.0 - 2 * np.asarray(half), 0.0).reshape(np.shape(lengths))
