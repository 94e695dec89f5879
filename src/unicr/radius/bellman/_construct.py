"""Find a Φ that will pass: dynamic programming, with heat for the dust. Nothing here is a proof.

From node to node the small coordinates act as heat (the exact semigroup of the lattice, so no step
is too large for it); what a larger coordinate achieves beyond that is added, smoothed over the
width that the heat has in one step, so that no kinks are left for the dust to feed on.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import fft

from unicr.radius.bellman._kernel import Complex, Kernel
from unicr.radius.bellman._lattice import Lattice
from unicr.radius.bellman._verify import Flow, increments
from unicr.values import Array

SKIP = 3
FINE = 0.02
TINY = 1 / 12
GROW = 1.15
BLUR = 0.6
IGNORED = 1e-9


def nodes_of(limit: float, last: float, start: float, count: int) -> Array:
    """Budgets 0 … last: even in √(E + start) at first geometric; `count` of them up to `limit`."""
    step = (math.sqrt(limit + start) - math.sqrt(start)) / count
    v = [start]
    while v[-1] < last + start:
        v.append(min(v[-1] * GROW, (math.sqrt(v[-1]) + step) ** 2))
    return np.asarray(v) - start


class Generators:
    """What shifts do to masses: the spectrum of every A_u, its rate per cost, and pure dust."""

    def __init__(self, kernels: list[Kernel], costs: Array, lattice: Lattice) -> None:
        self.kernels, self.costs, self.lattice = kernels, costs, lattice
        self.laws = [_law(k, lattice) for k in kernels]
        self.rates = np.array([k.total for k in kernels]) / costs
        unit = Kernel(np.array([0.0, 1.0, 0.0]), 1, None, 0.0, 0.0)
        self.dust = _law(unit, lattice) - 1.0


def _law(kernel: Kernel, lattice: Lattice) -> Complex:
    """Transform of the lattice law whose hockey-stick is (1 − γ)₊ + kernel."""
    r, h = kernel.reach, lattice.step
    gamma = np.exp(h * np.arange(-r - 1, r + 2))
    values = np.maximum(0.0, 1.0 - gamma) + np.pad(kernel.weights, 1)
    slopes = np.concatenate([[-1.0], np.diff(values) / np.diff(gamma), [0.0]])
    line = np.zeros(lattice.size)
    mass = np.diff(slopes) * gamma
    line[: r + 2] = mass[r + 1 :]
    line[-r - 1 :] = mass[: r + 1]
    return fft.rfft(line)


def construct(g: Generators, start: Array, nodes: Array, largest: int) -> Flow:
    """A flow from the masses `start` with the shifts 0 … `largest`."""
    lattice, n = g.lattice, g.lattice.count
    chosen = [
        k for k in range(largest + 1) if g.costs[k] > FINE * nodes[-1] or (largest - k) % SKIP == 0
    ]
    costs = g.costs[chosen]
    count = len(nodes) - 1
    masses = np.empty((count + 1, n))
    psi = np.empty((count + 1, n))
    pushed = np.empty((count + 1, len(chosen), n))
    masses[0], psi[0] = start, lattice.values(start)

    shortest = float(np.min(np.diff(nodes)))

    def push(e: int) -> None:
        spectra = fft.rfft(masses[e : e + 1], lattice.size, axis=1)
        for a, k in enumerate(chosen):
            if e > 0 and costs[a] < shortest:
                continue
            kernel = g.kernels[k]
            r = kernel.reach
            pushed[e, a] = increments(kernel, masses[e : e + 1], spectra, lattice)[0, r : r + n]
            if kernel.infinite > 0:
                pushed[e, a] += kernel.infinite * (1.0 - psi[e])

    rates = np.zeros(count)
    push(0)
    omega = 2 * math.pi * np.fft.rfftfreq(lattice.size, lattice.step)
    for e in range(count):
        step = nodes[e + 1] - nodes[e]
        spectrum = fft.rfft(masses[e], lattice.size)
        rate = float(np.max(g.rates[chosen][costs <= max(step, 2 * costs[0])]))
        heated = fft.irfft(spectrum * np.exp(step * rate * g.dust), lattice.size)[:n]
        heated = np.maximum(heated, 0.0)
        base = lattice.values(heated)
        excess = np.zeros(n)
        for a, k in enumerate(chosen):
            budget = nodes[e + 1] - costs[a]
            if budget < 0:
                break
            if costs[a] < TINY * step:
                continue
            if budget >= nodes[e]:
                times = math.floor(step / costs[a])
                rest = np.exp((step - times * costs[a]) * rate * g.dust)
                moved = fft.irfft(spectrum * g.laws[k] ** times * rest, lattice.size)[:n]
                at = lattice.values(moved)
            else:
                i = int(np.searchsorted(nodes, budget, side="right")) - 1
                tau = (budget - nodes[i]) / (nodes[i + 1] - nodes[i])
                at = (1 - tau) * (psi[i] + pushed[i, a]) + tau * (psi[i + 1] + pushed[i + 1, a])
            np.maximum(excess, at - base, out=excess)
        a = int(np.searchsorted(costs, nodes[e + 1]))
        if 0 < a < len(costs):  # one coordinate alone
            share = (nodes[e + 1] - costs[a - 1]) / (costs[a] - costs[a - 1])
            alone = psi[0] + (1 - share) * pushed[0, a - 1] + share * pushed[0, a]
            np.maximum(excess, alone - base, out=excess)
        masses[e + 1] = heated
        excess[excess < IGNORED] = 0.0
        if np.any(excess > 0):
            width = BLUR * math.sqrt(2 * rate * step * lattice.step)
            blur = np.exp(-0.5 * (omega * width) ** 2)
            smooth = fft.irfft(fft.rfft(excess, lattice.size) * blur, lattice.size)[:n]
            masses[e + 1] += lattice.masses(smooth, float(smooth[0]))
        masses[e + 1] = np.maximum(masses[e + 1], 0.0)
        psi[e + 1] = lattice.values(masses[e + 1])
        rates[e] = rate
        push(e + 1)
    return Flow(nodes, masses, _bends(lattice, nodes, masses, psi, rates))


def _bends(lattice: Lattice, nodes: Array, masses: Array, psi: Array, rates: Array) -> Array:
    """Signed masses of C_e: half the change of the heat's growth over a cell, within the rise."""
    growth = masses * np.concatenate([rates, rates[-1:]])[:, None]
    bend = 0.5 * np.diff(nodes)[:, None] * np.diff(growth, axis=0)
    limit = np.maximum(np.diff(psi, axis=0), 1e-300)
    bend = bend / np.sqrt(1.0 + np.minimum(np.abs(bend / limit), 1e100) ** 2)
    roots = np.sqrt(masses)
    return np.minimum(lattice.masses(bend, 0.0), (roots[1:] + roots[:-1]) ** 2)
