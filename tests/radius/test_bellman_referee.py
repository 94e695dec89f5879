# mypy: disable-error-code="no-untyped-call, operator, type-arg"
"""Attacks on the lemmas under theorem (j), each with numbers that share no code with the proof."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from unicr import noise as N
from unicr.noise import IID
from unicr.radius.bellman._chord import bound_excess
from unicr.radius.bellman._construct import Generators, construct, place_budgets
from unicr.radius.bellman._kernel import Kernels
from unicr.radius.bellman._mesh import Mesh
from unicr.radius.bellman._verify import Flow, compute_surcharge


def _smooth_step(x: object) -> np.ndarray:
    """A peak of half-width 0.1, its side smeared over 1e-4, on a plateau with heavy tails."""
    y = np.abs(np.asarray(x, dtype=np.float64))
    return np.log(0.05 + special.expit((0.1 - y) / 1e-4)) - 2 * np.log(np.maximum(y, 1.0))


NOISES = {
    "laplace": lambda: N.laplace(scale=1),
    "gennorm .6": lambda: N.gennorm(beta=0.6, scale=1),
    "gennorm 3": lambda: N.gennorm(beta=3, scale=1),
    "pareto 3": lambda: N.pareto(beta=3, scale=1),
    "pareto 1": lambda: N.pareto(beta=1, scale=1),
    "cauchy": lambda: N.cauchy(scale=1),
    "smooth step": lambda: N.from_density(_smooth_step, points=(-1, 1)),
}


@pytest.mark.parametrize("name", NOISES)
def test_the_chord_covers_the_total_variation(name: str) -> None:
    """For even unimodal noise TV(u) = 1 − 2F(−u/2): a supremum over events, so χ must cover it."""
    noise = NOISES[name]().unit
    u = np.concatenate([np.geomspace(0.02, 4.0, 60), [0.2]])
    tv = lambda at: 1.0 - 2.0 * noise.cdf(-np.asarray(at) / 2)  # noqa: E731
    for ratio in (0.02, 0.08, 0.3):
        low, high = u * (1 - ratio / 2), u * (1 + ratio / 2)
        excess = tv(u) - 0.5 * (tv(low) + tv(high))
        allowed = np.array([bound_excess(noise, float(w)) for w in high - low])
        assert np.all(excess <= allowed + 1e-12)


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("width", [1e-3, 1e-2, 0.1])
def test_the_chord_covers_the_event_that_is_worst_at_the_midpoint(name: str, width: float) -> None:
    """Its excess is γ(Δ), here from masses on a grid far finer than the noise's own."""
    noise = NOISES[name]().unit
    t = np.linspace(-25.0, 25.0, 60_001)
    z = 1e-5 * np.sinh(t)
    z = np.unique(
        np.concatenate([z, np.linspace(0.098, 0.102, 4001), -np.linspace(0.098, 0.102, 4001)])
    )
    mass = noise.cdf(z) - 0.5 * noise.cdf(z - width / 2) - 0.5 * noise.cdf(z + width / 2)
    excess = 0.5 * float(np.sum(np.abs(np.diff(mass))))
    # 70,000 differences of numbers up to 1, each right to 2e-16
    assert bound_excess(noise, width) >= excess - 2e-11


def _kernels(noise: IID, shifts: np.ndarray) -> tuple[Kernels, Mesh]:
    lattice = Mesh(0.01, -3.0, 5.0)
    return Kernels(noise, shifts, lattice, 0.05), lattice


def test_mass_at_infinity_is_covered_between_two_shifts() -> None:
    """Exponential noise moved down by u: L = ∞ with mass 1 − e^−u, concave in u.

    Far to the right of zero the finite part of K is nothing, so the chord of `infinite` alone has
    to cover it.
    """
    noise = N.from_density(lambda x: -x, support=(0, math.inf)).unit
    shifts = np.array([0.3, 0.45, 0.6])
    kernels, _ = _kernels(noise, shifts)
    infinite = [k.infinite for k in kernels.kernels]
    for k in range(2):
        middle = 0.5 * (shifts[k] + shifts[k + 1])
        assert 0.5 * (infinite[k] + infinite[k + 1]) >= -math.expm1(-middle)


@pytest.fixture(scope="module")
def laplace_flow() -> tuple[Flow, list, np.ndarray, np.ndarray, Mesh, float]:
    noise, p, kappa = N.laplace(scale=1).unit, 2.0, 1e-4
    shifts = np.geomspace(0.02, 0.4, 16)
    kernels, lattice = _kernels(noise, shifts)
    costs = shifts**p + kappa
    costs[0] = kappa
    lam = np.linspace(0, 1, 101)[None, :]
    at = (shifts[:-1, None] + lam * np.diff(shifts)[:, None]) ** p - shifts[:-1, None] ** p
    shares = np.max(lam - at / np.diff(shifts**p)[:, None], axis=1) + 1e-6
    limit = 0.3
    bell = np.exp(-0.5 * ((lattice.points - 0.005) / 0.1) ** 2)
    nodes = place_budgets(limit, limit + float(np.max(np.diff(costs))), 0.02, 20, float(costs[-1]))
    flow = construct(
        Generators(kernels.kernels, costs, lattice), bell / bell.sum(), nodes, len(costs) - 1
    )
    return flow, kernels.kernels, costs, shares, lattice, limit


def _lack(flow: Flow, rest: tuple) -> np.ndarray:
    kernels, costs, shares, lattice, limit = rest
    return np.interp(flow.nodes, *compute_surcharge(flow, kernels, costs, shares, lattice, limit))


def test_a_flow_that_grows_one_percent_too_slowly_is_found_out(laplace_flow: tuple) -> None:
    """The same Ψ at budgets 1 % later: the slack must pay for it."""
    flow, *rest = laplace_flow
    kernels, costs, shares, lattice, limit = rest
    slow = Flow(flow.nodes * 1.01, flow.masses, flow.bends)
    honest, late = _lack(flow, tuple(rest)), _lack(slow, (kernels, costs, shares, lattice, limit))
    psi = lattice.estimate_values(flow.masses)
    j = int(np.argmin(np.abs(lattice.points)))
    growth = float(psi[-1, j] - psi[0, j])
    assert late[-1] > honest[-1] + 0.003 * growth


def test_phi_does_not_fall_at_gamma_zero(laplace_flow: tuple) -> None:
    """At γ → 0 Φ + Ξ is the total of the masses plus Ξ; a supersolution cannot lose any of it."""
    flow, *rest = laplace_flow
    top = flow.masses.sum(axis=1) + _lack(flow, tuple(rest))
    assert np.all(np.diff(top)[flow.nodes[1:] <= rest[-1]] >= 0)
