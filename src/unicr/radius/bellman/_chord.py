"""How far the probability of any event can lie above its chord while the noise is shifted.

For every event, or weight 0 ≤ a ≤ 1, and 0 ≤ λ ≤ 1 the function f(u) = ∫ p(z − u) a(z) dz satisfies
f(λΔ) ≤ (1 − λ) f(0) + λ f(Δ) + χ(Δ). At the midpoint the excess is at most
γ(Δ) = ∫ (p(z) − ½p(z − Δ/2) − ½p(z + Δ/2))₊ dz; halving again and again,
χ(Δ) ≤ γ(Δ) + γ(Δ/2) + γ(Δ/4) + …. A supremum over events keeps the inequality. Closer: χ(Δ) is at
most χ(Δ/8) and the largest excess at an eighth, two eighths, …, each the integral of the positive
part of p there minus the chord.

Even log-concave noise, p = e^(−ψ), knows better: f(u) = H_γ(T_u) has p(t − u) = γp(t) at its
threshold t, f′ = p(t − u), and f″ = p(t − u)ab/(a − b) with a = ψ′(t), b = ψ′(t − u).
That is negative only where t − u < 0 < t, so for |log γ| ≤ ψ(u) − ψ(0), and at least −bend(u),
bend(u) = max over 0 ≤ v ≤ u of p(v)·ψ′(v)ψ′(u − v)/(ψ′(v) + ψ′(u − v)). Averages over other
coordinates keep it: the excess over a chord is at most bend·Δ²/8, and nothing beyond that |log γ|.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special

from unicr.noise import IID
from unicr.values import Array

EVEN_POINTS = 2500  # points of equal probability, and in Φ⁻¹ of it for the tails
SMALLEST_WIDTH = 1e-6  # width of the table, of the noise's scale; below it DECAY continues χ
PER_OCTAVE = 6  # widths of the table; between two, χ is read at the wider and raised by their ratio
OCTAVES = 24  # up to 17 scales, farther than any step of a flow
# of χ: halved cells tell what cells in which the difference changes sign are worth, to first order;
# 2 % more pays for the rest, which falls fourfold with each halving
EXCESS_FACTOR = 1.02
DECAY = (0.75, 0.97)  # from one halving to the next, beyond the table: no less, no more is believed
TAIL = 1e-10  # probability at either end that is not cut into cells, and charged four times
# Cell edges around a corner of the density, in widths: evenly near it, then geometrically outwards.
CORNER_OFFSETS = np.concatenate(
    [np.linspace(-2, 2, 161), np.geomspace(2, 1e3, 60), -np.geomspace(2, 1e3, 60)]
)
BEND_POINTS = 48  # places of v in 0 … u between which ψ′ is bounded by chords of the convex ψ
EPS = float(np.finfo(np.float64).eps)  # twice the largest relative error of one rounding
BEND_ROUNDING = 1e-9  # of a bend: p, two slopes and two quotients are right to 1e-12, |ψ| ≤ 1e3
REACH_ROUNDING = 1e-12  # of ψ(u) − ψ(0): values of some hundred, right to some units


@lru_cache(maxsize=64)
def _cut_line(unit: IID) -> tuple[Array, Array]:
    """The line cut where probability is, and the corners of the density."""
    even = np.linspace(0, 1, EVEN_POINTS + 1)[1:-1]
    deep = special.ndtr(np.linspace(special.ndtri(TAIL), 0, EVEN_POINTS // 5))
    mesh = np.concatenate([unit.ppf(even), unit.ppf(deep), unit.isf(deep), unit.mesh])
    corners = [b for b in (*unit.breakpoints, *unit.support) if math.isfinite(b)]
    return mesh, np.asarray(corners)


def _measure_excess(unit: IID, width: float, share: float) -> float:
    """How far any event may lie above its chord at a share of the way, from above.

    Cells are as fine as the width around every corner of the density, wherever it is moved to. A
    cell in which the difference changes sign says too little; what that is worth is seen when all
    of them are halved, and as much is added once more.
    """
    mesh, corners = _cut_line(unit)
    near = np.add.outer(corners, width * CORNER_OFFSETS).ravel()
    back, on = share * width, (1 - share) * width
    edges = np.unique(np.concatenate([mesh, near, mesh - back, mesh + on]))
    z = np.empty(2 * len(edges) - 1)
    z[::2], z[1::2] = edges, 0.5 * (edges[1:] + edges[:-1])
    middle = np.diff(unit.cdf(z))
    ends = (1 - share) * np.diff(unit.cdf(z + back)) + share * np.diff(unit.cdf(z - on))
    apart = middle - ends
    halves, cells = np.sum(np.abs(apart)), np.sum(np.abs(apart[::2] + apart[1::2]))
    return EXCESS_FACTOR * (0.5 * float(2 * halves - cells) + 4 * TAIL)


@lru_cache(maxsize=64)
def _tabulate_excess(unit: IID) -> tuple[Array, Array]:
    """χ at Δ = SMALLEST·2^(i/PER_OCTAVE), in units of the noise's scale."""
    widths = SMALLEST_WIDTH * 2.0 ** (np.arange(PER_OCTAVE * OCTAVES) / PER_OCTAVE)
    excess = np.array([_measure_excess(unit, float(width), 0.5) for width in widths])
    first, second = excess[:PER_OCTAVE], excess[PER_OCTAVE : 2 * PER_OCTAVE]
    decay = min(max(float(np.max(first / second)), DECAY[0]), DECAY[1])
    rest = float(np.max(first)) * decay / (1 - decay)  # a comb hides from one width, not from all
    total = np.array([np.sum(excess[i::-PER_OCTAVE]) + rest for i in range(len(widths))])
    return widths, np.maximum.accumulate(total) * 2 ** (1 / PER_OCTAVE)  # γ between two widths


def bound_excess(noise: IID, width: float) -> float:
    """χ(width), from above to the accuracy of the table; at most 1 whatever the width.

    docs/theory.md#theorem-j, "All shifts"; the integral is checked on a grid, not enclosed.
    """
    widths, total = _tabulate_excess(noise.unit)
    i = int(np.searchsorted(widths, width / noise.scale))
    return 1.0 if i >= len(widths) else min(1.0, float(total[i]))


@lru_cache(maxsize=1024)
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
    """Whether `bends` serves every shift, so that χ, an integral over a grid, is not needed."""
    facts, (low, high) = noise.facts, noise.support
    return facts.symmetric and facts.log_concave and math.isinf(low) and math.isinf(high)


def bound_gaps(noise: IID, shifts: Array, *, close: bool = False) -> tuple[Array, Array]:
    """For each cell of rising shifts: how far f may lie above its chord, for |log γ| up to what.

    `close` takes more time for less where nothing better than χ is known.
    """
    widths = np.diff(shifts)
    excess, reach = np.full(len(widths), np.inf), np.full(len(widths), np.inf)
    if noise.facts.symmetric and noise.facts.log_concave:
        bend, reach = bound_bends(noise, shifts[1:])
        excess = bend * widths**2 / 8
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
