"""How far the probability of any event can lie above its chord while the noise is shifted.

For every event, or weight 0 ≤ a ≤ 1, and 0 ≤ λ ≤ 1 the function f(u) = ∫ p(z − u) a(z) dz satisfies
f(λΔ) ≤ (1 − λ) f(0) + λ f(Δ) + χ(Δ). At the midpoint the excess is at most
γ(Δ) = ∫ (p(z) − ½p(z − Δ/2) − ½p(z + Δ/2))₊ dz; halving again and again,
χ(Δ) ≤ γ(Δ) + γ(Δ/2) + γ(Δ/4) + …. A supremum over events keeps the inequality. Closer: χ(Δ) is at
most χ(Δ/8) and the largest excess at an eighth, two eighths, …, each the integral of the positive
part of p there minus the chord. And where slopes of p fall by J in all and p jumps by V, it is at
most JΔ²/8 + VΔ/4.

Even log-concave noise, p = e^(−ψ), knows better: f(u) = H_γ(T_u) has p(t − u) = γp(t) at its
threshold t, f′ = p(t − u), and f″ = p(t − u)ab/(a − b) with a = ψ′(t), b = ψ′(t − u).
That is negative only where t − u < 0 < t, so for |log γ| ≤ ψ(u) − ψ(0), and at least −bend(u),
bend(u) = max over 0 ≤ v ≤ u of p(v)·ψ′(v)ψ′(u − v)/(ψ′(v) + ψ′(u − v)). Averages over other
coordinates keep it: the excess over a chord is at most bend·Δ²/8, and nothing beyond that |log γ|.

A density that is constant between its jumps knows most: f is straight between neighbouring
differences of its jumps.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special

from unicr.noise import IID
from unicr.values import Array

EVEN_POINTS = 2500  # points of equal probability, and in Φ⁻¹ of it for the tails
TAIL = 1e-10  # probability at either end that is not cut into cells, and charged
# Cell edges around a corner of the density, in widths: evenly near it, then geometrically outwards.
CORNER_OFFSETS = np.concatenate(
    [np.linspace(-2, 2, 161), np.geomspace(2, 1e3, 60), -np.geomspace(2, 1e3, 60)]
)
MOST_HALVINGS = (
    14  # of a width before its rest is bounded by what a slope can lose: any number holds
)
# Of an excess: masses and densities are right to some roundings of themselves, and places of edges,
# moved by parts of the width, to as many of the density's variation; all come to far less.
EXCESS_ROUNDING = 1e-13
BEND_POINTS = 48  # places of v in 0 … u between which ψ′ is bounded by chords of the convex ψ
EPS = float(np.finfo(np.float64).eps)  # twice the largest relative error of one rounding
BEND_ROUNDING = 1e-9  # of a bend: p, two slopes and two quotients are right to 1e-12, |ψ| ≤ 1e3
MOST_JUMPS = 300  # of a density that is constant between them: its differences are 300² numbers
SAME_KINK = 1e-12  # kinks closer than that, relative, are one that rounding took apart
KINK_UNITS = 16  # of EPS of the largest jump's place: a difference of two is right to two of them
REACH_ROUNDING = 1e-12  # of ψ(u) − ψ(0): values of some hundred, right to some units


@lru_cache(maxsize=64)
def _cut_line(unit: IID) -> tuple[Array, Array]:
    """The line cut where probability is, and the corners of the density."""
    even = np.linspace(0, 1, EVEN_POINTS + 1)[1:-1]
    deep = special.ndtr(np.linspace(special.ndtri(TAIL), 0, EVEN_POINTS // 5))
    mesh = np.concatenate([unit.ppf(even), unit.ppf(deep), unit.isf(deep)])
    corners = [b for b in (*unit.breakpoints, *unit.support) if math.isfinite(b)]
    return mesh, np.asarray(corners)


@lru_cache(maxsize=2048)
def _measure_excess(unit: IID, width: float, share: float) -> float:
    """How far any event may lie above its chord at a share of the way, from above.

    In every cell the density and its two moved copies are convex or concave: each differs from its
    chord by the area between the trapezoid and its mass, on one side, and by at most twice that
    area over the cell's length anywhere. So the positive part of their difference is at most that
    of the chords and those areas (docs/theory.md#theorem-j, "All shifts").
    """
    curvature = unit.law.curvature
    if curvature is None:
        return 1.0
    mesh, corners = _cut_line(unit)
    back, on = share * width, (1 - share) * width
    places = curvature.places
    near = np.add.outer(corners, width * CORNER_OFFSETS).ravel()
    edges = [mesh, near, places, places - back, places + on, corners - back, corners + on]
    z = np.unique(np.concatenate(edges))
    z = z[(z >= mesh.min() - 2 * width) & (z <= mesh.max() + 2 * width)]
    length = np.diff(z)
    height = np.zeros((2, length.size))
    gap, mass = np.zeros((2, length.size))
    for weight, move in ((1.0, 0.0), (-(1 - share), back), (-share, -on)):
        a, b, cell_mass = unit.law.look(z + move)
        height += weight * np.stack([a, b])
        mass += weight * cell_mass
        rounding = 64 * EPS * (cell_mass + length * (a + b))
        area = 0.5 * length * (a + b) - cell_mass
        # above its chord the density counts, below it its copies do
        gap += abs(weight) * (np.maximum(-area if weight > 0 else area, 0.0) + rounding)
    most, least = np.max(height, axis=0), np.min(height, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.where(least < 0, 0.5 * most * most / (most - least), 0.5 * (most + least))
        chord = length * np.where(most > 0, crossing, 0.0)
        positive = np.where(most + 2 * gap / length <= 0, 0.0, chord + gap)
    # a convex density lies below its chord: nothing if none of the three has a concave part
    first = np.searchsorted(curvature.falls, z[:-1] - on, side="left")
    last = np.searchsorted(curvature.falls, z[1:] + back, side="right")
    inside = [(z[:-1] - on < high) & (z[1:] + back > low) for low, high in curvature.concave]
    bent = (last > first) | np.any(inside, axis=0) if inside else last > first
    gain = float(np.sum(np.where(bent, positive, 0.0)))
    outside = float(unit.cdf(z[0]) + unit.sf(z[-1]))
    return min(1.0, gain + outside + EXCESS_ROUNDING)


@lru_cache(maxsize=4096)
def _bound_unit_excess(unit: IID, width: float) -> float:
    """χ in units of the noise's scale: a chain of halvings, its rest by slopes; the best of all."""
    curvature = unit.law.curvature
    if curvature is None:
        return 1.0
    best, total = curvature.bound_excess(width), 0.0
    if curvature.bound_excess(width / 2**MOST_HALVINGS) >= 1:
        return 1.0  # a pole: no rest of a chain is less than that
    for _ in range(MOST_HALVINGS):
        total += _measure_excess(unit, width, 0.5)
        width /= 2
        rest = curvature.bound_excess(width)
        if total + rest >= best:
            break
        best = total + rest
        if rest < 0.02 * total:
            break
    return min(1.0, best)


def bound_excess(noise: IID, width: float) -> float:
    """χ(width), from above, at most 1 (docs/theory.md#theorem-j, "All shifts")."""
    return _bound_unit_excess(noise.unit, width / noise.scale)


def _bound_by_eighths(unit: IID, width: float) -> float:
    """χ(width) by eighths, in units of the noise's scale."""
    eighths = range(1, 5 if unit.facts.symmetric else 8)
    return max(_measure_excess(unit, width, m / 8) for m in eighths) + bound_excess(unit, width / 8)


def bound_bends(noise: IID, shifts: Array) -> tuple[Array, Array]:
    """bend(u) and ψ(u) − ψ(0), both from above, for even log-concave noise; it grows with u.

    docs/theory.md#theorem-j, "Even log-concave noise".

    ψ is convex: its slope at x is at most that of any chord to the right of x.
    """
    step = shifts[:, None] / BEND_POINTS
    z = step * np.arange(BEND_POINTS + 2)
    psi = -noise.logpdf(z)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        rounding = 4 * EPS * (np.abs(psi[:, 1:]) + np.abs(psi[:, :-1]) + 2.0)
        slope = np.maximum(np.diff(psi, axis=1) + rounding, 0.0) / step
        inverse = 1.0 / slope[:, 1:] + 1.0 / slope[:, :0:-1]
        bend = np.max(np.exp(-psi[:, :BEND_POINTS]) / inverse, axis=1) * (1 + BEND_ROUNDING)
        reach = psi[:, BEND_POINTS] - psi[:, 0] + REACH_ROUNDING
    return np.where(np.isnan(bend), np.inf, bend), np.where(np.isnan(reach), np.inf, reach)


def knows_bends(noise: IID) -> bool:
    """Whether `bound_bends` serves every shift, so that χ is not needed."""
    facts, (low, high) = noise.facts, noise.support
    return facts.symmetric and facts.log_concave and math.isinf(low) and math.isinf(high)


@lru_cache(maxsize=64)
def _find_kinks(unit: IID) -> Array | None:
    """The shifts between which H_γ(T_u) is straight, rising from 0; None if it need not be so.

    Where p is constant between its jumps c_i, the c_i and the c_i + u follow each other in one
    order until u is a difference of two of them. Between two neighbours p(z − u) − γp(z) does not
    change, and their distances are straight in u (docs/theory.md#theorem-j, "All shifts").
    """
    curvature, jumps = unit.law.curvature, unit.law.jumps
    if curvature is None or not curvature.flat or jumps.size > MOST_JUMPS:
        return None
    return np.unique(np.abs(np.subtract.outer(jumps, jumps)))


def list_kinks(unit: IID, low: float, high: float, most: int) -> Array | None:
    """The kinks between two shifts, without those that rounding alone took apart; None if p is not
    constant between its jumps, or if they are more than `most`.
    """
    kinks = _find_kinks(unit)
    if kinks is None:
        return None
    apart = np.append(True, np.diff(kinks) > SAME_KINK * kinks[1:])
    inside = kinks[apart & (kinks > low) & (kinks < high * (1 - SAME_KINK))]
    return inside if inside.size <= most else None


def find_falling_reach(unit: IID) -> float:
    """Up to which |u| T_u surely falls as |u| grows, on either side of 0.

    Everywhere for unimodal noise (docs/theory.md#theorem-c); for a density of steps before its
    first kink, where H_γ(T_u) is straight, and nowhere less than at u = 0; 0 if nobody knows.
    """
    if unit.facts.unimodal:
        return math.inf
    kinks = _find_kinks(unit)
    return 0.0 if kinks is None else float(np.min(kinks[kinks > 0])) * (1 - SAME_KINK)


def _bound_straight_gaps(unit: IID, shifts: Array) -> Array:
    """How far f may lie above its chord where no kink is inside a cell, inf where one is."""
    kinks, curvature = _find_kinks(unit), unit.law.curvature
    excess = np.full(len(shifts) - 1, np.inf)
    if kinks is None or curvature is None:
        return excess
    # a kink that rounding put inside: f is no steeper than the density varies
    unsure = KINK_UNITS * EPS * float(np.max(np.abs(unit.law.jumps)))
    first = np.searchsorted(kinks, shifts[:-1] + unsure, side="right")
    last = np.searchsorted(kinks, shifts[1:] - unsure, side="left")
    excess[first >= last] = 4 * unsure * curvature.variation + EXCESS_ROUNDING
    return excess


def bound_gaps(noise: IID, shifts: Array, *, close: bool = False) -> tuple[Array, Array]:
    """How far f may lie above its chord in each cell of rising shifts, and up to which |log γ|.

    `close` takes more time for less where nothing better than χ is known.
    """
    widths = np.diff(shifts)
    excess, reach = np.full(len(widths), np.inf), np.full(len(widths), np.inf)
    if noise.facts.symmetric and noise.facts.log_concave:
        bend, reach = bound_bends(noise, shifts[1:])
        excess = bend * widths**2 / 8
    straight = _bound_straight_gaps(noise.unit, shifts / noise.scale)
    reach = np.where(straight < excess, np.inf, reach)
    excess = np.minimum(straight, excess)
    for i in np.flatnonzero(~np.isfinite(excess)):
        if knows_bends(noise):
            break  # a bend that overflows counts as 1, the most that a probability can exceed
        width = float(widths[i])
        excess[i] = min(
            bound_excess(noise, width),
            _bound_by_eighths(noise.unit, width / noise.scale) if close else 1,
        )
        reach[i] = np.inf
    return np.minimum(excess, 1.0), reach
