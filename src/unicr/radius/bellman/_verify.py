"""The proof of (j) on a computer: is a given Φ a supersolution? If not, by how much is it short?

A `Flow` is Φ(E, ·) = G_s ⊗ Ψ(E, ·) for budgets 0 ≤ E ≤ t_N: with τ = (E − t_e)/Δ_e in [0, 1],

    Ψ(E) = (1 − τ)Ψ_e + τΨ_{e+1} − τ(1 − τ)C_e,

every Ψ(E) a lattice function with masses ≥ 0. `missing` returns, for every shift u_k and every cell
of E, the rate ξ such that with the slack ξ·c(u) added

    A_u Φ(E) ≤ Φ(E + c(u)) + ξ c(u)        for ALL u in the cells beside u_k, all E, all ℓ.

How: A_uΦ − Φ is bounded by a kernel on the lattice (`_kernel.py`), so the inequality is between
lattice functions, and holds everywhere if it holds at the points and the slack pays outside them.
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

from unicr.radius.bellman._kernel import Complex, Kernel
from unicr.radius.bellman._lattice import Lattice
from unicr.values import Array

ROUNDING = 4e-15  # of a convolution by FFT of masses that add up to about 1
TINY = 1e-15  # of the integrals in a kernel


@dataclass(frozen=True, eq=False)
class Flow:
    """Nodes t (N + 1), masses of Ψ_e (N + 1, n) and signed masses of C_e (N, n)."""

    nodes: Array
    masses: Array
    bends: Array


@numba.njit(cache=True)
def _stencil(weights, reach, mass, out):  # type: ignore[no-untyped-def]
    rows, n = mass.shape
    for e in range(rows):
        for i in range(-reach, n + reach):
            total = 0.0
            for j in range(max(0, i - reach), min(n, i + reach + 1)):
                total += weights[i - j + reach] * mass[e, j]
            out[e, i + reach] = total


def increments(kernel: Kernel, masses: Array, spectra: Complex | None, lattice: Lattice) -> Array:
    """Kernel * mass for every row, inside the lattice and `reach` points beyond both its ends."""
    n, reach = lattice.count, kernel.reach
    if kernel.spectrum is None or spectra is None:
        out = np.empty((len(masses), n + 2 * reach))
        _stencil(kernel.weights, reach, masses, out)
        return out
    line = fft.irfft(spectra * kernel.spectrum, lattice.size, axis=1)
    return np.concatenate([line[:, -reach:], line[:, : n + reach]], axis=1)


@numba.njit(cache=True)
def _between(  # type: ignore[no-untyped-def]
    t, steepest, curve, jumps, x, y, low, high, share, out
):
    """Raise `out` to what the right side loses to its chord between the costs low and high."""
    last, n = steepest.shape
    a = min(np.searchsorted(t, x + low, side="right") - 1, last - 1)
    b = min(np.searchsorted(t, y + high, side="left"), last)
    width = high - low
    for j in range(n):
        slope, bow = 0.0, 0.0
        for i in range(a, b):
            slope = max(slope, steepest[i, j])
            bow = max(bow, curve[i, j])
        kinks = jumps[b - 1, j] - jumps[a, j]
        lost = width * (share * slope + 0.125 * width * bow + 0.25 * kinks)
        out[j] = max(out[j], lost)


@numba.njit(cache=True)
def _short(  # type: ignore[no-untyped-def]
    t,
    psi,
    bend,
    rise,
    steepest,
    curve,
    jumps,
    inc,
    inc_bend,
    c,
    prior,
    low,
    high,
    share,
    limit,
    out,
):
    """The largest lack of the right side over all ℓ, for each cell of E; see the module."""
    nodes, n = psi.shape
    last = nodes - 1
    ends = np.empty(nodes + 3)
    lost = np.empty(n)
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
        lost[:] = 0.0
        for q in range(2):
            _between(t, steepest, curve, jumps, t[e], t[e + 1], low[q], high[q], share[q], lost)
        worst = 0.0
        for q in range(m):
            x, y = ends[q], ends[q + 1]
            if x + prior > limit or y <= x:
                continue
            i = min(np.searchsorted(t, 0.5 * (x + y) + c, side="right") - 1, last - 1)
            di = t[i + 1] - t[i]
            ta, tb = (x - t[e]) / de, (y - t[e]) / de
            sa, sb = (x + c - t[i]) / di, (y + c - t[i]) / di
            wa, wb = ta * (1 - ta), tb * (1 - tb)
            va, vb = sa * (1 - sa), sb * (1 - sb)
            length = (y - x) * (y - x) / 4
            for j in range(n):
                right_x = psi[i, j] + sa * rise[i, j] - va * bend[i, j]
                right_y = psi[i, j] + sb * rise[i, j] - vb * bend[i, j]
                left_x = psi[e, j] + ta * rise[e, j] - wa * bend[e, j]
                left_y = psi[e, j] + tb * rise[e, j] - wb * bend[e, j]
                add_x = (1 - ta) * inc[e, j] + ta * inc[e + 1, j] - wa * inc_bend[e, j]
                add_y = (1 - tb) * inc[e, j] + tb * inc[e + 1, j] - wb * inc_bend[e, j]
                lack = max(add_x - (right_x - left_x), add_y - (right_y - left_y)) + lost[j]
                bow = bend[i, j] / (di * di) - (bend[e, j] + inc_bend[e, j]) / (de * de)
                if bow > 0:
                    lack += bow * length
                if lack > worst:
                    worst = lack
        out[e] = worst


def _with_zero(values: Array, masses: Array) -> Array:
    """Values at the lattice points with the value at γ = 0, the sum of the masses, in front."""
    return np.concatenate([np.sum(masses, axis=1, keepdims=True), values], axis=1)


def _outside(inc: Array, inc_bend: Array, columns: slice) -> Array:
    """The largest increment beyond one end of the lattice, for each cell of E."""
    most = np.max(inc[:, columns], axis=1)
    return np.maximum(most[1:], most[:-1]) + 0.25 * np.max(
        np.maximum(-inc_bend[:, columns], 0.0), axis=1
    )


def missing(
    flow: Flow, kernels: list[Kernel], costs: Array, shares: Array, lattice: Lattice, limit: float
) -> Array:
    """ξ[k, e]: the slack per unit of cost that shift k lacks for budgets in cell e (0: nothing).

    `costs` rise; `shares[k]` = max over λ of λ − s between shifts k and k + 1. Only what ends
    within `limit` is asked for; the last node lies beyond it by the widest cell of costs. Negative
    masses are refused: without convexity nothing is proved. Left of the lattice functions are
    straight in γ down to γ = 0, which is checked as a point.
    """
    t, masses = flow.nodes, flow.masses
    if float(np.min(masses)) < 0 or np.any(np.diff(t) <= 0):
        raise ValueError("a flow needs masses of at least 0 and rising nodes")
    roots = np.sqrt(masses)
    if np.any(flow.bends > (roots[1:] + roots[:-1]) ** 2 * (1 + 1e-12) + 1e-300):
        raise ValueError("a bend of the flow is stronger than its masses")
    psi, bend = (
        _with_zero(lattice.values(masses), masses),
        _with_zero(lattice.values(flow.bends), flow.bends),
    )
    rise = np.diff(psi, axis=0)
    step = np.diff(t)[:, None]
    before, after = (rise - bend) / step, (rise + bend) / step
    steepest = np.maximum(before, after)
    curve = np.maximum(2.0 * bend / step**2, 0.0)
    jumps = np.zeros_like(rise)  # kinks at the inner nodes, added up
    jumps[1:] = np.cumsum(np.maximum(before[1:] - after[:-1], 0.0), axis=0)
    spectra, bend_spectra = (fft.rfft(v, lattice.size, axis=1) for v in (masses, flow.bends))
    falls = np.max(np.maximum(-before, -after), axis=1)  # Φ must not fall as E grows
    result = np.zeros((len(kernels), len(t) - 1))
    n = lattice.count
    total = float(np.max(psi[:, 0]) + 0.25 * np.max(np.maximum(-bend[:, 0], 0.0)))
    for k, kernel in enumerate(kernels):
        inc = increments(kernel, masses, spectra, lattice)
        inc_bend = increments(kernel, flow.bends, bend_spectra, lattice)
        r = kernel.reach
        left, right = (
            _outside(inc, inc_bend, slice(0, r)),
            _outside(inc, inc_bend, slice(r + n, None)),
        )
        inc, inc_bend = (np.pad(v[:, r : r + n], ((0, 0), (1, 0))) for v in (inc, inc_bend))
        if kernel.infinite > 0:
            inc = inc + kernel.infinite * (total - psi)
            inc_bend = inc_bend - kernel.infinite * bend
        prior = float(costs[k - 1]) if k > 0 else 0.0
        around = [max(k - 1, 0), min(k, len(costs) - 2)]
        lack = np.empty(len(t) - 1)
        _short(
            t, psi, bend, rise, steepest, curve, jumps, np.ascontiguousarray(inc),
            np.ascontiguousarray(inc_bend),
            float(costs[k]), prior, costs[around], costs[[a + 1 for a in around]], shares[around],
            limit, lack,
        )  # fmt: skip
        fuzz = ROUNDING * total * kernel.total if kernel.spectrum is not None else 0.0
        lack = np.maximum(lack, right) + left + fuzz + TINY + kernel.beyond * total
        result[k] = np.where(t[:-1] + prior <= limit, lack / costs[k], 0.0)
    return np.maximum(result, np.maximum(falls, 0.0)[None, :])


def slack(flow: Flow, costs: Array, shares: Array, lack: Array) -> Array:
    """Ξ at the nodes: an increasing function of E, straight between, that pays what is missing.

    Ξ(E + c_k) − Ξ(E) ≥ lack[k, e]·c_k for every E in cell e: its slope is at least lack[k, e] on
    each cell that [E, E + c_k] meets, and a little more for the costs between c_k and c_{k+1}.
    """
    t = flow.nodes
    slopes = np.zeros(len(t) - 1)
    for k, cost in enumerate(costs):
        ends = np.searchsorted(t, t[1:] + cost, side="left")
        for e in np.flatnonzero(lack[k] > 0):
            stop = max(int(ends[e]), e + 1)
            np.maximum(slopes[e:stop], lack[k, e], out=slopes[e:stop])
    slopes *= 1.0 + float(np.max(shares * np.diff(costs) / costs[:-1]))
    return np.concatenate([[0.0], np.cumsum(slopes * np.diff(t))])
