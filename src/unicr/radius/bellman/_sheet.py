"""One scale of the Bellman bound: proved flows for a grid of largest coordinates, and their use.

Let u₁ be the largest |δ_i|. For a grid a_0 = 0 < a_1 < … of its values a flow starts above T_{a_i}
and allows steps up to a_{i+1}, so that H_γ(T_{a_i} ⊗ rest) ≤ Φ_i(E) + Ξ_i(E), E the rest's cost.
Between two of them the chord holds up to χ (`_chord.py`): with u₁ = (1 − λ)a_i + λa_{i+1},

    H_γ(T_δ) ≤ (1 − λ)Φ_i(E) + λΦ_{i+1}(E) + χ(a_{i+1} − a_i),    E = r^p − u₁^p + κ(d − 1),

and below a_1 it is Φ_0 alone. The cost of a coordinate is u^p + κ: κ lets the dimension d be used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import signal, special

from unicr.noise import IID
from unicr.radius.bellman._chord import chord
from unicr.radius.bellman._construct import Generators, construct, nodes_of
from unicr.radius.bellman._kernel import Kernels, laws_of
from unicr.radius.bellman._lattice import Lattice
from unicr.radius.bellman._verify import missing, slack
from unicr.values import Array

SMOOTH = 0.05  # the width s of G_s, in units of the Gaussian shift that p_A stands for
BLURRED = 0.05  # the same inside Ψ_0
PER_SMOOTH = 5.0
RATIO = 0.08  # log of the ratio of neighbouring shifts
DUST = 1e-3  # share of the budget that coordinates too small to matter may claim
UNEVEN = 0.07  # how much smaller the smallest shift is where K need not grow with u
NODES = 24
OFFSETS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 21, 25)
FINEST = 1.5e-3  # of r^p: how finely u₁ is cut when the criterion is read
WINDOW = 12
COARSE = 25
BETWEEN = 12
LEFT = 5.0
RIGHT = 6.5
FARTHEST = 30.0
OUTSIDE = 2e-5  # hockey-stick of the largest shift where the lattice ends


@dataclass(frozen=True, eq=False)
class Part:
    """Φ + Ξ at the nodes and the bends between them, for one largest coordinate."""

    first: float
    limit: float
    nodes: Array
    values: Array
    bends: Array

    def at(self, budgets: Array, columns: slice) -> Array:
        """Φ + Ξ at each budget, from above, at some points; inf beyond what was verified."""
        t = self.nodes
        i = np.clip(np.searchsorted(t, budgets, side="right") - 1, 0, len(t) - 2)
        tau = ((budgets - t[i]) / (t[i + 1] - t[i]))[:, None]
        low, high = self.values[i, columns], self.values[i + 1, columns]
        inside = (1 - tau) * low + tau * high - tau * (1 - tau) * self.bends[i, columns]
        return np.where(budgets[:, None] <= self.limit, inside, np.inf)


class Sheet:
    """Everything proved at one scale: radii up to `r` at unit scale of the noise."""

    def __init__(self, unit: IID, p: float, dim: int, shift: float, r: float, kappa: float) -> None:
        self.p, self.dim, self.r, self.kappa = p, dim, r, kappa
        smooth = SMOOTH * shift
        middle = shift**2 / 2
        high = max(middle + RIGHT * shift, min(_reach(unit, r), middle + FARTHEST * shift))
        self.lattice = lattice = Lattice(smooth / PER_SMOOTH, middle - LEFT * shift, high)
        least = (DUST / dim) ** (1 / p) * r * (1.0 if unit.facts.unimodal else UNEVEN)
        ratio = RATIO / math.sqrt(max(1.0, p * (p - 1) / 2))
        count = max(2, math.ceil(math.log(r / least) / ratio))
        u = np.geomspace(least, r, count + 1)
        costs = u**p + kappa
        costs[0] = kappa  # what is smaller than u_0 counts as u_0
        chords = np.array([chord(unit, float(w)) for w in np.diff(u)])
        self.kernels = Kernels(unit, u, chords, lattice, smooth).kernels
        self.generators = Generators(self.kernels, costs, lattice)
        self.shifts, self.costs, self.shares = u, costs, _shares(u, costs, p)
        self.first = [0.0, *(float(u[count - o]) for o in _offsets(ratio) if o < count)]
        self.gaps = np.array([0.0, *(chord(unit, float(w)) for w in np.diff(self.first)[1:])])
        offsets = -np.arange(-lattice.count, lattice.count + 1) * lattice.step
        s = smooth
        self.gauss = special.ndtr(s / 2 + offsets / s) - np.exp(-offsets) * special.ndtr(
            -s / 2 + offsets / s
        )
        self.parts = [self._part(unit, i, BLURRED * shift) for i in range(len(self.first))]

    def _part(self, unit: IID, i: int, blurred: float) -> Part:
        lattice, a = self.lattice, self.first[i]
        following = self.first[min(i + 1, len(self.first) - 1)]
        top = int(np.searchsorted(self.shifts, following * (1 - 1e-12)))
        start, never = self._start(unit, a, blurred)
        before = self.first[max(i - 1, 0)]
        limit = self.r**self.p - before**self.p * (i > 1) + self.kappa * (self.dim - (i > 0))
        limit *= 1 + 1e-9
        costs, shares = self.costs[: top + 1], self.shares[:top]
        last = limit + float(np.max(np.diff(costs)[costs[:-1] <= limit]))
        rate = 2 * lattice.step * float(np.max(self.generators.rates[: top + 1]))
        share = math.sqrt(limit / (self.r**self.p + self.kappa * self.dim))
        nodes = nodes_of(limit, last, blurred**2 / rate, max(8, math.ceil(NODES * share)))
        flow = construct(self.generators, start, nodes, top)
        lack = missing(flow, self.kernels[: top + 1], costs, shares, lattice, limit)
        extra = never + slack(flow, costs, shares, lack)
        return Part(
            a,
            limit,
            nodes,
            self._smoothed(flow.masses) + extra[:, None],
            self._smoothed(flow.bends),
        )

    def _start(self, unit: IID, a: float, blurred: float) -> tuple[Array, float]:
        """Masses of Ψ_0 and a slack, above the hockey-sticks of both signs of the first shift."""
        lattice = self.lattice
        bell = np.exp(-0.5 * ((lattice.points - blurred**2 / 2) / blurred) ** 2)
        bell /= np.sum(bell)
        if a == 0:
            wanted = np.maximum(0.0, 1.0 - lattice.gamma)
            start, never = bell, 0.0
        else:
            spreads = [lattice.spread(law) for law in laws_of(unit, a)]
            never = max(infinite for _, infinite in spreads)
            wanted = np.max([lattice.values(mass) for mass, _ in spreads], axis=0)
            total = max(float(np.sum(mass)) for mass, _ in spreads)
            mass = np.maximum(lattice.masses(wanted, total), 0.0)
            start = np.convolve(mass, bell)[-lattice.first : -lattice.first + lattice.count]
        short = float(np.max(wanted - lattice.values(start)))
        below = 1.0 - never - float(np.sum(start))  # at γ → 0
        return start, never + max(short, below, 0.0)

    def _smoothed(self, mass: Array) -> Array:
        """G_s ⊗ Ψ at the lattice points, for rows of masses."""
        n = self.lattice.count
        full = signal.fftconvolve(mass, self.gauss[None, :], axes=1)
        return full[:, n : 2 * n] + 1e-14

    def margin(self, r: float, p_a: float, p_b: float) -> float:
        """From below, T(1 − p_A) + T(p_B) − 1 over all ‖δ‖_p ≤ r (binary: 2T(1 − p_A) − 1)."""
        binary = p_b >= 1.0 - p_a
        levels = [1.0 - p_a] if binary else [1.0 - p_a, p_b]
        weight = 2.0 if binary else 1.0
        return min(weight * self._cell(i, r, levels) - 1.0 for i in self._cells(r))

    def _cells(self, r: float) -> list[int]:
        """The cells in which the largest coordinate of some ‖δ‖_p ≤ r can lie."""
        return [i for i in range(len(self.first) - 1) if self.first[i] < r]

    def steps(self, low: float) -> tuple[Array, Array]:
        """(α, r) for r from `low` to the scale's own: T_δ(α) ≥ 1/2 for every ‖δ‖_p ≤ r, from below.

        What a cell allows falls as r grows. So between two radii of a coarse grid only those cells
        are asked again that allow less at the second than all of them do at the first.
        """
        coarse = np.geomspace(low, self.r, COARSE)
        allowed = np.full((COARSE, len(self.first) - 1), np.inf)
        for j, r in enumerate(coarse):
            for i in self._cells(float(r)):
                allowed[j, i] = self._cell(i, float(r), None)
        alpha, radius = [float(np.min(allowed[0]))], [float(coarse[0])]
        for j in range(1, COARSE):
            binding = np.flatnonzero(allowed[j] < np.min(allowed[j - 1]))
            others = float(np.min(np.delete(allowed[j], binding), initial=np.inf))
            for r in np.geomspace(coarse[j - 1], coarse[j], BETWEEN + 2)[1:-1]:
                now = [self._cell(int(i), float(r), None) for i in binding if self.first[i] < r]
                alpha.append(min([others, *now]))
                radius.append(float(r))
            alpha.append(float(np.min(allowed[j])))
            radius.append(float(coarse[j]))
        return np.maximum(alpha, 0.0), np.asarray(radius)

    def _cell(self, i: int, r: float, levels: list[float] | None) -> float:
        """For u₁ in cell i: Σ T at the levels; without levels the largest α with T(α) ≥ 1/2."""
        budgets, shares = self._cut(i, r)
        ends = [self.parts[i]] if i == 0 else [self.parts[i], self.parts[i + 1]]
        gamma = self.lattice.gamma

        def bound(rows: slice, columns: slice) -> Array:
            values = [part.at(budgets[rows], columns) for part in ends]
            if len(ends) == 1:
                return values[0]
            mixed = [
                (1 - lam[rows, None]) * values[0] + lam[rows, None] * values[1] for lam in shares
            ]
            return np.maximum(*mixed) + self.gaps[i]

        def lines(values: Array, columns: slice, level: float | None) -> Array:
            if level is None:
                return (0.5 - values) / gamma[columns]
            return 1.0 - values - gamma[columns] * level

        middle = slice(len(budgets) // 2, len(budgets) // 2 + 1)
        rough = bound(middle, slice(None))
        total = np.zeros(len(budgets))
        for level in levels if levels is not None else [None]:
            j = int(np.argmax(lines(rough, slice(None), level)[0]))
            window = slice(max(0, j - WINDOW), j + WINDOW + 1)
            total += np.max(lines(bound(slice(None), window), window, level), axis=1)
        lowest = float(np.min(total))
        return -math.inf if math.isnan(lowest) else lowest

    def _cut(self, i: int, r: float) -> tuple[Array, tuple[Array, Array]]:
        """Budgets of the rest for u₁ in small pieces of cell i, and λ at both ends of each."""
        p = self.p
        if i == 0:
            nothing = np.zeros(1)
            return np.array([r**p + self.kappa * self.dim]), (nothing, nothing)
        a, b = self.first[i], self.first[i + 1]
        top = min(b, r)
        count = max(2, math.ceil((top**p - a**p) / (FINEST * r**p)))
        x = np.linspace(a**p, top**p, count + 1) ** (1 / p)
        lam = np.clip((x - a) / (b - a), 0.0, 1.0)
        budgets = np.maximum(r**p - x[:-1] ** p, 0.0) * (1 + 1e-12) + self.kappa * (self.dim - 1)
        return budgets, (lam[:-1], lam[1:])


def _offsets(ratio: float) -> list[int]:
    """Which shifts, counted from the largest, serve as values of the largest coordinate."""
    return sorted({round(o * RATIO / ratio) for o in OFFSETS}, reverse=True)


def _reach(unit: IID, r: float) -> float:
    """Where the hockey-stick of the largest shift has fallen to `OUTSIDE`."""
    law = laws_of(unit, r)[0]
    above = np.cumsum(law.mass[::-1])[::-1]
    far = np.flatnonzero(above > OUTSIDE)
    return float(law.loss[far[-1]]) if len(far) else 0.0


def _shares(u: Array, costs: Array, p: float) -> Array:
    """max over λ of λ − s on every cell of shifts: how far the cost lags behind the shift."""
    lam = np.linspace(0.0, 1.0, 201)[None, :]
    at = (u[:-1, None] + lam * np.diff(u)[:, None]) ** p - u[:-1, None] ** p
    s = at / np.maximum(u[1:] ** p - u[:-1] ** p, 1e-300)[:, None]
    return np.maximum(np.max(lam - s, axis=1), 0.0) * (1 + 1e-3)
