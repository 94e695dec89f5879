"""What it costs to replace one shifted coordinate by a Gaussian shift, per unit of energy.

κ(s, k, u1) is the supremum over 0 < u ≤ u1 of ξ/u², where ξ is the supremum over t ≥ 0 of
H_{e^t}(G_s ⊗ T_u) − H_{e^t}(G_{√(s² + k u²)}): theorem (e3). The table holds upper bounds, with
every grid rounded outwards, for symmetric unimodal noise.

In u. For such noise H_γ(T_u) does not fall as u grows: its derivative is γ Σ (p(a_i) − p(b_i))
over the intervals (a_i, b_i) of {p(z − u) > γ p(z)}, which for γ ≥ 1 lie in z > u/2, where p
falls; γ < 1 follows from H_γ = 1 − γ + γ H_{1/γ}. So on a cell [u, ρu] the cost at k ρ² is at
most the cost ξ at its right end and k, divided by the square of its left end.

In t. H is a convex function of γ, so between two grid points the difference of two of them is
at most the larger end plus the height of the tangent triangle of the second, itself at most a
quarter of the cell times the change of slope. The same difference is also a convolution: with g
the N(s²/2, s²) density, and K_u(w) = H_{e^w}(T_u) for w > 0, e^w H_{e^−w}(T_u) for w < 0,

    H_{e^t}(G_s ⊗ T_u) = H_{e^t}(G_s) + ∫ K_u(w) g(t − w) dw,      ∫ K_u = KL(Q‖P),

so its second derivative at t is at most (∫ K_u + k u²/2) times the largest |g''| right of t − w0,
plus sup |g''| times what K_u and the Gaussian's K have outside ±w0; the smaller correction counts.

Near u = 0. Expand g(t − w) around w = 0. K_u(w) = e^{w/2} × an even function, from which, with
J = ∫ w² K_u and I the Fisher information, ∫ K_u ≤ I u²/2 + J/8 (because ∫ (√p(z) − √p(z−u))² dz
≤ I u²/4), 0 ≤ ∫ w K_u ≤ J/2 and J ≤ E L⁴/6 ≤ M4 u⁴/6. For a Gaussian shift m these integrals are
m²/2, m⁴/8 and J = m⁴/4 + m⁶/24. Hence for k ≥ I and every t

    ξ ≤ sup|g| J/8 + sup|g'| max(J/2, m⁴/8) + (sup g'' · J + sup|g''| · (m⁴/4 + m⁶/24)) / 2.

M4 u⁴ ≥ E L⁴ for log-concave noise: L(z)₊/u under z ~ P falls as u grows and under z ~ Q it rises,
so twice the value E_Q L₊⁴/u⁴ at the largest u bounds it; likewise I ≤ 2 E_Q L₊²/u² at any u.
For other noise the slope of log p must be bounded; I and that slope are then measured on a grid
and widened, which is checked and not proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from scipy import special

from unicr.noise import IID
from unicr.radius._gaussian_law import HalfLaws, gaussian_hockey_stick, half_laws, nodes
from unicr.radius._gaussian_shift import SteepestShift, steepest_shift
from unicr.values import Array

SMOOTHINGS = np.array([0.02, 0.035, 0.06, 0.09, 0.13, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4])
EXCESS = np.array([1.0, 1.015, 1.035, 1.06, 1.09, 1.12, 1.16, 1.22, 1.3, 1.5, 2.0])
RATIO = 1.003
LARGEST = 5.0
LONGEST = 60.0
NEAR_ZERO = 0.015
ROUNDING = 3e-13


@dataclass(frozen=True, eq=False)
class SlackTable:
    """κ at (`smoothing`, `rate`, shift): an upper bound for every u up to that shift.

    `rate` are the values of k to put into √(s² + k V), already multiplied by ρ².
    """

    information: float
    smoothing: Array
    rate: Array
    shift: Array
    values: Array

    def up_to(self, shifts: Array) -> Array:
        """κ(s, k, u1) for each u1, infinite beyond the table; (s, k, u1)-shaped."""
        at = np.searchsorted(self.shift, shifts, side="left")
        inside = self.values[:, :, np.minimum(at, len(self.shift) - 1)]
        return np.where(at < len(self.shift), inside, np.inf)


@dataclass(frozen=True)
class _SmallShifts:
    """Fisher information and fourth moment of L near u = 0, both from above."""

    information: float
    noise: IID
    slope: float

    def fourth(self, largest: float) -> float:
        """M4 with E L⁴ ≤ M4 u⁴ for every u ≤ `largest`."""
        if not self.noise.facts.log_concave:
            return self.slope**4
        law = half_laws(self.noise, np.array([largest]), nodes(0.05, 8.5))
        return 2.02 * float(np.sum(law.mass * law.loss**4)) / largest**4


def _small_shifts(noise: IID) -> _SmallShifts | None:
    """None where the bound near u = 0 has nothing to stand on."""
    if math.isfinite(noise.support[0]) or math.isfinite(noise.support[1]):
        return None
    width = float(noise.isf(0.25))
    tiny = width * np.array([2e-5, 2e-3])
    law = half_laws(noise, tiny, nodes(0.01, 8.5))
    if float(np.max(law.infinite)) > 1e-12:
        return None
    second = 2 * np.sum(law.mass * law.loss**2, axis=1) / tiny**2
    if noise.facts.log_concave:
        return _SmallShifts(float(second[0]) * (1 + 1e-6), noise, math.inf)
    used = np.where(law.mass > 0, law.loss, 0.0)
    slope = np.max(used, axis=1) / tiny
    if slope[0] > 1.03 * slope[1] or second[0] > 1.1 * second[1]:
        return None
    return _SmallShifts(float(second[0]) * (1 + 1e-3), noise, 1.1 * float(np.max(slope)))


def _cost_near_zero(small: _SmallShifts, s: float, rates: Array, largest: float) -> Array:
    """Upper bound of ξ/u² for every u ≤ `largest` and every rate k ≥ I."""
    moment = small.fourth(largest) * largest**2 / 6
    mean = rates**2 * largest**2 / 8
    square = rates**2 * largest**2 / 4 + rates**3 * largest**4 / 24
    peak = 1 / math.sqrt(2 * math.pi)
    first = peak * math.exp(-0.5)
    upwards = 2 * peak * math.exp(-1.5)
    cost: Array = (
        peak / s * moment / 8
        + first / s**2 * np.maximum(moment / 2, mean)
        + 0.5 * (upwards * moment + peak * square) / s**3
    )
    return cost


def _lattice(scale: float, longest: float) -> Array:
    """Log-ratios 0 … `longest`, dense on the scale of a group of shifts."""
    growth = 0.03
    step = 0.035
    count = math.ceil(math.asinh(longest / scale * growth / step) / growth)
    w: Array = scale * step / growth * np.sinh(growth * np.arange(count + 1))
    return w


@dataclass(frozen=True, eq=False)
class _Group:
    """Neighbouring shifts whose atoms were spread, mean-preserving, to one lattice of L."""

    shift: Array
    loss: Array
    mass: Array
    infinite: Array
    reach: float
    divergence: Array
    outside: Array

    @classmethod
    def of(cls, laws: HalfLaws, shifts: Array, information: float) -> _Group:
        scale = math.sqrt(information) * float(shifts[0])
        used = np.where(laws.mass > 1e-15, laws.loss, 0.0)
        w = _lattice(scale, min(float(np.max(used)), LONGEST))
        height = np.stack([laws.hockey_stick(i, w) for i in range(len(shifts))])
        gamma = np.exp(w)
        slope = np.diff(height, axis=1) / np.diff(gamma)
        under_p = np.diff(slope, axis=1, append=0.0)
        centre = 1 - height[:, :1] + 2 * slope[:, :1]
        mass = np.concatenate([under_p[:, ::-1], centre, under_p * gamma[1:]], axis=1)
        loss = np.concatenate([-w[:0:-1], w])
        kernel = height[:, :-1] * (np.diff(w) * (1 + np.exp(-w[:-1])))
        divergence = np.sum(kernel, axis=1)
        outside = np.cumsum(kernel[:, ::-1], axis=1)[:, ::-1]
        outside = np.concatenate([outside, 0 * outside[:, :1]], axis=1)
        cut = int(np.argmax(outside[-1] < 1e-4 * divergence[-1]))
        return cls(shifts, loss, mass, height[:, -1], w[cut], divergence, outside[:, cut])


def _thresholds(deviation: float) -> Array:
    """The grid of t ≥ 0, even where a Gaussian shift `deviation` has its mass, then widening."""
    even = np.arange(0.0, 3.5 + deviation / 2, 0.04)
    wide = even[-1] + 0.04 * np.cumsum(1.1 ** np.arange(1, 50))
    return deviation * np.concatenate([even, wide])


def _steepest_bend(y: Array) -> Array:
    """sup over x ≥ y of |φ''(x)|, φ the standard normal density."""
    density = np.exp(-0.5 * y * y) / math.sqrt(2 * math.pi)
    hump = 2 * math.exp(-1.5) / math.sqrt(2 * math.pi)
    middle = np.maximum((1 - y * y) * density, hump)
    tail = np.where(y < math.sqrt(3), middle, (y * y - 1) * density)
    return np.where(y <= 0, 1 / math.sqrt(2 * math.pi), tail)


def _interpolator(points: Array, count: int = 30) -> tuple[Array, Array]:
    """Chebyshev nodes that span `points`, and the matrix from values there to those at `points`."""
    low, high = math.log(float(np.min(points))), math.log(float(np.max(points)))
    half = 0.5 * (high - low) * (1 + 1e-9)
    x = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    to_points = chebyshev.chebvander((np.log(points) - 0.5 * (low + high)) / half, count - 1)
    coefficients = chebyshev.chebvander(x, count - 1).T * (2.0 / count)
    coefficients[0] *= 0.5
    return np.exp(0.5 * (low + high) + half * x), to_points @ coefficients


def _cost(group: _Group, s: float, bases: Array) -> Array:
    """Upper bound of ξ at every shift of the group, for every k in `bases`: (k, shift).

    The Gaussian side is an analytic function of log σ, interpolated at 30 Chebyshev nodes; that
    and the rounding of the sums stay below ROUNDING.
    """
    u = group.shift
    t = _thresholds(math.sqrt(s * s + bases[0] * u[0] * u[-1]))
    smooth = gaussian_hockey_stick(t[None, :] - group.loss[:, None], s)
    ours = group.mass @ smooth + group.infinite[:, None]
    steps = np.diff(t)
    peak = 1 / math.sqrt(2 * math.pi)
    flat = steps**2 / 8 / s**3
    edge = group.infinite[:, None] * s * flat
    anchors, interpolate = _interpolator(np.sqrt(s * s + bases[:, None] * u * u).ravel())
    anchors = anchors[:, None]
    fall = np.exp(t + special.log_ndtr(-t / anchors - 0.5 * anchors))
    at_anchors = fall, gaussian_hockey_stick(t, anchors)
    shape = (len(bases), len(u), len(t))
    falls, sticks = ((interpolate @ values).reshape(shape) for values in at_anchors)
    result = np.empty(shape[:2])
    for i, k in enumerate(bases):
        gap = ours - sticks[i]
        triangle = falls[i][:, :-1] * (0.25 * np.expm1(steps))
        triangle += falls[i][:, 1:] * (0.25 * np.expm1(-steps))
        m = math.sqrt(k) * u
        reach = max(group.reach, 5.5 * float(m[-1]))
        bend = flat * _steepest_bend((t[:-1] - reach) / s - 0.5 * s)
        y = reach / m - 0.5 * m
        beyond = 2 * m * np.maximum(np.exp(-0.5 * y * y) * peak - y * special.ndtr(-y), 0.0)
        curved = (group.divergence + 0.5 * m * m)[:, None] * bend + edge
        curved += (group.outside + beyond)[:, None] * (peak * flat)
        cells = np.maximum(gap[:, :-1], gap[:, 1:]) + np.minimum(triangle, curved)
        result[i] = np.maximum(np.max(cells, axis=1), ours[:, -1])
    return np.maximum(result, 0.0) + ROUNDING * (1 + 1e3 * u * u)


@lru_cache(maxsize=64)
def slack_table(noise: IID) -> SlackTable | None:
    """The table of one shape (pass `noise.unit`), or None where (e3) is vacuous."""
    small = _small_shifts(noise)
    if small is None:
        return None
    unit = 1 / math.sqrt(small.information)
    lowest = NEAR_ZERO * SMOOTHINGS * unit
    count = math.ceil(math.log(LARGEST * unit / lowest[0]) / math.log(RATIO))
    edges = lowest[0] * RATIO ** np.arange(count + 1)
    bases = small.information * EXCESS
    values = np.zeros((len(SMOOTHINGS), len(bases), len(edges)))
    for i, s in enumerate(SMOOTHINGS):
        values[i] = _cost_near_zero(small, s, bases, lowest[i] * RATIO)[:, None]
    per_group = math.ceil(math.log(2.0) / math.log(RATIO))
    for first in range(1, len(edges), per_group):
        ends = edges[first : first + per_group]
        laws = half_laws(noise, ends, nodes(0.035, 8.2, 0.02))
        group = _Group.of(laws, ends, small.information)
        for i, s in enumerate(SMOOTHINGS):
            if ends[-1] > lowest[i]:
                cost = np.where(ends > lowest[i], _cost(group, s, bases), 0.0)
                here = values[i, :, first : first + len(ends)]
                np.maximum(here, cost / (ends / RATIO) ** 2, out=here)
    values = np.maximum.accumulate(values, axis=2)
    table = SlackTable(small.information, SMOOTHINGS, bases * RATIO**2, edges, values)
    steepest = steepest_shift(noise)
    return table if steepest is None else _with_domination(table, steepest)


def _with_domination(table: SlackTable, steepest: SteepestShift) -> SlackTable:
    """Adds s = 0 and the rate k = c², at which G_{cu} needs no slack."""
    rate = steepest.slope**2
    at = int(np.searchsorted(table.rate, rate))
    free = np.where(table.shift <= steepest.limit, 0.0, np.inf)
    values = np.insert(table.values, at, free, axis=1)
    bare = np.full((1, *values.shape[1:]), np.inf)
    bare[0, at] = free
    return SlackTable(
        table.information,
        np.append(0.0, table.smoothing),
        np.insert(table.rate, at, rate),
        table.shift,
        np.concatenate([bare, values]),
    )
