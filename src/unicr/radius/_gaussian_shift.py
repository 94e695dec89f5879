"""The smallest Gaussian shift that is at least as easy to see as a shift u of the noise: m(u).

With it, theorem (e) bounds the trade-off of every perturbation by one Gaussian shift M, where
M² = Σ m(|δ_i|)², and so gives a proved radius for i.i.d. symmetric unimodal noise, every p > 0 and
every dimension. What the noise does beyond a mass of about 1e-17 is paid for as slack.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from unicr.noise import IID
from unicr.radius._gaussian_law import half_laws, nodes
from unicr.values import Array

DEEPEST = 8.5
TAIL = 2e-17
RATIO = 1.01
PARTS = 16
WIDTH = 2e-4
HIGHEST = 1 - 1e-12


@dataclass(frozen=True)
class SteepestShift:
    """m(u) ≤ `slope`·u for every u ≤ `limit`."""

    slope: float
    limit: float


@lru_cache(maxsize=256)
def steepest_shift(noise: IID) -> SteepestShift | None:
    """The slope c of m at 0, for symmetric log-concave noise; None for any other.

    m(u) is the supremum of h(x) − h(x − u), h = Φ⁻¹∘F, so c is that of h' = p/φ(h). On a cell of
    x ≥ 0 both p and φ(h) fall, so the left p and the right φ(h) bound it. Beyond the last point X,
    H_γ(T_u) = sup over x of P(ε > x − u) − γ P(ε > x) is at most P(ε > X − u): `limit` keeps that
    below 1e-30, which no dimension makes visible.
    """
    if not noise.facts.log_concave or _bounded(noise):
        return None
    deepest = 21.0
    area = np.arange(0.0, deepest + 0.5 * deepest**2, 1e-3)
    probit = np.sqrt(1 + 2 * area) - 1
    x = np.maximum.accumulate(noise.isf(special.ndtr(-probit)))
    x[0] = 0.0
    missed = np.maximum(special.log_ndtr(-probit) - np.log(noise.sf(x)), 0.0)
    h = probit + missed / np.maximum(probit, 0.5)
    log_normal = -0.5 * h[1:] ** 2 - 0.5 * math.log(2 * math.pi)
    slope = math.exp(float(np.max(noise.logpdf(x[:-1]) - log_normal)))
    return SteepestShift(slope, float(x[-1] - noise.isf(1e-30)))


@dataclass(frozen=True, eq=False)
class ShiftTable:
    """m at growing shifts, from above; `slope` is the c of m(v) ≤ c·v for short steps v.

    m does not fall as u grows, and m(u + v) ≤ m(u) + m(v) for any noise.
    """

    shift: Array
    gaussian: Array
    slope: float

    def at(self, u: float) -> float:
        """An upper bound of m(u), infinite beyond the table."""
        i = int(np.searchsorted(self.shift, u, side="left"))
        if i == len(self.shift):
            return math.inf
        if i == 0 or math.isinf(self.slope):
            return float(self.gaussian[i])
        climbed = self.gaussian[i - 1] + self.slope * (u - self.shift[i - 1])
        return float(min(self.gaussian[i], climbed))


@lru_cache(maxsize=64)
def shift_table(noise: IID) -> ShiftTable | None:
    """m of one shape (pass `noise.unit`), or None where no Gaussian shift is enough.

    T_u is bounded by a polygon; a convex G_m lies below it when it does so at the corners. By
    symmetry those with L ≥ 0 are enough. They leave out a Q-mass below TAIL.
    """
    if _bounded(noise):
        return None
    top = float(noise.isf(1e-6))
    low = 1e-4 * float(noise.isf(0.25))
    shifts = top * RATIO ** np.arange(-math.ceil(math.log(top / low) / math.log(RATIO)), 1.0)
    probits = nodes(0.035, DEEPEST)
    values = []
    for start in range(0, len(shifts), 128):
        laws = half_laws(noise, shifts[start : start + 128], probits)
        if float(np.max(laws.infinite)) > TAIL:
            return None
        beta = np.cumsum(laws.mass[:, ::-1], axis=1)
        alpha = np.cumsum((laws.mass * np.exp(-laws.loss))[:, ::-1], axis=1)
        with np.errstate(invalid="ignore"):
            corner = special.ndtri(np.minimum(beta, 1.0)) - special.ndtri(alpha)
        values.append(np.max(np.where(beta > 0, corner, 0.0), axis=1))
    m = np.maximum.accumulate(np.concatenate(values)) + 1e-12
    steepest = steepest_shift(noise)
    if steepest is None:
        return ShiftTable(shifts, m, math.inf)
    m = np.where(shifts <= steepest.limit, np.minimum(m, steepest.slope * shifts), m)
    return _refined(shifts, m, steepest.slope)


def _refined(shifts: Array, m: Array, slope: float) -> ShiftTable:
    """Continues the table to tiny shifts and cuts its steps, by m(u + v) ≤ m(u) + c v."""
    tiny = shifts[0] * RATIO ** np.arange(-1500.0, 0.0)
    shifts, m = np.concatenate([tiny, shifts]), np.concatenate([slope * tiny, m])
    steps = np.diff(shifts)[:, None] * (np.arange(1, PARTS + 1) / PARTS)
    climbed = np.minimum(m[:-1, None] + slope * steps, m[1:, None])
    fine = shifts[:-1, None] + steps
    return ShiftTable(np.append(shifts[0], fine), np.append(m[0], climbed), slope)


def proved_lp(noise: IID, p: float, dim: int, p_a: float, p_b: float) -> float:
    """A radius r such that K(δ) ≥ 0 for every ‖δ‖_p ≤ r in R^dim: theorem (e). 0 where vacuous.

    M² is at most dim times the concave envelope of s ↦ m(s^{1/p})² on [0, r^p], taken at r^p/dim.
    Each coordinate leaves out a mass TAIL, at most 20 times that after the chain
    T(P,S)(α) ≥ G_b(1 − G_a(α) + TAIL) for a short step b ≤ 0.3; K pays for it, twice over.
    Exact for Gaussian noise up to about 1e-3; never above.
    """
    if not (noise.facts.symmetric and noise.facts.unimodal) or not p_b < p_a:
        return 0.0
    table = shift_table(noise.unit)
    if table is None:
        return 0.0
    p_a, p_b = min(p_a, HIGHEST), max(p_b, 1 - HIGHEST)
    normal = math.exp(-0.125 * float(special.ndtri(p_a) + special.ndtri(p_b)) ** 2) / 2.51
    slack = 40 * dim * TAIL / normal
    allowed = 0.5 * float(special.ndtri(p_a) - special.ndtri(p_b)) * (1 - 1e-12) - slack
    if allowed <= 0:
        return 0.0
    goal = allowed**2
    low, high = 0.0, float(table.shift[-1])
    while high - low > WIDTH * high and high > table.shift[0]:
        middle = math.sqrt(low * high) if low else 0.25 * high
        if _total(table, middle, p, dim) <= goal:
            low = middle
        else:
            high = middle
    return low * noise.scale


def _total(table: ShiftTable, r: float, p: float, dim: int) -> float:
    """An upper bound of M² over ‖δ‖_p ≤ r.

    For every λ ≥ 0 the envelope at s0 is at most max over s of m² + λ(s0 − s); λ is searched for.
    """
    whole = table.at(r) ** 2
    if dim == 1 or math.isinf(whole):
        return whole
    if math.isinf(p):
        return dim * whole
    inside = int(np.searchsorted(table.shift, r, side="left"))
    left = np.append(0.0, table.shift[:inside]) / r
    square = np.append(table.gaussian[:inside] ** 2, whole)
    share = left**p
    target = 1.0 / dim

    def height(log_price: float) -> float:
        price = math.exp(log_price)
        return float(np.max(square - price * share)) + price * target

    low, high = math.log(whole * 1e-4), math.log(whole * dim * 4)
    golden = 0.6180339887498949
    inner, outer = high - golden * (high - low), low + golden * (high - low)
    at_inner, at_outer = height(inner), height(outer)
    best = min(at_inner, at_outer, whole)
    for _ in range(40):
        if at_inner < at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - golden * (high - low)
            at_inner = height(inner)
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + golden * (high - low)
            at_outer = height(outer)
        best = min(best, at_inner, at_outer)
    return dim * best


def _bounded(noise: IID) -> bool:
    return math.isfinite(noise.support[0]) or math.isfinite(noise.support[1])
