"""One scale of the Bellman bound: proved flows for a grid of largest coordinates, and their use.

Let u₁ be the largest |δ_i|. For a grid a_0 = 0 < a_1 < … of its values a flow starts above T_{a_i}
and allows steps up to a_{i+1}, so that H_γ(T_{a_i} ⊗ rest) ≤ Φ_i(E) + Ξ_i(E), E the rest's cost.
Between two of them the chord holds up to χ (`_chord.py`): with u₁ = (1 − λ)a_i + λa_{i+1},

    H_γ(T_δ) ≤ (1 − λ)Φ_i(E) + λΦ_{i+1}(E) + χ(a_{i+1} − a_i),    E = r^p − u₁^p + κ(d − 1),

and for unimodal noise Φ_{i+1}(E) by itself, since T_u falls with |u|. Below a_1 it is Φ_0 alone.
The cost of a coordinate is u^p + κ: κ lets the dimension d be used.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import signal, special

from unicr.noise import IID
from unicr.radius.bellman._chord import bound_gaps, list_kinks
from unicr.radius.bellman._construct import Generators, construct, place_budgets
from unicr.radius.bellman._kernel import Kernels, make_both_laws
from unicr.radius.bellman._mesh import Mesh
from unicr.radius.bellman._verify import compute_surcharge
from unicr.tradeoff import RatioLaw
from unicr.values import Array

# Charges for floating point (docs/theory.md#rounding-charges).
# Φ at a mesh point: a convolution by FFT with values of at most 1, and about ten roundings when it
# is read. Against long double it is off by 7e-16 (tests/radius/test_rounding.py); charged is 1e-14.
SMOOTHING_CHARGE = 1e-14
# H of the first coordinate: its masses are right to 1.2e-14 as those of a kernel, the place of an
# atom L to two units of |L|, whose mean is below 40 on the mesh; H moves by no more than its atoms.
START_CHARGE = 3e-14
# Of a budget r^p − u₁^p + κ(d − 1): its terms are right to some units of r^p, and it is at least
# κ(d − 1) ≥ r^p/2000.
BUDGET_CHARGE = 1e-11
LIMIT_SHARE = 1e-9  # by which flows reach farther than any budget, so that charges stay inside

# All numbers below decide how much is proved and how long that takes, not whether it is true.
SMOOTH_SHARE = 0.03  # the width s of G_s, in units of the Gaussian shift that p_A stands for
BLUR_SHARE = 0.04  # the same inside Ψ_0
PER_SMOOTH = 2.5  # mesh points in the width s: h = 0.4 s, for which stencils are found
RATIO = 0.1  # log of the ratio of neighbouring shifts
LARGE_SHIFT = 0.12  # of r: above it shifts are FINER
FINER = 2.0  # times as many shifts
FINE_COST = 1e-2  # of r^p: below it, for p < 1, they are coarser
DUST = 1e-3  # share of the budget that coordinates too small to matter may claim
UNEVEN_SHARE = 0.07  # how much smaller the smallest shift is where K need not grow with u
BUDGETS = 34  # budgets of a flow
FIRST_COORDINATES = (0.16, 0.3, 0.45, 0.62, 0.8, 1.0)  # of r: largest coordinates to begin with
LOW_DIMENSION = 300  # dimensions in which they count whatever p, and in which several κ are tried
NARROWEST = 0.015  # of r: a cell of u₁ that is not split
FLAT_CHORD = 2e-3  # charge of a chord below which steps allowed in vain are looked at first
CURVE_SPLITS = 2  # times that a cell of a curve is split
LOOSE_CHORD = 0.02  # while its chord is charged more than this, a probability
FINEST_PIECE = 1.5e-3  # of r^p: how finely u₁ is cut when the criterion is read
MOST_KINKS, MOST_LARGE_KINKS = 80, 24  # of H as a function of the shift that are shifts of a grid
NEAR_KINK = 0.02  # other shifts so near to a kink, relative, are left out
WINDOW = 12  # mesh points on either side of the best line in which a better one is sought
COARSE = 25  # radii of a curve at which every cell is asked
BETWEEN = 12  # further radii between two of them, at which only the worst cells are
# Ends of the mesh, in shifts from the middle; what lies beyond is charged. The right end moves out
# to where the hockey-stick of the largest shift has fallen to MESH_END, but not beyond FARTHEST.
LEFT_END, RIGHT_END, FARTHEST = 4.8, 5.0, 30.0
MESH_END = 3e-4  # a probability


@dataclass(frozen=True, eq=False)
class ProvedFlow:
    """Φ at the nodes and the bends between them, for one largest coordinate; Ξ at finer budgets.

    Φ + Ξ is a supersolution (docs/theory.md#theorem-j) for steps up to `following`.
    """

    limit: float
    nodes: Array
    values: Array
    bends: Array
    surcharge: tuple[Array, Array]
    following: float
    effort: int

    def read(self, budgets: Array, columns: slice) -> Array:
        """Φ + Ξ at each budget, from above, at some points; inf beyond what was verified.

        See docs/theory.md#theorem-j.
        """
        t = self.nodes
        i = np.clip(np.searchsorted(t, budgets, side="right") - 1, 0, len(t) - 2)
        tau = ((budgets - t[i]) / (t[i + 1] - t[i]))[:, None]
        low, high = self.values[i, columns], self.values[i + 1, columns]
        inside = (1 - tau) * low + tau * high - tau * (1 - tau) * self.bends[i, columns]
        inside += np.interp(budgets, *self.surcharge)[:, None]
        return np.where(budgets[:, None] <= self.limit, inside, np.inf)


class Grids:
    """Shifts with their costs and kernels, and into how many budgets flows are cut: effort 1 or 2.

    The mesh is the same for both, so that flows of either may stand beside each other. `between`
    says whether a flow must hold for the shifts between two of them as well.
    """

    between = True

    def __init__(self, sheet: Sheet, effort: int) -> None:
        p, dim, r, unit = sheet.p, sheet.dim, sheet.r, sheet.unit
        least = (0.25 * DUST / dim) ** (1 / p) * r * (1.0 if unit.facts.unimodal else UNEVEN_SHARE)
        ratio = RATIO / math.sqrt(effort * max(1.0, p * (p - 1) / 2))
        fine = FINE_COST ** (1 / p) if p < 1 else 0.0
        edges = [least, max(fine * r, least), max(LARGE_SHIFT * r, least), r]
        large = ratio / (FINER * (1 + effort) / 2)
        placed = _place_shifts(edges, [ratio / min(p, 1.0), ratio, large])
        self.shifts = u = _add_kinks(placed, unit, MOST_KINKS)
        self.costs = u**p + sheet.kappa
        self.costs[0] = sheet.kappa  # what is smaller than u_0 counts as u_0
        self.shares = _bound_lags(u, self.costs, p)
        self.kernels = Kernels(unit, u, sheet.mesh, SMOOTH_SHARE * sheet.shift).kernels
        self.generators = Generators(self.kernels, self.costs, sheet.mesh)
        self.count = BUDGETS * (3 + effort) // 4
        self.blurred = BLUR_SHARE * sheet.shift / effort


class Sheet:
    """Everything proved at one scale: radii up to `r` at unit scale of the noise.

    See docs/theory.md#theorem-j.
    """

    def __init__(self, unit: IID, p: float, dim: int, shift: float, r: float, kappa: float) -> None:
        self.unit, self.p, self.dim, self.shift, self.r, self.kappa = unit, p, dim, shift, r, kappa
        s, middle = SMOOTH_SHARE * shift, shift**2 / 2
        high = max(middle + RIGHT_END * shift, min(_find_reach(unit, r), middle + FARTHEST * shift))
        self.mesh = mesh = Mesh(s / PER_SMOOTH, middle - LEFT_END * shift, high)
        alone = (
            p > 2 and dim > LOW_DIMENSION
        )  # one large coordinate says nothing beside many small ones
        first = np.array([1.0] if alone else FIRST_COORDINATES) * r
        self.largest = [0.0, *_add_kinks(first, unit, MOST_LARGE_KINKS).tolist()]
        self.gauss = tabulate_gauss(mesh, s)
        self.grids: dict[int, Grids] = {}
        self.flows = [self._prove_flow(i, 1) for i in range(len(self.largest))]
        self.gaps = self._bound_gaps()
        self.failed = 0

    def _prove_flow(self, i: int, effort: int) -> ProvedFlow:
        if effort not in self.grids:
            self.grids[effort] = self._make_grids(effort)
        mesh, grids = self.mesh, self.grids[effort]
        # Cell i is read between flows i and i + 1: its coordinates are at most the next largest.
        following = self.largest[min(i + 1, len(self.largest) - 1)]
        top = max(1, int(np.searchsorted(grids.shifts, following)))  # the last shift is r itself
        start, never = self._make_start(i, grids.blurred)
        before = self.largest[max(i - 1, 0)]
        limit = self.r**self.p - before**self.p * (i > 1) + self.kappa * (self.dim - (i > 0))
        limit *= 1 + LIMIT_SHARE
        costs, shares = grids.costs[: top + 1], grids.shares[:top]
        last = limit + float(np.max(np.diff(costs)[costs[:-1] <= limit]))
        rate = 2 * mesh.step * float(np.max(grids.generators.rates[: top + 1]))
        # finite parts of pairs may show nothing at all
        rate = max(rate, 1e-3 * grids.blurred**2 / limit)
        share = math.sqrt(limit / (self.r**self.p + self.kappa * self.dim))
        count = max(8, math.ceil(grids.count * share))
        nodes = place_budgets(limit, last, grids.blurred**2 / rate, count, float(costs[-1]))
        # what overflows, beside a pole, is refused by `compute_surcharge`
        with np.errstate(over="ignore", invalid="ignore"):
            flow = construct(grids.generators, start, nodes, top)
        if not np.array_equal(flow.masses[0], start):
            raise ValueError("a flow must begin where it was told to")
        charged = compute_surcharge(
            flow, grids.kernels[: top + 1], costs, shares, mesh, limit, between=grids.between
        )
        # a bend is subtracted, so that its error is taken off, where that of a value is added
        values = self._smooth(flow.masses) + SMOOTHING_CHARGE + never
        bends = self._smooth(flow.bends) - SMOOTHING_CHARGE
        return ProvedFlow(limit, flow.nodes, values, bends, charged, following, effort)

    def _bound_gaps(self) -> Array:
        return bound_gaps(self.unit, np.asarray(self.largest), close=True)[0]

    def _make_grids(self, effort: int) -> Grids:
        return Grids(self, effort)

    def _list_first_laws(self, i: int) -> list[RatioLaw]:
        """For each sign the pair of the largest coordinate that flow i begins with."""
        return make_both_laws(self.unit, self.largest[i])

    def copy(self) -> Sheet:
        """The same sheet, to be split by itself."""
        other = copy.copy(self)
        other.largest, other.flows = list(self.largest), list(self.flows)
        return other

    def tighten(self, i: int) -> int:
        """Prove cell i by something tighter; what it costs, 0 if nothing is left to do.

        The chord of a wide cell is cut; then no flow allows steps that are not left; then flows
        are cut more finely; then narrow cells are cut too.
        """
        if i > 0 and self.gaps[i] > FLAT_CHORD and self.split(i):
            return self.flows[i + 1].effort
        stale = self.flows[i].following > self.largest[i + 1]
        coarse = [j for j in ((i, i + 1) if i > 0 else (0,)) if self.flows[j].effort == 1]
        if not stale and not coarse:
            return 2 * self.split(i)
        again = i if stale else coarse[0]
        effort = self.flows[i].effort if stale else 2
        self.flows[again] = self._prove_flow(again, effort)
        return effort

    def split(self, i: int) -> bool:
        """Put another largest coordinate into cell i, if it is not too narrow.

        The flow below it allows larger steps than are left, and holds.
        """
        low, high = self.largest[i : i + 2]
        if high - low < NARROWEST * self.r:
            return False
        self.largest.insert(i + 1, 0.5 * (low + high) if i > 0 else 0.6 * high)
        self.flows.insert(i + 1, self._prove_flow(i + 1, self.flows[i].effort))
        self.gaps = self._bound_gaps()
        return True

    def _make_start(self, i: int, blurred: float) -> tuple[Array, float]:
        """Masses of Ψ_0 and a constant, above both signs of the first shift's hockey-sticks."""
        mesh = self.mesh
        bell = np.exp(-0.5 * ((mesh.points - blurred**2 / 2) / blurred) ** 2)
        bell /= np.sum(bell)
        if i == 0:
            wanted = np.maximum(0.0, 1.0 - mesh.gamma)
            start, never = bell, 0.0
        else:
            spreads = [mesh.spread_law(law) for law in self._list_first_laws(i)]
            never = max(infinite for _, infinite in spreads)
            wanted = np.max([mesh.sum_values(mass) for mass, _ in spreads], axis=0)
            total = max(float(np.sum(mass)) for mass, _ in spreads)
            mass = np.maximum(mesh.find_masses(wanted, total), 0.0)
            start = np.convolve(mass, bell)[-mesh.first : -mesh.first + mesh.count]
        short = float(np.max(wanted - mesh.sum_values(start)))
        below = 1.0 - never - float(np.sum(start))  # at γ → 0
        return start, never + max(short, below, 0.0) + START_CHARGE + 4 * mesh.rounding

    def _smooth(self, mass: Array) -> Array:
        """G_s ⊗ Ψ at the mesh points, for rows of masses, to `SMOOTHING_CHARGE`."""
        n = self.mesh.count
        full = signal.fftconvolve(mass, self.gauss[None, :], axes=1)
        return full[:, n : 2 * n]

    def holds(self, r: float, p_a: float, p_b: float) -> bool:
        """Whether ‖δ‖_p ≤ r is proved: no margin is below 0 (docs/theory.md#theorem-j).

        The last cell to fail is asked first.
        """
        for i in sorted(range(len(self.largest) - 1), key=lambda i: abs(i - self.failed)):
            if not self.bound_margin(i, r, p_a, p_b) >= 0:
                self.failed = i
                return False
        return True

    def bound_margin(self, i: int, r: float, p_a: float, p_b: float) -> float:
        """From below, T(1 − p_A) + T(p_B) − 1 (binary: 2T(1 − p_A) − 1), for u₁ in cell i.

        Together the cells cover all ‖δ‖_p ≤ r; one that r does not reach says nothing, inf.

        See docs/theory.md#theorem-j.
        """
        if self.largest[i] >= r:
            return math.inf
        binary = p_b >= 1.0 - p_a
        levels = [1.0 - p_a] if binary else [1.0 - p_a, p_b]
        return (2.0 if binary else 1.0) * self._bound_cell(i, r, levels) - 1.0

    def prove_steps(self, low: float) -> tuple[Array, Array]:
        """(α, r) for r from `low` to the scale's own: T_δ(α) ≥ 1/2 for every ‖δ‖_p ≤ r, from below.

        What a cell allows falls as r grows. So between two radii of a coarse grid only those cells
        are asked again that allow less at the second than all of them do at the first.

        See docs/theory.md#theorem-j.
        """
        coarse = np.geomspace(low, self.r, COARSE)

        def bound_alpha(r: float) -> Array:
            met = [a < r for a in self.largest[:-1]]
            return np.array(
                [self._bound_cell(i, r, None) if m else np.inf for i, m in enumerate(met)]
            )

        for r in coarse[[COARSE - 1, COARSE // 2, 0]]:
            for _ in range(CURVE_SPLITS):
                worst = int(np.argmin(bound_alpha(float(r))))
                charged = self.gaps[worst]
                if worst == 0 or not self.split(worst) or charged <= LOOSE_CHORD:
                    break
        allowed = np.array([bound_alpha(float(r)) for r in coarse])
        alpha, radius = [float(np.min(allowed[0]))], [float(coarse[0])]
        for j in range(1, COARSE):
            binding = np.flatnonzero(allowed[j] < np.min(allowed[j - 1]))
            others = float(np.min(np.delete(allowed[j], binding), initial=np.inf))
            for r in np.geomspace(coarse[j - 1], coarse[j], BETWEEN + 2)[1:-1]:
                held = [
                    self._bound_cell(int(i), float(r), None) for i in binding if self.largest[i] < r
                ]
                alpha.append(min([others, *held]))
                radius.append(float(r))
            alpha.append(float(np.min(allowed[j])))
            radius.append(float(coarse[j]))
        return np.maximum(alpha, 0.0), np.asarray(radius)

    def _bound_cell(self, i: int, r: float, levels: list[float] | None) -> float:
        """For u₁ in cell i: Σ T at the levels; without levels the largest α with T(α) ≥ 1/2.

        See docs/theory.md#theorem-j.
        """
        budgets, shares = self._cut_cell(i, r)
        budgets = budgets * (1 + BUDGET_CHARGE)  # Φ + Ξ rises with E: more is safe
        ends = [self.flows[i]] if i == 0 else [self.flows[i], self.flows[i + 1]]
        gamma = self.mesh.gamma

        def bound(rows: slice, columns: slice) -> Array:
            values = [flow.read(budgets[rows], columns) for flow in ends]
            if len(ends) == 1:
                return values[0]
            mixed = [
                (1 - lam[rows, None]) * values[0] + lam[rows, None] * values[1] for lam in shares
            ]
            chord = np.maximum(*mixed) + self.gaps[i]
            return np.minimum(chord, values[1]) if self.unit.facts.unimodal else chord

        # H ≤ `values` at γ gives the line T(α) ≥ 1 − H − γα (docs/theory.md#lemma-1): its height at
        # the level, or the α at which it crosses 1/2.
        def lines(values: Array, columns: slice, level: float | None) -> Array:
            if level is None:
                return (0.5 - values) / gamma[columns]
            return 1.0 - values - gamma[columns] * level

        middle = slice(len(budgets) // 2, len(budgets) // 2 + 1)
        rough = bound(middle, slice(None))
        total = np.zeros(len(budgets))
        for level in levels if levels is not None else [None]:
            # Every line holds; the best one of the middle budget is near the best of all.
            j = int(np.argmax(lines(rough, slice(None), level)[0]))
            window = slice(max(0, j - WINDOW), j + WINDOW + 1)
            total += np.max(lines(bound(slice(None), window), window, level), axis=1)
        lowest = float(np.min(total))
        # Where a number could not be computed, nothing is proved.
        return -math.inf if math.isnan(lowest) else lowest

    def _cut_cell(self, i: int, r: float) -> tuple[Array, tuple[Array, Array]]:
        """Budgets of the rest for u₁ in small pieces of cell i, and λ at both ends of each."""
        p = self.p
        if i == 0:
            nothing = np.zeros(1)
            return np.array([r**p + self.kappa * self.dim]), (nothing, nothing)
        a, b = self.largest[i], self.largest[i + 1]
        top = min(b, r)
        count = max(2, math.ceil((top**p - a**p) / (FINEST_PIECE * r**p)))
        x = np.linspace(a**p, top**p, count + 1) ** (1 / p)
        lam = np.clip((x - a) / (b - a), 0.0, 1.0)
        # The smaller u₁ of a piece leaves the larger budget, and Φ + Ξ rises with it: safe.
        budgets = np.maximum(r**p - x[:-1] ** p, 0.0) + self.kappa * (self.dim - 1)
        return budgets, (lam[:-1], lam[1:])


def tabulate_gauss(mesh: Mesh, smooth: float) -> Array:
    """The hockey-stick of G_s at −count … count mesh steps: Φ(s/2 − ℓ/s) − e^ℓ·Φ(−s/2 − ℓ/s)."""
    offsets = -np.arange(-mesh.count, mesh.count + 1) * mesh.step
    upper = special.ndtr(smooth / 2 + offsets / smooth)
    return np.asarray(upper - np.exp(-offsets) * special.ndtr(-smooth / 2 + offsets / smooth))


def _find_reach(unit: IID, r: float) -> float:
    """Where the hockey-stick of the largest shift has fallen to `MESH_END`."""
    reach = 0.0
    for law in make_both_laws(unit, r):
        far = np.flatnonzero(np.cumsum(law.mass[::-1])[::-1] > MESH_END)
        reach = max(reach, float(law.loss[far[-1]])) if len(far) else reach
    return reach


def _place_shifts(edges: list[float], ratios: list[float]) -> Array:
    """Shifts from edge to edge, with the log of the ratio of neighbours in between."""
    between = [
        np.geomspace(low, high, 1 + math.ceil(math.log(high / low) / ratio))[1:]
        for (low, high), ratio in zip(pairwise(edges), ratios, strict=True)
    ]
    return np.concatenate([edges[:1], *between])


def _add_kinks(shifts: Array, unit: IID, most: int) -> Array:
    """The same shifts with those at which H of a density of steps has kinks, up to the last one, if
    these are no more than `most`: between them no chord loses anything.
    """
    inside = list_kinks(unit, float(shifts[0]), float(shifts[-1]), most)
    if inside is None or not inside.size:
        return shifts
    near = np.min(np.abs(shifts[:, None] - inside), axis=1) > NEAR_KINK * shifts
    near[[0, -1]] = True
    return np.union1d(shifts[near], inside)


def _bound_lags(u: Array, costs: Array, p: float) -> Array:
    """max over λ of λ − s on every cell of shifts, from above: how far the cost lags behind.

    For p > 1, f(λ) = λ − s(λ) is concave and 0 at both ends. With m ≤ |f″| ≤ M its maximum is at
    least m/8, and between two of 201 points it exceeds the larger by at most M/(8·200²): 2.5e-5·M/m
    of the maximum. M/m is the power |p − 2| of the ratio of two shifts, below 1.2. So 1e-3 is
    ample; and for p ≤ 1 the lag is 0. See docs/theory.md#theorem-j.
    """
    lam = np.linspace(0.0, 1.0, 201)[None, :]
    at = (u[:-1, None] + lam * np.diff(u)[:, None]) ** p - u[:-1, None] ** p
    s = at / np.maximum(u[1:] ** p - u[:-1] ** p, 1e-300)[:, None]
    return np.maximum(np.max(lam - s, axis=1), 0.0) * (1 + 1e-3)
