"""Theorem (j): its ingredients against direct integration, its radii against exact ones."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pytest
from scipy import integrate, special

from unicr import noise
from unicr.noise import IID
from unicr.norms import Norm
from unicr.progress import listen
from unicr.radius.bellman import bellman_curve, bellman_radius
from unicr.radius.bellman._chord import bound_excess, bound_gaps
from unicr.radius.bellman._construct import Generators, construct, place_budgets
from unicr.radius.bellman._kernel import Kernels, make_both_laws
from unicr.radius.bellman._mesh import Mesh
from unicr.radius.bellman._verify import Flow, compute_surcharge, pay_lacks
from unicr.tradeoff import compute_tradeoff
from unicr.values import Array

KAPPA = 0.05**2
SHAPES = {
    "laplace": noise.laplace(scale=1),
    "gennorm .75": noise.gennorm(beta=0.75, scale=1),
    "gennorm 3": noise.gennorm(beta=3, scale=1),
    "cauchy": noise.cauchy(scale=1),
    "gumbel": noise.from_density(lambda x: -x - np.exp(-x)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("width", [0.003, 0.05, 0.7])
def test_no_event_lies_above_its_chord_by_more_than_chi(name: str, width: float) -> None:
    """∫(p(z − λΔ) − chord)₊ over a fine grid, the worst event of all, for several λ."""
    law = SHAPES[name].unit
    z = np.linspace(-30, 60, 900_001)
    dz = z[1] - z[0]
    lam = np.array([0.1, 0.25, 0.5, 0.8])
    left, right = law.pdf(z), law.pdf(z - width)
    worst = [
        float(np.sum(np.maximum(law.pdf(z - a * width) - (1 - a) * left - a * right, 0)) * dz)
        for a in lam
    ]
    assert max(worst) <= bound_excess(law, width) + 1e-9
    assert bound_excess(law, width) <= 4 * max(worst) + 1e-7


def _gaussian(s: float, x: Array) -> Array:
    return special.ndtr(s / 2 - x / s) - np.exp(x) * special.ndtr(-s / 2 - x / s)


@pytest.mark.parametrize("name", ["laplace", "gennorm 3", "cauchy", "gumbel"])
def test_a_kernel_is_above_what_a_coordinate_adds(name: str) -> None:
    """(A_u − 1)(G_s ⊗ Ψ) ≤ G_s ⊗ N_u at random ℓ, for every u in a cell of the grid, both signs."""
    law = SHAPES[name].unit
    s = 0.1
    lattice = Mesh(s / 5, -4.0, 6.0)
    shifts = np.array([0.02, 0.021, 0.3, 0.32, 1.2])
    kernels = Kernels(law, shifts, lattice, s).kernels
    rng = np.random.default_rng(5)
    mass = rng.random(lattice.count) * np.exp(-0.5 * (lattice.points - 0.4) ** 2)
    mass[rng.random(lattice.count) < 0.9] = 0.0
    mass /= mass.sum()
    at = rng.uniform(-2.0, 3.0, 40)
    fine = np.linspace(-6 * s, 6 * s, 2001)
    density = np.exp(-((fine - s * s / 2) ** 2) / (2 * s * s)) / (s * math.sqrt(2 * math.pi))
    # in a cell as wide as the last one the chord itself lies below
    for low, high in ((0, 1), (2, 3), (3, 4)):
        ends = []
        for k in (low, high):
            kernel = kernels[k]
            added = np.convolve(mass, kernel.weights)[kernel.reach :][: lattice.count]
            between = np.interp(np.exp(at[:, None] - fine), lattice.gamma, added)
            ends.append(integrate.trapezoid(between * density, fine, axis=1))
        for lam in (0.0, 0.3, 0.5, 1.0):
            u = float((1 - lam) * shifts[low] + lam * shifts[high])
            for ratio in make_both_laws(law, u):
                for x, bound in zip(
                    at, np.atleast_1d((1 - lam) * ends[0] + lam * ends[1]), strict=True
                ):
                    grid = x - lattice.points[:, None] - ratio.loss[None, :]
                    after = mass @ (_gaussian(s, grid) @ ratio.mass)
                    before = mass @ _gaussian(s, x - lattice.points)
                    assert after - before <= bound * (1 + 1e-5) + 1e-12


@lru_cache(maxsize=1)
def _example() -> tuple[Flow, list[object], Array, Array, Mesh, float]:
    law = noise.laplace(scale=1).unit
    r, s = 1.2, 0.06
    lattice = Mesh(s / 5, -5.0, 8.0)
    shifts = np.geomspace(0.05, 0.4, 24)
    costs = shifts**2 + KAPPA
    costs[0] = KAPPA
    kernels = Kernels(law, shifts, lattice, s).kernels
    start = np.exp(-0.5 * ((lattice.points - 0.002) / 0.06) ** 2)
    nodes = place_budgets(r, 1.2 * r, 0.004, 24, float(costs[-1]))
    flow = construct(Generators(kernels, costs, lattice), start / start.sum(), nodes, 23)
    shares = np.full(23, 0.012)
    return flow, list(kernels), costs, shares, lattice, r


def test_the_verifier_sees_a_flow_that_grows_too_slowly() -> None:
    flow, *rest = _example()
    least = float(np.max(compute_surcharge(flow, *rest)[1]))  # type: ignore[arg-type]
    assert least < 0.1
    slower = Flow(flow.nodes * 1.1, flow.masses, flow.bends)  # the same growth for more budget
    assert float(np.max(compute_surcharge(slower, *rest)[1])) > least + 0.005  # type: ignore[arg-type]
    frozen = Flow(flow.nodes, np.repeat(flow.masses[:1], len(flow.nodes), 0), 0 * flow.bends)
    assert float(np.max(compute_surcharge(frozen, *rest)[1])) > 0.5  # type: ignore[arg-type]


def test_the_slack_pays_for_every_step() -> None:
    """Ξ(E + c(u)) − Ξ(E) against the chord of the lacks, for random lacks, budgets and shifts."""
    rng = np.random.default_rng(3)
    for p in (0.5, 1.0, 2.0, 5.0):
        u = np.geomspace(0.01, 0.6, 30)
        costs = u**p + 1e-4
        nodes = np.concatenate([[0.0], np.cumsum(np.geomspace(1e-4, 0.2, 25))])
        lack = rng.random((30, 25)) * (rng.random((30, 25)) < 0.05) * rng.choice([1e-6, 1e-3])
        falls = rng.random(25) * 1e-4
        lam = np.linspace(0, 1, 101)
        share = (u[:-1] + lam[:, None] * np.diff(u)) ** p - u[:-1] ** p
        shares = np.maximum(np.max(lam[:, None] - share / np.diff(u**p), axis=0), 0) + 1e-9
        fine, extra = pay_lacks(nodes, costs, shares, lack, falls)
        slopes = np.repeat(falls, len(fine) // len(falls))
        assert np.all(np.diff(extra) >= slopes * np.diff(fine) - 1e-15)
        at = rng.uniform(0, nodes[-1], 20_000)
        k, part = rng.integers(0, 29, at.size), rng.random(at.size)
        after = at + (u[k] + part * (u[k + 1] - u[k])) ** p + 1e-4
        kept = after <= nodes[-1]
        e = np.searchsorted(nodes, at, side="right") - 1
        due = (1 - part) * lack[k, e] + part * lack[k + 1, e]
        paid = np.interp(after, fine, extra) - np.interp(at, fine, extra)
        assert np.all((paid >= due - 1e-14)[kept])


@pytest.mark.parametrize("name", ["laplace", "gennorm 3", "gennorm 1.2"])
def test_log_concave_hockey_sticks_bend_no_more_than_said(name: str) -> None:
    """H_γ(T_u) by direct integration: above its chord by at most `gaps`, beyond the reach by 0."""
    law = (SHAPES | {"gennorm 1.2": noise.gennorm(beta=1.2, scale=1)})[name].unit
    z = np.linspace(-24, 24, 96_001)
    dz = z[1] - z[0]
    tight = 0.0
    for low, high in ((0.05, 0.07), (0.4, 0.5), (1.0, 1.6)):
        (allowed,), (reach,) = bound_gaps(law, np.array([low, high]))

        def stick(u: float, w: float) -> float:
            return float(np.sum(np.maximum(law.pdf(z - u) - math.exp(w) * law.pdf(z), 0)) * dz)

        for w in (0.0, 0.5 * reach, -0.5 * reach, 0.97 * reach, 1.01 * reach, -1.3 * reach):
            ends = stick(low, w), stick(high, w)
            for a in (0.25, 0.5, 0.75):
                excess = stick((1 - a) * low + a * high, w) - (1 - a) * ends[0] - a * ends[1]
                assert excess <= (allowed if abs(w) <= reach else 0.0) + 1e-7
                tight = max(tight, excess / allowed)
    assert tight > 0.2


def test_the_verifier_refuses_what_is_not_convex() -> None:
    flow, kernels, costs, shares, lattice, limit = _example()
    masses = flow.masses.copy()
    masses[3, np.argmax(masses[3])] *= -1
    concave = Flow(flow.nodes, masses, flow.bends)
    with pytest.raises(ValueError, match="masses"):
        compute_surcharge(concave, kernels, costs, shares, lattice, limit)  # type: ignore[arg-type]


def test_a_composition_stays_below_its_flow() -> None:
    """Hockey-sticks of real perturbations, composed by another engine, lie below Φ + Ξ."""
    flow, kernels, costs, shares, lattice, limit = _example()
    law = noise.laplace(scale=1).unit
    paid = compute_surcharge(flow, kernels, costs, shares, lattice, limit)  # type: ignore[arg-type]
    extra = np.interp(flow.nodes, *paid)
    s = 0.06
    for shift, count in ((0.4, 4), (0.2, 20), (0.07, 120)):
        budget = count * (shift**2 + KAPPA)
        e = int(np.searchsorted(flow.nodes, budget))
        assert budget <= limit
        for alpha in (0.3, 0.1, 0.02):
            truth = float(compute_tradeoff(law, [(shift, count)], spread=1e-6).beta(alpha))
            x = lattice.points
            phi = _gaussian(s, x[:, None] - x[None, :]) @ flow.masses[e] + extra[e]
            assert float(np.max(1 - np.exp(x) * alpha - phi)) <= truth + 1e-5


TWO_HUMPS = noise.from_density(lambda x: np.logaddexp(-((x - 1.2) ** 2) / 2, -((x + 1.2) ** 2) / 2))
CASES = [
    # noise, p, dim, p_A, p_B, exact radius or None, least share of it or of the search
    (noise.gennorm(beta=2, sigma=1), 2.0, 3072, 0.9, 0.1, float(special.ndtri(0.9)), 0.98),
    (noise.laplace(scale=1), 1.0, 50, 0.99, 0.01, -math.log(0.02), 0.97),
    (noise.laplace(scale=1), 2.0, 3072, 0.9, 0.02, 1.67600, 0.965),
    (noise.pareto(beta=3, scale=1), 1.0, 3072, 0.9, 0.1, 0.60232, 0.97),
    (TWO_HUMPS, 2.0, 10, 0.9, 0.1, 1.79487, 0.95),
    # the chord between two largest coordinates alone would leave .94
    (noise.gennorm(beta=0.75, sigma=1), 1.0, 3072, 0.99, 0.01, 2.63114, 0.97),
    # the smallest shift, .27 of r, lies above the first of the largest coordinates
    (noise.gennorm(beta=3, scale=1), 8.0, 10, 0.9, 0.1, 0.31335, 0.95),
]


HEAVY = [pytest.mark.slow, pytest.mark.important]


@pytest.mark.parametrize(
    "case",
    [pytest.param(one, marks=HEAVY if i in (4, 5, 6) else []) for i, one in enumerate(CASES)],
    ids=lambda c: f"{c[0].text} l{c[1]:g} d{c[2]} {c[3]}",
)
def test_radii_are_below_the_truth_and_close(
    case: tuple[IID, float, int, float, float, float, float],
) -> None:
    law, p, dim, p_a, p_b, truth, share = case
    found = bellman_radius(law.unit, Norm(p), dim, p_a, p_b) * law.scale
    assert share * truth <= found <= truth * (1 + 1e-5)


def test_a_radius_that_is_asked_for_again_is_the_same() -> None:
    """Splits of the first call stayed, and the second found more: two numbers for one question."""
    unit = noise.laplace(scale=1).unit
    found = [bellman_radius(unit, Norm(2.0), 784, 0.9, 0.1) for _ in range(2)]
    assert found[0] == found[1] > 1.27


@pytest.mark.slow
@pytest.mark.important
def test_a_curve_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line for each scale, to whoever listens, and to nobody else afterwards."""
    monkeypatch.setattr("unicr.radius.bellman._radius.SMALLEST_PROBIT", 5.0)
    heard: list[tuple[str, float, float | None, str]] = []
    with listen(lambda *words: heard.append(words)):
        bellman_curve(noise.laplace(scale=1).unit, Norm(1.5), 2)
    bellman_curve(noise.laplace(scale=1).unit, Norm(1.5), 2)
    task = "building the l1.5 curve, once"
    assert heard == [(task, k, 2, task) for k in (1, 2)]
