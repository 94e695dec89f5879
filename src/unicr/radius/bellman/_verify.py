"""The proof of (j) on a computer: is a given Φ a supersolution? If not, by how much is it short?

A `Flow` is Φ(E, ·) = G_s ⊗ Ψ(E, ·) for budgets 0 ≤ E ≤ t_N: with τ = (E − t_e)/Δ_e in [0, 1],

    Ψ(E) = (1 − τ)Ψ_e + τΨ_{e+1} − τ(1 − τ)C_e,

every Ψ(E) a mesh function with masses ≥ 0. `compute_surcharge` returns a rising function Ξ of E,
the same at every ℓ, with which

    A_u Φ(E) + Ξ(E) ≤ Φ(E + c(u)) + Ξ(E + c(u))        for ALL shifts u, all E, all ℓ.

How: A_uΦ − Φ is bounded by a kernel on the mesh (`_kernel.py`), so the inequality is between
mesh functions, and holds everywhere if it holds at the points and the surcharge pays outside them.
In E both sides are quadratic between the nodes t_i and t_i − c(u_k): the ends of such an interval
are checked, and a convex difference loses curvature·length²/8. Between two shifts u_k < u < u_{k+1}
the left side is at most the chord (its own gap is inside the kernel); the right side, a function S
of the cost, may lie below the chord of its values by (λ − s)(S_{k+1} − S_k) + ⅛w²·sup S″ +
¼w·(kinks of S), w the width of the cell of costs, s the share of the cost at the share λ of the
way: this is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from scipy import fft

from unicr.radius.bellman._kernel import Kernel
from unicr.radius.bellman._mesh import Mesh
from unicr.values import Array

# Charges for floating point, all onto what Φ lacks (docs/theory.md#rounding-charges).
# A convolution, as a share of Σ|weights|·Σ masses. By FFT: measured against long double below 1e-15
# (tests/radius/test_rounding.py), charged four times. Directly: 15 products and sums of a unit
# each. The weights themselves are sums of 8·12 products, in groups of 12 and 8: 20 units.
CONVOLUTION = 8e-15
# K_u of a kernel, at any point: H of one coordinate, whose masses are right to what
# `tradeoff._compose.ROUNDING_EACH` says, and a difference of two sums of at most 1, each rounded
# once, times an exponential. The sums are cumulated in long double, which `Kernel.beyond` charges
# by their number of terms.
KERNEL_ROUNDING = 1.3e-14
VALUES_PER_CHECK = 4  # of Ψ in one inequality: two nodes on either side, each cumulated
# Roundings of double precision in one inequality, each of at most the total: two sums on the left,
# two to add rise and bend on either side; and the places τ and σ in their cells, known to about a
# hundred units, times what Ψ changes over a cell, about a twentieth of the total, on either side.
ROUNDINGS_PER_CHECK = 16
UNIT = float(np.finfo(np.float64).eps) / 2  # the largest relative error of one rounding

# Into how many pieces every cell of budgets is cut for Ξ, and from how many pieces on a step is
# paid where it lands; shorter steps are paid by a slope. Both decide what Ξ costs, not its truth.
PIECES = 8
LEAP = 6  # pieces
TILE = 256  # points that are checked together: a tile stays in the processor's first cache


@dataclass(frozen=True, eq=False)
class Flow:
    """Nodes t (N + 1), masses of Ψ_e (N + 1, n) and signed masses of C_e (N, n)."""

    nodes: Array
    masses: Array
    bends: Array


@numba.njit(cache=True)
def _convolve_directly(weights, reach, mass, out):  # type: ignore[no-untyped-def]
    rows, n = mass.shape
    out[:] = 0.0
    for e in range(rows):
        for a in range(2 * reach + 1):
            weight = weights[a]
            for j in range(n):
                out[e, a + j] += weight * mass[e, j]


class Rows:
    """Rows of masses, with the transforms that convolutions of either width need."""

    def __init__(self, masses: Array, mesh: Mesh) -> None:
        self.masses, self.mesh = masses, mesh
        self.spectra = {size: fft.rfft(masses, size, axis=1) for size in mesh.sizes}

    def convolve(self, kernel: Kernel, count: int) -> tuple[Array, Array, Array]:
        """Kernel * mass for the first `count` rows: left of the mesh, in it, right of it."""
        n, reach = self.mesh.count, kernel.reach
        if kernel.spectrum is None:
            out = np.empty((count, n + 2 * reach))
            _convolve_directly(kernel.weights, reach, self.masses[:count], out)
            return out[:, :reach], out[:, reach : reach + n], out[:, reach + n :]
        spectra = self.spectra[kernel.size][:count] * kernel.spectrum
        line = fft.irfft(spectra, kernel.size, axis=1, overwrite_x=True)
        return line[:, -reach:], line[:, :n], line[:, n : n + reach]


@numba.njit(cache=True, fastmath={"nnan", "nsz"})
def _bound_chord_loss(t, steepest, curve, jumps, low, high, share, out):  # type: ignore[no-untyped-def]
    """What the right side loses to its chord between the costs low and high, per cell of E."""
    last, n = steepest.shape
    width = high - low
    for e in range(out.shape[0]):
        a = min(np.searchsorted(t, t[e] + low, side="right") - 1, last - 1)
        b = min(np.searchsorted(t, t[e + 1] + high, side="left"), last)
        slope, bow = steepest[a].copy(), curve[a].copy()
        for i in range(a + 1, b):
            for j in range(n):
                slope[j] = max(slope[j], steepest[i, j])
                bow[j] = max(bow[j], curve[i, j])
        for j in range(n):
            kinks = jumps[b - 1, j] - jumps[a, j]
            lag = share * max(slope[j], 0.0)  # where Φ falls the lag may as well be none
            out[e, j] = width * (lag + 0.125 * width * bow[j] + 0.25 * kinks)


@numba.njit(cache=True, fastmath={"nnan", "nsz"})
def _measure_lacks(  # type: ignore[no-untyped-def]
    t, psi, bend, rise, inc, inc_bend, c, prior, lost, limit, out
):
    """The largest lack of the right side over all ℓ, for each cell of E; see the module.

    In a cell the left side with its increment and losses is start + τ·way − τ(1 − τ)·bow.
    """
    nodes, n = psi.shape
    last = nodes - 1
    ends, tau, sigma = np.empty(nodes + 3), np.empty(nodes + 3), np.empty(nodes + 3)
    place, between = np.empty(nodes + 3, np.int64), np.empty(nodes + 3, np.int64)
    start, way, bow = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    lack, before = np.empty(TILE), np.empty(TILE)
    for e in range(last):
        out[e] = 0.0
        if t[e] + prior > limit:
            continue
        de = t[e + 1] - t[e]
        stop = min(t[e + 1], t[last] - c)
        ends[0] = t[e]
        m = 0
        i = np.searchsorted(t, t[e] + c, side="right")
        while i <= last and t[i] - c < stop:
            if t[i] - c > ends[m]:
                m += 1
                ends[m] = t[i] - c
            i += 1
        m += 1
        ends[m] = stop
        for q in range(m + 1):
            x = ends[q]
            i = min(np.searchsorted(t, x + c, side="right") - 1, last - 1)
            place[q], tau[q], sigma[q] = i, (x - t[e]) / de, (x + c - t[i]) / (t[i + 1] - t[i])
            between[q] = -1
            if q > 0 and ends[q - 1] + prior <= limit and x > ends[q - 1]:
                y = 0.5 * (x + ends[q - 1])
                between[q] = min(np.searchsorted(t, y + c, side="right") - 1, last - 1)
        worst = 0.0
        for low in range(0, n, TILE):
            part = slice(low, min(low + TILE, n))
            size = part.stop - low
            here, after = inc[e, part], inc[e + 1, part]
            value, risen, bent = psi[e, part], rise[e, part], bend[e, part]
            charge, more = lost[e, part], inc_bend[e, part]
            for j in range(size):
                start[j] = value[j] + here[j] + charge[j]
                way[j] = risen[j] + (after[j] - here[j])
                bow[j] = bent[j] + more[j]
            for q in range(m + 1):
                ta, sa = tau[q], sigma[q]
                wa, va = ta * (1 - ta), sa * (1 - sa)
                i = place[q]
                value, risen, bent = psi[i, part], rise[i, part], bend[i, part]
                for j in range(size):
                    needed = start[j] + ta * way[j] - wa * bow[j]
                    lack[j] = needed - (value[j] + sa * risen[j] - va * bent[j])
                if between[q] >= 0:
                    bent = bend[between[q], part]
                    di, length = t[between[q] + 1] - t[between[q]], ends[q] - ends[q - 1]
                    there, own_dip = length**2 / (4 * di * di), length**2 / (4 * de * de)
                    for j in range(size):
                        dip = max(there * bent[j] - own_dip * bow[j], 0.0)
                        worst = max(worst, max(lack[j], before[j]) + dip)
                lack, before = before, lack
        out[e] = worst


def _prepend_zero(values: Array, masses: Array) -> Array:
    """Values at the mesh points with the value at γ = 0, the sum of the masses, in front."""
    at_zero = np.sum(masses, axis=1, keepdims=True, dtype=np.longdouble).astype(np.float64)
    return np.concatenate([at_zero, values], axis=1)


def _bound_outside(values: Array, bends: Array) -> Array:
    """The largest increment beyond one end of the mesh, for each cell of E."""
    most = np.maximum(np.max(values, axis=1), 0.0)
    return np.maximum(most[1:], most[:-1]) + 0.25 * np.maximum(-np.min(bends, axis=1), 0.0)


def compute_surcharge(
    flow: Flow,
    kernels: list[Kernel],
    costs: Array,
    shares: Array,
    mesh: Mesh,
    limit: float,
    *,
    between: bool = True,
) -> tuple[Array, Array]:
    """Budgets and Ξ at them, straight between: what pays for all that Φ lacks.

    `between` says whether shifts between two kernels are asked for too; steps that stand for
    whole cells of shifts have none. `costs` rise; `shares[k]` = max over λ of λ − s between shifts
    k and k + 1. Only what ends within `limit` is asked for; the last node lies beyond it by the
    widest cell of costs. What is
    returned makes Φ + Ξ a supersolution (docs/theory.md#theorem-j). Negative masses are refused:
    without convexity nothing is proved. Left of the mesh functions are straight in γ down to
    γ = 0, which is checked as a point.
    """
    t, masses = flow.nodes, flow.masses
    if not (np.all(masses >= 0) and np.all(np.isfinite(masses)) and np.all(np.diff(t) > 0)):
        raise ValueError("a flow needs finite masses of at least 0 and rising nodes")
    if not np.all(np.isfinite(flow.bends)):
        raise ValueError("a flow needs finite bends")
    widest = float(np.max(np.diff(costs)[costs[:-1] <= limit], initial=0.0))
    if t[0] != 0 or t[-1] < limit + widest:
        raise ValueError("a flow must reach from 0 to the limit and a cell of costs beyond it")
    roots = np.sqrt(masses)
    # No tolerance: between two nodes a mass is then at least −4 units of itself, which the charge
    # for convolutions pays many times.
    if np.any(flow.bends > (roots[1:] + roots[:-1]) ** 2):
        raise ValueError("a bend of the flow is stronger than its masses")
    psi, bend = (
        _prepend_zero(mesh.sum_values(masses), masses),
        _prepend_zero(mesh.sum_values(flow.bends), flow.bends),
    )
    rise = np.diff(psi, axis=0)
    step = np.diff(t)[:, None]
    before, after = (rise - bend) / step, (rise + bend) / step
    steepest = np.maximum(before, after)
    curve = np.maximum(2.0 * bend / step**2, 0.0)
    jumps = np.zeros_like(rise)  # kinks at the inner nodes, added up
    jumps[1:] = np.cumsum(np.maximum(before[1:] - after[:-1], 0.0), axis=0)
    falls = np.max(np.maximum(-before, -after), axis=1)  # Φ must not fall as E grows
    lacks = np.zeros((len(kernels), len(t) - 1))  # what shift k lacks in cell e
    rows, bows = Rows(masses, mesh), Rows(flow.bends, mesh)
    total = float(np.max(psi[:, 0]) + 0.25 * np.max(np.maximum(-bend[:, 0], 0.0)))
    # a bend enters with τ(1 − τ) ≤ 1/4
    summed = total + 0.25 * float(np.max(np.sum(np.abs(flow.bends), axis=1), initial=0.0))
    rounding = (
        KERNEL_ROUNDING + (VALUES_PER_CHECK * mesh.rounding + ROUNDINGS_PER_CHECK * UNIT) * summed
    )
    chords = np.zeros((2, *rise.shape))  # below and above shift k
    inc, inc_bend = np.zeros_like(psi), np.zeros_like(bend)
    for k, kernel in enumerate(kernels):
        prior = float(costs[k - 1]) if k > 0 else 0.0
        cells = int(np.count_nonzero(t[:-1] + prior <= limit))
        if cells == 0:
            break
        far, inside, near = rows.convolve(kernel, cells + 1)
        far_bend, bent, near_bend = bows.convolve(kernel, cells)
        left = _bound_outside(far, far_bend)
        right = _bound_outside(near, near_bend) + kernel.infinite * total
        # what the kernel takes away at the first point is not owed to what lies left of it
        left += _bound_outside(-inside[:, :1], -bent[:, :1])
        inc[: cells + 1, 1:], inc_bend[:cells, 1:] = inside, bent
        inc[:, 0], inc_bend[:, 0] = 0.0, 0.0  # nothing is added at γ = 0
        if kernel.infinite > 0:
            inc += kernel.infinite * (total - psi)
            inc_bend -= kernel.infinite * bend
        chords = chords[::-1]
        if between and k + 1 < len(costs):
            low, high, share = float(costs[k]), float(costs[k + 1]), float(shares[k])
            _bound_chord_loss(t, steepest, curve, jumps, low, high, share, chords[1, :cells])
        lost = np.maximum(chords[0], chords[1]) if 0 < k < len(costs) - 1 else chords[int(k == 0)]
        _measure_lacks(
            t, psi, bend, rise, inc, inc_bend, float(costs[k]), prior, lost, limit, lacks[k]
        )
        lack = np.maximum(lacks[k, :cells], right) + left + rounding + kernel.beyond * total
        lacks[k, :cells] = lack + CONVOLUTION * summed * kernel.size_of_terms
    if not np.all(np.isfinite(lacks)):  # no comparison with such a number says anything
        raise ValueError("a kernel is not finite")
    return pay_lacks(t, costs, shares, lacks, np.maximum(falls, 0.0))


def pay_lacks(
    nodes: Array, costs: Array, shares: Array, lack: Array, falls: Array
) -> tuple[Array, Array]:
    """Budgets and Ξ there, rising and straight between, with Ξ(E + c(u)) − Ξ(E) ≥ what is missing.

    For u between two shifts that is at most the chord of their lacks. Every cell of E is cut into
    pieces. Where the smaller cost leads from a piece to a budget well beyond its end, Ξ there lies
    above Ξ at that end by the larger lack; where it does not, the slope on every piece that the
    step may meet is at least the lack per cost, and a little more, for c(u) lies below the chord
    of the costs. See docs/theory.md#theorem-j.
    """
    cut = np.arange(PIECES) / PIECES
    fine = np.append((nodes[:-1, None] + np.diff(nodes)[:, None] * cut).ravel(), nodes[-1])
    per = lack / costs[:, None]
    per, jump = np.maximum(per[:-1], per[1:]), np.maximum(lack[:-1], lack[1:])
    per *= (1.0 + shares * np.diff(costs) / costs[:-1])[:, None]
    per, jump = (np.repeat(v, PIECES, axis=1) for v in (per, jump))
    landing = np.searchsorted(fine, fine[None, :-1] + costs[:-1, None], side="right") - 1
    stop = np.searchsorted(fine, fine[None, 1:] + costs[1:, None], side="left")
    return fine, _pay(fine, np.repeat(falls, PIECES), per, jump, landing, stop)


@numba.njit(cache=True)
def _pay(nodes, slopes, per, jump, landing, stop):  # type: ignore[no-untyped-def]
    count, shifts = len(nodes) - 1, per.shape[0]
    for k in range(shifts):
        for e in range(count):
            if landing[k, e] <= e + LEAP:
                for i in range(e, min(stop[k, e], count)):
                    slopes[i] = max(slopes[i], per[k, e])
    result, owed = np.zeros(count + 1), np.zeros(count + 1)
    for e in range(count):
        rise = result[e] + slopes[e] * (nodes[e + 1] - nodes[e])
        result[e + 1] = max(rise, owed[e + 1])
        for k in range(shifts):
            if landing[k, e] > e + LEAP:
                at = landing[k, e]
                owed[at] = max(owed[at], result[e + 1] + jump[k, e])
    return result
