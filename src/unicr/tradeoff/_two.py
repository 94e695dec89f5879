"""Votes under two laws: noise φ(‖z‖), and the same noise kept within a ball (DSRS, Li et al.).

f has mass ≥ p_A under P and ≥ q_A under P(· | ‖z‖ ≤ T), P(‖z‖ ≤ T) = c. Its mass under the shifted
law is at least λ_out·(p_A − c·q_A) + λ_in·c·q_A − ∫(m − p_δ)₊ for every λ_in ≥ λ_out ≥ 0, with
m = λ_in·p inside the ball and λ_out·p outside (weak duality). m falls with the length, so
∫ min(m, p_δ) is an integral of overlaps of balls. For ‖z‖₂ it falls with ‖δ‖₂; for ‖z‖₁, Laplace
noise among them, it is least over ‖δ‖₁ ≤ s at one coordinate (docs/theory.md#theorem-l). So
what holds at one length holds at every shorter one. Inside and outside are two separate functions
of one λ each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unicr.noise import RadialNoise
from unicr.tradeoff._falling import Levels, ball_chance, cross_chance
from unicr.values import Array

# Cells of the length, by the power of it that L depends on, and lines of the dual: each cell errs
# on the safe side and each line proves, so more of them only lose less.
CELLS = {2: 4000, 1: 2000}
LINES = 200  # of slope −e^t
# Onto both parts, times 1 + e^t (docs/theory.md#rounding-charges): sums over the cells of masses
# that are right to 1e-10 (`_falling.ROUNDING`), times 1 and e^t.
DUAL_CHARGE = 1e-9


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


def make_two_levels(noise: RadialNoise) -> Levels:
    """The cells of the length for `two_parts`."""
    return _make_levels(noise.unit)


@lru_cache(maxsize=4)
def _make_levels(noise: RadialNoise) -> Levels:
    return Levels(noise, CELLS[noise.ball.power])


def bound_two_parts(levels: Levels, noise: RadialNoise, shift: float, shares: Array) -> TwoParts:
    """Both parts for balls that hold the given shares of P and a δ of the given length.

    In ℓ2 for spherical noise; along one coordinate for noise of the ℓ1 length. From above
    (docs/theory.md#theorem-o).
    """
    s, law, a, b = shift / noise.scale, noise.unit_length, levels.edges[:-1], levels.edges[1:]
    slope, power = s * levels.slope, noise.ball.power
    make = ball_chance if power == 2 else cross_chance
    chance, most = make(levels, s), make(levels, s, above=True)
    if power == 2:
        mu = slope / math.sqrt(noise.dim)
        t = mu * np.linspace(-4.0, 6.0, LINES) + 0.5 * mu * mu
    else:
        # L jumps to ±s·slope where log φ is a straight line: a line just beyond is needed
        up = slope * np.append(np.geomspace(0.01, 1.0, 60) * (1 + 1e-7), np.geomspace(1.02, 12, 40))
        t = np.clip(np.concatenate([-up[::-1], up]), -600.0, 600.0)
    balls = law.ppf(np.minimum(shares, 1.0 - 1e-15))[:, None] ** power
    share_in = np.clip((shares[:, None] - law.cdf(a)) / np.maximum(levels.mass, 1e-300), 0.0, 1.0)
    # P(‖z − δ‖ < T | r) in a cell, from both sides
    shortest, longest = balls - b**power, balls - a**power
    low, high = chance(shortest, shortest, b), most(longest, longest, b)
    inside, outside = np.empty((2, shares.size, LINES))
    for i, line in enumerate(t.tolist()):
        above, below = (chance(*levels.gaps(side)) for side in (line, -line))
        exceeding, growth = levels.mass * above, math.exp(line)
        within = share_in @ exceeding
        # {L < t} under the shifted law is {‖z − δ‖ < ρ(r, −t)} under P: in the ball where ρ < T
        inside[:, i] = growth * (shares - within) - np.minimum(below, low) @ levels.mass
        beyond = np.maximum(below - high, 0.0) @ levels.mass
        outside[:, i] = growth * (1 - shares - (float(np.sum(exceeding)) - within)) - beyond
    charge = DUAL_CHARGE * (1 + np.exp(t))
    return TwoParts(t, np.maximum(inside, 0.0) + charge, np.maximum(outside, 0.0) + charge)


def total_variation(noise: RadialNoise, lengths: Array) -> Array:
    """TV between the noise and its shifts by these lengths, from above: P(|z₁| < s/2), φ falling.

    {p_δ > p} is the half-space beyond δ/2, where P(z₁ > s/2 | r) grows with r.
    """
    levels = make_two_levels(noise)
    make, flat = ball_chance if noise.order == 2 else cross_chance, np.ravel(lengths) / noise.scale
    equal = np.zeros(levels.mass.size)
    half = [float(make(levels, s)(equal, equal, levels.edges[1:]) @ levels.mass) for s in flat]
    return np.maximum(1.0 - 2 * np.asarray(half), 0.0).reshape(np.shape(lengths))
