"""The law of the log-likelihood ratio of one shifted coordinate, as cells and as atoms.

P is the law of ε, Q that of ε + u, L(z) = log p(z − u) − log p(z). The line is cut into cells;
each keeps its P- and Q-mass and the range that L takes there. Putting the two masses on the two
ends of the range is a mean-preserving spread of the likelihood ratio, so that the atoms are easier
to tell apart than P and Q are: every trade-off computed from them is a LOWER bound (Blackwell).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from unicr.noise import IID
from unicr.tradeoff._base import Bound
from unicr.values import Array

EPS = float(np.finfo(np.float64).eps)  # twice the largest relative error of one rounding
# Charges for floating point, all to the safe side (docs/theory.md#rounding-charges).
RANGE_UNITS = 4  # of EPS, of the terms of L in a cell: two log-densities of some operations each
MASS_UNITS = 64  # of EPS, of a tail: incomplete gamma functions are right to 40 (test_oracle.py)
# Onto what masses and range of a cell may contradict each other by, beside the masses' rounding:
# log-densities whose terms are some thousand at most. A larger contradiction hides something.
LOG_ROUNDING = 1e-11
TAIL = 1e-26  # what lies beyond this quantile of P and of Q counts as L = ∞
UNSURE_MASS = 1e-17  # a smaller mass is known to its order of magnitude only: L decides
ROUNDING_VARIANCE = 1e-27  # variance that rounding of L adds: not worth cutting for
# Of EPS of |place| + 2|shift|, how far on either side of a jump of a table nothing is asked: places
# are right to some units, and ends of cells are looked at 8 units from inside (`law/_pieces.py`).
JUMP_UNITS = 12

# Widths from zero at which a law lies so far away that rounded places show in its masses: nearer,
# what they misplace is below what a composition charges for each coordinate.
FAR = 100.0

# How cells are cut; coarser ones cost radius, not truth.
PROBITS = 97  # quantiles to start from, evenly in Φ⁻¹: cells are cut where it matters
NEGLIGIBLE_MASS = 1e-17  # a cell of less mass is not worth splitting
ROUNDS = 60  # of cutting: what is still too coarse then costs radius, not truth
MOST_CELLS = 200_000  # beyond them nothing is cut any more
# Shares of a cell at which L is looked at where it may turn (facts checked on a grid): both ends,
# from inside, for a density may jump there, and three points whose curvature is the margin.
INSIDE = np.array([1e-9, 0.25, 0.5, 0.75, 1 - 1e-9])
BETWEEN_SHARE = 1e-8  # of the range in a cell: what lies between its ends and the outermost of them
# Edges of a cell in which L is infinite at an end, as shares of its half: finer by 4 towards it.
TOWARDS_ZERO = np.concatenate([[0.0], 2.0 ** -np.arange(20.0, 0.0, -2.0), [1.0]])

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RatioLaw:
    """Atoms of L under Q, sorted by `loss`; `infinite` is the Q-mass where P has none.

    `charge` is by how much its hockey-sticks may lie below those it stands for (`make_envelope`).
    The P-mass of an atom is mass·exp(−loss); what is missing from 1 there is P-mass at L = −∞.
    """

    loss: Array
    mass: Array
    infinite: float
    bound: Bound = "lower"
    charge: float = 0.0

    @property
    def variance(self) -> float:
        """Second moment of L around zero under Q, the finite part."""
        return float(np.sum(self.mass * self.loss**2))


@dataclass(frozen=True, eq=False)
class RatioCells:
    """Pieces of the line with P-mass `p`, Q-mass `q` and L between `low` and `high`, all finite.

    exp(low) ≤ q/p ≤ exp(high) in every cell, so that both masses fit on its two ends; `infinite`
    is Q-mass with L = ∞. What is missing from 1 in `p` is P-mass with L = −∞. The masses of all
    cells together are right to about 2e-15, as distribution functions are.

    See docs/theory.md#lemma-4.
    """

    low: Array
    high: Array
    p: Array
    q: Array
    infinite: float

    def law(self) -> RatioLaw:
        """Each cell's masses on the ends of its range: a lower bound (docs/theory.md#lemma-4)."""
        low, high, q = self.low, self.high, self.q
        # Q-mass a at low, b at high: a + b = q and a·e^−low + b·e^−high = p
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            share = (self.p * np.exp(low) - q * np.exp(low - high)) / -np.expm1(low - high)
        at_low = np.where(high > low, np.clip(share, 0.0, q), q)
        return _sort_atoms(
            np.concatenate([low, high]), np.concatenate([at_low, q - at_low]), self.infinite
        )


def _sort_atoms(loss: Array, mass: Array, infinite: float, bound: Bound = "lower") -> RatioLaw:
    used = mass > 0
    order = np.argsort(loss[used], kind="stable")
    return RatioLaw(loss[used][order], mass[used][order], infinite, bound)


def _measure_masses(noise: IID, z: Array) -> tuple[Array, Array]:
    """P-mass between consecutive points of an ascending array, and a bound of its rounding.

    See docs/theory.md#lemma-4.
    """
    tail = np.empty_like(z)
    if (mass := noise.law.masses(z[:-1], z[1:])) is not None:
        return mass, MASS_UNITS * EPS * mass
    below = z < _find_median(noise)
    tail[below], tail[~below] = noise.cdf(z[below]), noise.sf(z[~below])
    a, b = tail[:-1], tail[1:]
    mass = np.where(below[1:], b - a, np.where(below[:-1], 1.0 - a - b, a - b))
    return np.maximum(mass, 0.0), MASS_UNITS * EPS * np.maximum(a, b)


@lru_cache(maxsize=64)
def _find_median(noise: IID) -> float:
    return float(noise.ppf(0.5))


@lru_cache(maxsize=64)
def _make_mesh(noise: IID) -> Array:
    """Quantiles from tail to tail."""
    deepest = float(special.ndtri(TAIL))
    probits = np.linspace(deepest, -deepest, PROBITS)
    lower = noise.ppf(special.ndtr(probits[: PROBITS // 2 + 1]))
    upper = noise.isf(special.ndtr(-probits[PROBITS // 2 + 1 :]))
    z = np.unique(np.concatenate([lower, upper]))
    return z[np.isfinite(z)]


def _place_edges(noise: IID, shift: float, turns: tuple[float, ...] | None) -> tuple[Array, Flags]:
    """The meshes of P and Q, those points of Q's that are not close to one of P's, and the corners
    of both; and which pairs of neighbours hold no jump of a table.
    """
    mesh = _make_mesh(noise)
    moved = mesh + shift
    after = np.clip(np.searchsorted(mesh, moved), 1, mesh.size - 1)
    place = (moved - mesh[after - 1]) / (mesh[after] - mesh[after - 1])
    moved = moved[(np.abs(place - 0.5) < 0.4) | (np.abs(place - 0.5) > 0.5)]
    corners = np.asarray([*noise.breakpoints, *noise.support], dtype=np.float64)
    fixed = np.concatenate([corners, corners + shift, np.asarray(turns or ())])
    points = np.unique(np.concatenate([mesh, moved, fixed[np.isfinite(fixed)]]))
    apart = np.diff(points) > 4 * EPS * np.abs(points[1:])
    return _seal_jumps(noise, shift, points[np.concatenate([[True], apart])])


def _seal_jumps(noise: IID, shift: float, points: Array) -> tuple[Array, Flags]:
    """Edges, with a narrow cell around every jump of a table and of its copy, and which cells are
    none of these (docs/theory.md#tables).
    """
    jumps = noise.law.jumps
    if not jumps.size:
        return points, np.ones(points.size - 1, dtype=bool)
    reach = np.tile(JUMP_UNITS * EPS * (np.abs(jumps) + 2 * abs(shift)), 2)
    places = np.concatenate([jumps, jumps + shift])
    order = np.argsort(places - reach)
    low, high = (places - reach)[order], np.maximum.accumulate((places + reach)[order])
    first = np.append(True, low[1:] > high[:-1])
    low, high = low[first], high[np.append(first[1:], True)]
    within = np.searchsorted(low, points, side="right") - 1
    outside = (within < 0) | (points > high[np.maximum(within, 0)])
    edges = np.union1d(points[outside], np.concatenate([low, high]))
    return edges, ~np.isin(edges[:-1], low)


@dataclass
class _Cells:
    """Cells in the making: edges, masses, range of L, and whether masses and range disagree."""

    left: Array
    right: Array
    p: Array
    q: Array
    low: Array
    high: Array
    contradicted: Flags

    def select(self, index: Flags) -> _Cells:
        return _Cells(**{k: v[index] for k, v in self.__dict__.items()})

    @staticmethod
    def join(first: _Cells, second: _Cells) -> _Cells:
        return _Cells(
            **{k: np.concatenate([v, second.__dict__[k]]) for k, v in first.__dict__.items()}
        )


def _measure_cells(noise: IID, shift: float, edges: Array, real: Flags, monotone: bool) -> _Cells:
    """The cells between consecutive `edges`, those that are `real`."""
    q, q_error = _measure_masses(noise, edges - shift)
    p, p_error = _measure_masses(noise, edges)
    low, high = _bound_ranges(noise, shift, edges, monotone)
    # a moved edge is rounded, which a cell as narrow as that shows in its mass
    misplaced = EPS * (np.abs(edges) + abs(shift))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        q_error = q_error + q * (misplaced[:-1] + misplaced[1:]) / np.diff(edges)
        ratio = np.log(q) - np.log(p)
        allowed = LOG_ROUNDING + q_error / q + p_error / p
        # beyond what a mass is known to, L decides; elsewhere a contradiction hides something
        vague = (np.minimum(p, q) > 0) & (np.minimum(p, q) < UNSURE_MASS)
        contradicted = ~vague & ((ratio < low - allowed) | (ratio > high + allowed))
        ratio = np.where(vague, np.clip(ratio, low, high), ratio)
        p, q = (
            np.where(vague & (p < q), q * np.exp(-ratio), p),
            np.where(vague & (q <= p), p * np.exp(ratio), q),
        )
    real = real & ((p > 0) | (q > 0))
    return _Cells(edges[:-1], edges[1:], p, q, low, high, contradicted).select(real)


def _bound_ranges(noise: IID, shift: float, edges: Array, monotone: bool) -> tuple[Array, Array]:
    """Lowest and highest L between consecutive edges, rounded outwards (docs/theory.md#lemma-4).

    From the two ends where L is monotone, or as the law itself bounds it; else from five points,
    with their curvature as a margin.
    """
    left, right = edges[:-1], edges[1:]
    if (bounds := noise.law.bound_ratio(shift, left, right)) is not None:
        return bounds
    with np.errstate(invalid="ignore"):
        after, before = noise.logpdf(edges - shift), noise.logpdf(edges)
        value = after - before
        size = np.abs(after) + np.abs(before) + 2.0
    a, b = value[:-1], value[1:]
    # an undefined end says nothing: L may be anything there
    low = np.where(np.isnan(a) | np.isnan(b), -np.inf, np.minimum(a, b))
    high = np.where(np.isnan(a) | np.isnan(b), np.inf, np.maximum(a, b))
    with np.errstate(invalid="ignore", divide="ignore"):
        steep = np.abs(np.diff(after)) + np.abs(np.diff(before))
        steep *= np.maximum(np.abs(left), np.abs(right)) / (right - left)
        margin = RANGE_UNITS * EPS * (np.maximum(size[:-1], size[1:]) + steep)
    if not monotone:
        inner = left[:, None] + (right - left)[:, None] * INSIDE
        with np.errstate(invalid="ignore"):
            inside = noise.logpdf(inner - shift) - noise.logpdf(inner)
            bend = np.max(np.abs(np.diff(inside, n=2, axis=1)), axis=1)
            least, most = np.min(inside, axis=1), np.max(inside, axis=1)
            margin = margin + bend + BETWEEN_SHARE * (most - least)
        unknown = np.isnan(least)
        low = np.where(unknown, -np.inf, np.where(np.isneginf(low), low, least))
        high = np.where(unknown, np.inf, np.where(np.isposinf(high), high, most))
    margin = np.where(np.isfinite(margin), margin, 0.0)
    return low - margin, high + margin


def _make_finite(cells: _Cells) -> tuple[_Cells, float]:
    """Cells of finite range, and the Q-mass that had to be moved to L = ∞.

    A cell that reaches L = ∞ keeps at its lower end as much Q-mass as its P-mass can carry; one
    that reaches −∞ keeps at its upper end as much P-mass as its Q-mass needs. A contradicted cell
    keeps nothing.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(cells.q) - np.log(cells.p)
    # within their rounding the masses may still leave the range: then it must hold them
    cells = replace(cells, low=np.fmin(cells.low, ratio), high=np.fmax(cells.high, ratio))
    lost = cells.contradicted | (cells.p <= 0) | np.isposinf(cells.low) | np.isneginf(cells.high)
    lost |= np.isneginf(cells.low) & np.isposinf(cells.high)
    infinite = math.fsum(cells.q[lost])
    cells = cells.select(~lost & (cells.q > 0))
    with np.errstate(over="ignore", under="ignore"):
        up, down = np.isposinf(cells.high), np.isneginf(cells.low)
        kept = np.minimum(cells.q, np.where(up, cells.p * np.exp(cells.low), cells.q))
        infinite += math.fsum(cells.q - kept)
        p = np.where(down, np.minimum(cells.p, kept * np.exp(-cells.high)), cells.p)
    low = np.where(down, cells.high, cells.low)
    high = np.where(up, cells.low, cells.high)
    cells = _Cells(cells.left, cells.right, p, kept, low, high, cells.contradicted)
    return cells.select((p > 0) & (kept > 0)), infinite


def _count_parts(cells: _Cells, spread: float) -> NDArray[np.int64]:
    """Into how many parts to cut each cell; 1 leaves it alone, −1 cuts finely towards both ends.

    Parts are spent where they lower the added variance most: n ∝ cost^(1/3) minimises Σn for a
    given Σ cost/n². A contradicted cell is cut whatever its cost, and one where L is infinite.
    """
    mass = 0.5 * (cells.p + cells.q)
    both = (cells.p > 0) & (cells.q > 0)
    endless = ~(np.isfinite(cells.low) & np.isfinite(cells.high))
    calm = both & ~endless & ~cells.contradicted
    low, high = np.where(calm, cells.low, 0.0), np.where(calm, cells.high, 0.0)
    middle = 0.5 * (low + high)
    means = np.array([cells.p @ middle, cells.q @ middle])
    variance = max(float(mass @ middle**2 - 0.5 * means @ means), 0.0)
    cost = mass * (high - low) ** 2 / 6
    budget = spread * variance + ROUNDING_VARIANCE
    parts = np.ones(mass.size, dtype=np.int64)
    if float(np.sum(cost)) > budget:
        third = np.cbrt(cost)
        wanted = third * math.sqrt(float(np.sum(third)) / (0.9 * budget))
        parts = np.clip(np.ceil(wanted), 1, 16).astype(np.int64)
    heavy = both & (mass > NEGLIGIBLE_MASS)
    parts[heavy & cells.contradicted] = 8
    parts[heavy & endless] = -1
    parts[np.isposinf(cells.low) | np.isneginf(cells.high)] = 1
    room = cells.right - cells.left > 64 * EPS * np.maximum(abs(cells.left), abs(cells.right))
    return np.where(room, parts, 1)


def _cut_cells(cells: _Cells, parts: NDArray[np.int64]) -> tuple[Array, Flags]:
    """Edges of the parts, cell after cell, and which pairs of neighbours are parts."""
    even = parts > 0
    first, length, n = cells.left[even], (cells.right - cells.left)[even], parts[even]
    owner = np.repeat(np.arange(n.size), n + 1)
    k = np.arange(owner.size) - np.repeat(np.cumsum(n + 1) - n - 1, n + 1)
    edges = np.where(
        k == n[owner], cells.right[even][owner], first[owner] + (length / n)[owner] * k
    )
    left, right = cells.left[~even, None], cells.right[~even, None]
    near = left + (0.5 * (right - left)) * TOWARDS_ZERO
    far = right - (0.5 * (right - left)) * TOWARDS_ZERO[-2::-1]
    graded = np.concatenate([near, far], axis=1)
    owners = np.repeat(n.size + np.arange(left.size), graded.shape[1])
    owner = np.concatenate([owner, owners])
    edges = np.concatenate([edges, graded.ravel()])
    return edges, (owner[1:] == owner[:-1]) & (np.diff(edges) > 0)


@lru_cache(maxsize=64)
def _refine(noise: IID, shift: float, spread: float) -> tuple[_Cells, float]:
    """Cells fine enough for `spread`, and the Q-mass outside them."""
    turns = noise.ratio_turns(shift)
    monotone = turns is not None
    edges, open_ = _place_edges(noise, shift, turns)
    outside = float(noise.cdf(edges[0] - shift)) + float(noise.sf(edges[-1] - shift))
    if not open_.all():  # beside jumps Q counts as infinite, and P as lost
        q, q_error = _measure_masses(noise, edges - shift)
        outside += math.fsum((q + q_error)[~open_])
    cells = _measure_cells(noise, shift, edges, open_, monotone)
    for _ in range(ROUNDS):
        parts = _count_parts(cells, spread)
        chosen = parts != 1
        if not chosen.any() or cells.left.size > MOST_CELLS:
            break
        new = _measure_cells(
            noise, shift, *_cut_cells(cells.select(chosen), parts[chosen]), monotone
        )
        cells = _Cells.join(cells.select(~chosen), new)
    return cells, outside


def _lose_misplaced(noise: IID, shift: float, cells: _Cells) -> tuple[_Cells, float]:
    """The cells without the Q-mass that may belong to a neighbour, and that mass.

    An edge moved by the shift is rounded. For laws that do not lie far from zero it is none.

    See docs/theory.md#rounding-charges.
    """
    low, high = (float(noise.ppf(u)) for u in (0.16, 0.84))
    if max(abs(low), abs(high)) <= FAR * (high - low):
        return cells, 0.0
    off = EPS * (np.abs(cells.left) + np.abs(cells.right) + 2 * abs(shift))
    lost = cells.q * np.minimum(off / (cells.right - cells.left), 1.0)
    return replace(cells, q=cells.q - lost), math.fsum(lost)


def knows_ranges(noise: IID) -> bool:
    """Whether ranges of L in cells are proved: not looked at in some points of each cell.

    See docs/theory.md#lemma-4.
    """
    look = np.array([0.25])
    bounds = noise.law.bound_ratio(1.0, look, 2 * look)
    return bounds is not None or noise.ratio_turns(1.0) is not None


@lru_cache(maxsize=512)
def make_ratio_cells(noise: IID, shift: float, spread: float = 2e-5) -> RatioCells:
    """The law of L for ε against ε + shift, a shift of either sign, in cells.

    They are so fine that spreading each to the ends of its range adds at most `spread` times the
    variance of L. Ranges hold what L takes: from the ends of a cell where L is monotone
    (log-concave noise, noise that knows where L turns), as a table's own numbers bound it,
    otherwise from five points and their curvature. A cell whose masses contradict its range is
    split, and counts as L = ∞ if it stays so: what goes unseen costs radius.

    See docs/theory.md#lemma-4.
    """
    if shift == 0:
        return RatioCells(np.zeros(1), np.zeros(1), np.ones(1), np.ones(1), 0.0)
    cells, outside = _refine(noise, shift, spread)
    cells, misplaced = _lose_misplaced(noise, shift, cells)
    outside += misplaced
    cells, infinite = _make_finite(cells)
    return RatioCells(cells.low, cells.high, cells.p, cells.q, min(1.0, infinite + outside))


@lru_cache(maxsize=4096)
def make_ratio_law(
    noise: IID, shift: float, spread: float = 2e-5, bound: Literal["lower", "upper"] = "lower"
) -> RatioLaw:
    """Return atoms of the log-ratio L for ε against ε + shift: a bound of the trade-off function.

    docs/theory.md#lemma-4 has the proof for both directions; `make_ratio_cells` says on what a
    lower bound rests. An upper bound puts each cell on one atom: forgetting where in it a point
    lies can only hide the shift.

    Parameters
    ----------
    noise
        The law of one coordinate.
    shift
        By how much the coordinate moves.
    spread
        The variance that the atoms may add, relative to that of L: a radius loses about half of
        it.
    bound
        "lower" for a lower bound of the trade-off function, "upper" for an upper one.

    Returns
    -------
    RatioLaw
        The atoms with their masses.
    """
    if bound == "lower" or shift == 0:
        return replace(make_ratio_cells(noise, shift, spread).law(), bound=bound)
    cells, outside = _refine(noise, shift, spread)
    shared = (cells.p > 0) & (cells.q > 0)
    infinite = math.fsum(cells.q[~shared]) + outside
    p, q = cells.p[shared], cells.q[shared]
    return _sort_atoms(np.log(q) - np.log(p), q, infinite, bound)
