"""Find a Φ that will pass: dynamic programming, with heat for the dust. Nothing here is a proof.

From node to node the small coordinates act as heat (the exact semigroup of the mesh, so no step
is too large for it); what a larger coordinate achieves beyond that is added, smoothed over the
width that the heat has in one step, so that no kinks are left for the dust to feed on.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from scipy import fft

from unicr.radius.bellman._kernel import Complex, Kernel
from unicr.radius.bellman._mesh import Mesh
from unicr.radius.bellman._verify import Flow, Rows
from unicr.values import Array

# Nothing here is a proof: these numbers decide how good a Φ is, not whether it is true.
SMALL_STEP = 1 / 12  # of a step between nodes: shifts that cost less act as heat
FIRST_RATIO = 1.2  # ratio of the first budgets
BLUR = 1.0  # width of the smoothing, in widths of the heat of one step
PASSES = 12  # of giving back what blurring took off
IGNORED = 1e-9  # an excess below it is rounding
BLUR_REST = 2e-6  # what blurring may leave
FAINT_RISE = 1e-3  # of the largest rise: below it, at the ends of the mesh, a cell is straight


def place_budgets(limit: float, last: float, start: float, count: int, corner: float) -> Array:
    """Budgets 0 … last: even in √(E + start), at first geometric; `count` of them up to `limit`.

    Φ has a corner where the largest step alone, cost `corner`, or two of it are all that is spent:
    there stands a node.
    """
    step = (math.sqrt(limit + start) - math.sqrt(start)) / count
    v = [start]
    while v[-1] < last + start:
        v.append(min(v[-1] * FIRST_RATIO, (math.sqrt(v[-1]) + step) ** 2))
    nodes = np.asarray(v) - start
    for at in (corner, 2 * corner):
        if nodes[1] < at < limit:
            i = int(np.searchsorted(nodes, at))
            near = i if i + 1 < len(nodes) and nodes[i] - at < at - nodes[i - 1] else i - 1
            if near > 0:
                nodes[near] = at
    nodes[-1] = max(nodes[-1], last)  # rounding must not end the flow before `last`
    return nodes


class Generators:
    """What shifts do to masses: the spectrum of every A_u, its rate per cost, and pure dust."""

    def __init__(self, kernels: list[Kernel], costs: Array, mesh: Mesh) -> None:
        self.kernels, self.costs, self.mesh = kernels, costs, mesh
        laws = np.array([_transform_law(k, mesh) for k in kernels])
        self.logs = np.log(np.where(laws == 0, 1e-300, laws))
        self.rates = np.array([k.total for k in kernels]) / costs
        dust = kernels[0]
        unit = Kernel(dust.weights / (dust.total or 1.0), dust.reach, None, 0, 0.0, 0.0)
        self.dust = _transform_law(unit, mesh) - 1.0


def _transform_law(kernel: Kernel, mesh: Mesh) -> Complex:
    """Transform of the mesh law whose hockey-stick is (1 − γ)₊ + kernel."""
    r, h = kernel.reach, mesh.step
    gamma = np.exp(h * np.arange(-r - 1, r + 2))
    values = np.maximum(0.0, 1.0 - gamma) + np.pad(kernel.weights, 1)
    slopes = np.concatenate([[-1.0], np.diff(values) / np.diff(gamma), [0.0]])
    line = np.zeros(mesh.sizes[1])
    mass = np.diff(slopes) * gamma
    line[: r + 2] = mass[r + 1 :]
    line[-r - 1 :] = mass[: r + 1]
    return fft.rfft(line)


def construct(g: Generators, start: Array, nodes: Array, largest: int) -> Flow:
    """A flow from the masses `start` with the shifts 0 … `largest`."""
    mesh, n, size = g.mesh, g.mesh.count, g.mesh.sizes[1]
    costs = g.costs[: largest + 1]
    count = len(nodes) - 1
    masses = np.empty((count + 1, n))
    psi = np.empty((count + 1, n))
    pushed = np.empty((count + 1, len(costs), n))
    masses[0], psi[0] = start, mesh.estimate_values(start)

    shortest = float(np.min(np.diff(nodes)))
    wide = [a for a in range(largest + 1) if g.kernels[a].spectrum is not None]
    groups: dict[int, list[int]] = {
        room: [a for a in wide if g.kernels[a].size == room] for room in mesh.sizes
    }
    spectra = {
        room: np.array([g.kernels[a].spectrum for a in shifts]) for room, shifts in groups.items()
    }

    def push(e: int) -> None:
        """What every shift adds to row e, where later rows may ask for it."""
        first, last = 0, len(costs)
        if e > 0:
            first = int(np.searchsorted(costs, shortest))
            last = int(np.searchsorted(costs, nodes[-1] - nodes[e - 1], side="right"))
        row = Rows(masses[e : e + 1], mesh)
        for room, shifts in groups.items():
            low, high = np.searchsorted(shifts, (first, last))
            if low < high:
                line = fft.irfft(row.spectra[room] * spectra[room][low:high], room, axis=1)
                pushed[e, shifts[low:high]] = line[:, :n]
        for a in range(first, last):
            kernel = g.kernels[a]
            if kernel.spectrum is None:
                pushed[e, a] = row.convolve(kernel, 1)[1][0]
            if kernel.infinite > 0:
                pushed[e, a] += kernel.infinite * (1.0 - psi[e])

    rates = np.zeros(count)
    push(0)
    omega = 2 * math.pi * np.fft.rfftfreq(size, mesh.step)
    for e in range(count):
        step = nodes[e + 1] - nodes[e]
        spectrum = fft.rfft(masses[e], size)
        rate = float(np.max(g.rates[: largest + 1][costs <= max(SMALL_STEP * step, 2 * costs[0])]))
        heated = fft.irfft(spectrum * np.exp(step * rate * g.dust), size)[:n]
        heated = np.maximum(heated, 0.0)
        base = mesh.estimate_values(heated)
        low, high = np.searchsorted(costs, (SMALL_STEP * step, step * (1 + 1e-12)))
        excess = np.zeros(n)
        if low < high:  # as often as they fit, and heat for the rest
            times = np.maximum(np.floor(step / costs[low:high]), 1.0)[:, None]
            rest = np.maximum(step - times * costs[low:high, None], 0.0) * rate
            moved = np.exp(times * g.logs[low:high] + rest * g.dust)
            at = mesh.estimate_values(fft.irfft(spectrum * moved, size, axis=1)[:, :n])
            excess = np.maximum(np.max(at, axis=0) - base, 0.0)
        last = int(np.searchsorted(costs, nodes[e + 1], side="right"))
        _raise_by_earlier(nodes, psi, pushed, costs, high, last, e, base, excess)
        a = int(np.searchsorted(costs, nodes[e + 1]))
        if 0 < a < len(costs):  # one coordinate alone
            share = (nodes[e + 1] - costs[a - 1]) / (costs[a] - costs[a - 1])
            alone = psi[0] + (1 - share) * pushed[0, a - 1] + share * pushed[0, a]
            np.maximum(excess, alone - base, out=excess)
        masses[e + 1] = heated
        excess[excess < IGNORED] = 0.0
        if np.any(excess > 0):
            width = BLUR * math.sqrt(2 * rate * step * mesh.step)
            blur = np.exp(-0.5 * (omega * width) ** 2)
            smooth = np.zeros(n)
            for _ in range(PASSES):  # what blurring takes off the top is given back
                short = np.maximum(excess - smooth, 0.0)
                if float(np.max(short)) < BLUR_REST:
                    break
                smooth += fft.irfft(fft.rfft(short, size) * blur, size)[:n]
            masses[e + 1] += mesh.find_masses(smooth, float(smooth[0]))
        masses[e + 1] = np.maximum(masses[e + 1], 0.0)
        # what has left the mesh counts at its first point: only γ → 0 sees it there
        masses[e + 1, 0] += max(0.0, float(np.sum(masses[e]) - np.sum(masses[e + 1])))
        psi[e + 1] = mesh.estimate_values(masses[e + 1])
        rates[e] = rate
        push(e + 1)
    return Flow(nodes, masses, _make_bends(mesh, nodes, masses, psi, rates))


@numba.njit(cache=True, fastmath={"nnan", "nsz"})
def _raise_by_earlier(nodes, psi, pushed, costs, first, last, e, base, excess):  # type: ignore[no-untyped-def]
    """Raise `excess` to what shifts beyond the last step achieve from earlier budgets."""
    for a in range(first, last):
        budget = nodes[e + 1] - costs[a]
        i = min(np.searchsorted(nodes, budget, side="right") - 1, e - 1)
        tau = (budget - nodes[i]) / (nodes[i + 1] - nodes[i])
        low, high, low_push, high_push = psi[i], psi[i + 1], pushed[i, a], pushed[i + 1, a]
        for j in range(len(base)):
            at = (1 - tau) * (low[j] + low_push[j]) + tau * (high[j] + high_push[j])
            excess[j] = max(excess[j], at - base[j])


def _make_bends(mesh: Mesh, nodes: Array, masses: Array, psi: Array, rates: Array) -> Array:
    """Signed masses of C_e: half the change of the heat's growth over a cell, within the rise."""
    growth = masses * np.concatenate([rates, rates[-1:]])[:, None]
    bend = 0.5 * np.diff(nodes)[:, None] * np.diff(growth, axis=0)
    limit = np.maximum(np.diff(psi, axis=0), 1e-300)
    bend = bend / np.sqrt(1.0 + (np.minimum(np.abs(bend), 1e100 * limit) / limit) ** 2)
    bend *= limit / (limit + FAINT_RISE * np.max(limit, axis=1, keepdims=True))
    roots = np.sqrt(masses)
    result, limits = mesh.find_masses(bend, 0.0), (roots[1:] + roots[:-1]) ** 2
    back = result[:, ::-1].copy()
    _move_excess(result, limits)
    _move_excess(back, limits[:, ::-1])
    return 0.5 * (result + back[:, ::-1])


@numba.njit(cache=True)
def _move_excess(rows, limits):  # type: ignore[no-untyped-def]
    """Bring every mass under its limit by moving the rest on to where there is room."""
    for e in range(rows.shape[0]):
        carried = 0.0
        for j in range(rows.shape[1]):
            wanted = rows[e, j] + carried
            rows[e, j] = min(wanted, limits[e, j])
            carried = wanted - rows[e, j]
