"""Proved radii that hold in every direction, by comparing the noise with Gaussian shifts.

`proved_l2` is theorem (e3): the largest coordinate of the perturbation is kept exactly, all the
others are replaced by one Gaussian shift and a slack. It is free of the dimension. `proved_lp` is
theorem (e), for every p > 0. Both need i.i.d. symmetric unimodal noise and are 0 where vacuous.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from unicr.noise import IID
from unicr.radius._gaussian_law import HalfLaws, gaussian_hockey_stick, half_laws, nodes
from unicr.radius._gaussian_shift import HIGHEST, proved_lp
from unicr.radius._gaussian_slack import SlackTable, slack_table
from unicr.values import Array

__all__ = ["proved_l2", "proved_lp"]

WIDTH = 2e-4
CELLS = 40
SPLITS = 4
PROBITS = nodes(0.06, 8.2, 0.03)
PRICES = np.array([0.35, 0.7, 1.4])
FLOAT_ERROR = 1e-9


def proved_l2(noise: IID, p_a: float, p_b: float) -> float:
    """A radius r such that K(δ) ≥ 0 for every ‖δ‖₂ ≤ r, in every dimension: theorem (e3).

    Let u1 be the largest coordinate of δ and V = r² − u1². With a Gaussian shift and a slack for
    all the others (`_absorb`),

        T_δ(α) ≥ (T_{u1} ⊗ G_M)(α) − slack.

    (0, r] is covered by cells [a, b] of u1. T falls with |u|, and the costs grow with u1 and V, so
    T_b, r² − a² and κ(b) serve the whole cell; M is chosen per cell, and any choice is a proof. A
    trade-off is bounded by T(α) ≥ 1 − γα − H_γ, which holds for every γ.
    """
    if not (noise.facts.symmetric and noise.facts.unimodal) or not p_b < p_a:
        return 0.0
    table = slack_table(noise.unit)
    if table is None:
        return 0.0
    p_a, p_b = min(p_a, HIGHEST), max(p_b, 1 - HIGHEST)
    alphas = (1 - p_a,) if p_b == 1 - p_a else (1 - p_a, p_b)
    shift = 0.5 * float(special.ndtri(p_a) - special.ndtri(p_b))
    ceiling = min(shift / math.sqrt(table.information), float(table.shift[-1]))
    shares = np.linspace(0.0, 1.0, CELLS + 1)
    guess = _guess(noise.unit, table, ceiling, alphas, shares)
    low, high, step = 0.0, ceiling, 3e-4 * guess
    middle = guess - step
    while high - low > WIDTH * high:
        proved, shares = _certified(noise.unit, table, middle, alphas, shares)
        if proved:
            low = middle
            middle = min(0.5 * (low + high), low + step)
        else:
            high = middle
            middle = max(0.5 * (low + high), high - step)
            if middle < 0.01 * ceiling:
                return 0.0
        step *= 2
    return low * noise.scale


def _guess(
    noise: IID, table: SlackTable, ceiling: float, alphas: tuple[float, ...], shares: Array
) -> float:
    """About where certification ends: the criterion on coarse cells, without their rounding."""
    low, high = 0.0, ceiling
    for _ in range(8):
        r = 0.5 * (low + high) if low else 0.9 * high
        squares = r * r * shares
        margin, gain = _margins(noise, table, r, squares[:-1], squares[1:], alphas)
        low, high = (r, high) if np.all(margin + 0.55 * gain > 0) else (low, r)
    return 0.5 * (low + high)


def _certified(
    noise: IID, table: SlackTable, r: float, alphas: tuple[float, ...], shares: Array
) -> tuple[bool, Array]:
    """Whether the criterion was verified on every cell, and the cells: those that fail are halved.

    `shares` are the ends of the cells of u1², from 0 to 1, in units of r².
    """
    left, right = shares[:-1], shares[1:]
    for _ in range(SPLITS + 1):
        margin, gain = _margins(noise, table, r, r * r * left, r * r * right, alphas)
        failed = ~(margin >= FLOAT_ERROR)
        if not np.any(failed):
            return True, shares
        narrow = right - left < 1.5 / (CELLS * 2**SPLITS)
        if np.any((margin + 0.9 * gain < 0) | (failed & narrow)):
            return False, shares
        left, right = left[failed], right[failed]
        middle = 0.5 * (left + right)
        shares = np.union1d(shares, middle)
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    return False, shares


def _margins(
    noise: IID, table: SlackTable, r: float, left: Array, right: Array, alphas: tuple[float, ...]
) -> tuple[Array, Array]:
    """K/2 that is certainly left on cells of u1², and about what smaller cells could add."""
    b = np.sqrt(right)
    energy = r * r - left
    law = _Mixture.of(half_laws(noise, b, PROBITS))
    cost = table.up_to(b)
    best = np.full(len(b), -np.inf)
    price = 0.2 / np.sqrt(law.variance + table.information * energy)
    for _ in range(2):
        square, slack = _absorb(table, cost, energy, right, price)
        index = np.argmin(price * square + slack, axis=0)
        here = np.arange(len(b))
        square, slack = square[index, here], slack[index, here]
        power, price = law.power_left(np.sqrt(square), alphas)
        best = np.maximum(best, power - slack)
    return best, 2 * price * table.information * (right - left) + 1e-5


def _absorb(
    table: SlackTable, cost: Array, energy: Array, largest: Array, price: Array
) -> tuple[Array, Array]:
    """M² and slack that replace any coordinates of total `energy`, each at most `largest`, squared.

    One row for each way to do it, one column for each cell. Start from G_s and absorb coordinate
    after coordinate: G_√y ⊗ T_u is at least G_√(y + k u²) up to a slack κ(√y, k) u². Let k and a
    bound c of κ be non-increasing functions of the energy E absorbed so far, with c(E) ≥ κ at
    √(s² + ∫₀ᴱ k): y is at least that, and κ falls with s. A coordinate of energy Δ ≤ h absorbed at
    E costs c(E) Δ ≤ ∫ c((x − h)₊) dx over [E, E + Δ], so in all, for h = min(largest, energy),

        M² ≤ s² + h k(0) + ∫₀^(energy − h) k,      slack ≤ h c(0) + ∫₀^(energy − h) c.

    Here k changes when y passes the values of s in the table, at each of which it is the best rate
    at `price`, the worth of M² in slack, times a factor.
    """
    h = np.minimum(largest, energy)
    levels = table.smoothing**2
    worth = PRICES[:, None] * price * table.rate[:, None, None] + cost[:, :, None]
    preferred = np.argmin(worth, axis=1)
    cells = np.arange(len(energy))
    squares, slacks = [], []
    for start in range(len(levels)):
        at = np.minimum.accumulate(preferred[start:], axis=0)
        k = table.rate[at]
        c = cost[np.arange(start, len(levels))[:, None, None], at, cells]
        c = np.maximum.accumulate(c[::-1], axis=0)[::-1]
        room = np.diff(levels[start:], append=np.inf)[:, None, None] / k
        before = np.cumsum(np.concatenate([np.zeros_like(room[:1]), room[:-1]]), axis=0)
        used = np.clip(energy - h - before, 0.0, room)
        used[0] += h
        squares.append(levels[start] + np.sum(used * k, axis=0))
        with np.errstate(invalid="ignore"):
            slacks.append(np.sum(np.where(used > 0, used * c, 0.0), axis=0))
    return np.concatenate(squares), np.concatenate(slacks)


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Atoms of L for the largest coordinate, both signs: the laws that G_M is composed with."""

    loss: Array
    under_p: Array
    under_q: Array
    infinite: Array
    mean: Array
    variance: Array

    @classmethod
    def of(cls, half: HalfLaws) -> _Mixture:
        mirrored = half.mass * np.exp(-half.loss)
        loss = np.concatenate([-half.loss, half.loss], axis=1)
        under_p = np.concatenate([half.mass, mirrored], axis=1)
        under_q = np.concatenate([mirrored, half.mass], axis=1)
        near = np.clip(loss, -20.0, 20.0)
        mean = np.sum(under_p * near, axis=1)
        variance = np.sum(under_p * (near - mean[:, None]) ** 2, axis=1)
        return cls(loss, under_p, under_q, half.infinite, mean, variance)

    def power_left(self, shift: Array, alphas: tuple[float, ...]) -> tuple[Array, Array]:
        """A lower bound of K/2 for T_b ⊗ G_M, and about how fast it falls with M²."""
        m = shift[:, None]
        deviation = np.sqrt(self.variance + shift**2)
        total = np.zeros(len(shift))
        price = np.zeros(len(shift))
        for alpha in alphas:
            goal = -float(special.ndtri(alpha))
            t = self.mean - 0.5 * shift**2 + deviation * goal
            for _ in range(4):
                x = (self.loss - t[:, None]) / m - 0.5 * m
                tail = np.sum(self.under_p * special.ndtr(x), axis=1)
                probit = special.ndtri(np.clip(tail, 1e-300, 1 - 1e-16))
                slope = np.sum(self.under_p * np.exp(0.5 * (probit[:, None] ** 2 - x * x)), axis=1)
                step = (goal + probit) * shift / np.maximum(slope, 1e-3)
                t = t + np.clip(step, -deviation, deviation)
            gap = t[:, None] - self.loss
            stick = np.sum(self.under_q * gaussian_hockey_stick(gap, m), axis=1)
            density = np.exp(-0.5 * (gap / m - 0.5 * m) ** 2)
            price += np.sum(self.under_q * density, axis=1) / (2 * math.sqrt(2 * math.pi) * shift)
            total += 1 - np.exp(t) * alpha - stick - self.infinite
        return total / len(alphas) - 0.5, price / len(alphas)
