"""Jumps apart: the split of a pair, the staircase around sums, radii that are known exactly."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize, special

from unicr import noise
from unicr.noise import from_density
from unicr.norms import Norm, l1
from unicr.radius import certified_radius
from unicr.radius.bellman import bellman_radius
from unicr.radius.bellman._apart import ApartSheet, StepGrids
from unicr.radius.bellman._jumps import list_corners, list_laws, split_law
from unicr.radius.bellman._mesh import Mesh
from unicr.tradeoff import RatioLaw
from unicr.values import Array


def tradeoff_of_atoms(law: RatioLaw, alpha: float) -> float:
    """T(α) by Neyman and Pearson: the largest ratios first, infinite ones for nothing."""
    order = np.argsort(-law.loss)
    p, q = (law.mass * np.exp(-law.loss))[order], law.mass[order]
    spent = np.concatenate([[0.0], np.cumsum(p)])
    power = np.concatenate([[0.0], np.cumsum(q)]) + law.infinite
    return 1.0 - float(np.interp(alpha, spent, power))


def draw_law(rng: np.random.Generator) -> RatioLaw:
    """A pair with a part of Q that P has not, and a part of P that Q has not."""
    loss = np.sort(rng.normal(0.0, 1.5, 12))
    mass = rng.dirichlet(np.ones(12)) * rng.uniform(0.5, 1.0)
    p = float(np.sum(mass * np.exp(-loss)))
    loss = loss + math.log(p / rng.uniform(0.5, 1.0))
    return RatioLaw(loss, mass, 1.0 - float(np.sum(mass)))


@pytest.mark.parametrize("widest", [0.3, 1.0, math.inf])
def test_a_pair_is_its_jump_times_its_finite_part(widest: float) -> None:
    """Exactly where nothing is cut off, and never above what the pair itself has."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        law = draw_law(rng)
        finite, jump = split_law(law, widest)
        assert float(np.sum(finite.mass)) == pytest.approx(1.0, abs=1e-12)
        assert float(np.sum(finite.mass * np.exp(-finite.loss))) == pytest.approx(1.0, abs=1e-12)
        for alpha in (0.01, 0.1, 0.4):
            whole = tradeoff_of_atoms(law, alpha)
            inside = min(1.0, alpha * math.exp(jump.left))
            apart = math.exp(-jump.gone) * tradeoff_of_atoms(finite, inside)
            assert apart <= whole + 1e-12
            if math.isinf(widest):
                assert apart == pytest.approx(whole, abs=1e-9)


def test_no_choice_of_coordinates_gets_past_every_corner() -> None:
    rng = np.random.default_rng(2)
    for _ in range(30):
        rates, costs = rng.exponential(size=(8, 2, 2)), rng.uniform(0.2, 1.0, 8)
        first, budget = rng.exponential(size=(2, 2)), 5.0
        gone, left = list_corners(rates, costs, first, budget)
        for _ in range(40):
            total, rest = first[rng.integers(2)].copy(), budget
            skew = rng.choice(8, size=rng.integers(1, 4))
            while True:
                k = int(rng.choice(skew))
                if costs[k] > rest:
                    break
                rest -= costs[k]
                total += rates[k, rng.integers(2)]
            assert np.any((gone >= total[0]) & (left >= total[1]))


def test_corners_hold_sums_that_spend_all_exactly() -> None:
    """A rate of a alone and one of b alone: every split (t, 5 − t) of the budget can be reached."""
    rates = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    gone, left = list_corners(rates, np.ones(1), np.zeros((2, 2)), 5.0)
    for t in np.linspace(0.0, 5.0, 998):
        assert np.any((gone >= t) & (left >= 5.0 - t))
    # and no corner is farther out than one stair
    assert np.all(gone + left <= 5.0 + 5.0 / 60 + 1e-9)


def test_the_first_coordinate_is_in_every_corner() -> None:
    rates = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    first = np.array([[2.0, 1.0], [2.0, 1.0]])
    gone, left = list_corners(rates, np.ones(1), first, 5.0)
    assert np.any((gone >= 7.0) & (left >= 1.0))
    assert np.any((gone >= 2.0) & (left >= 6.0))


def test_a_line_is_read_with_both_jumps() -> None:
    """T(α) = e^(−a) T′(α e^b), T′ of normal laws a shift of 1.5 apart; never above it."""
    t = np.linspace(-9.0, 9.0, 451)
    values = special.ndtr(0.75 - t / 1.5) - np.exp(t) * special.ndtr(-0.75 - t / 1.5)
    gone, left = np.array([0.0, 0.1, 0.3, 0.6]), np.array([0.5, 0.2, 0.1, 0.0])

    def tradeoff(alpha: Array) -> Array:
        return np.exp(-gone) * special.ndtr(-special.ndtri(alpha * np.exp(left)) - 1.5)

    read = ApartSheet._read_line
    for level in (0.02, 0.1, 0.3):
        got = read(None, values, np.exp(t), gone, left, level)  # type: ignore[arg-type]
        assert np.all(got <= tradeoff(np.full(4, level)) + 1e-12)
        assert np.all(got >= tradeoff(np.full(4, level)) - 2e-3)
    got = read(None, values, np.exp(t), gone, left, None)  # type: ignore[arg-type]
    inside = special.ndtr(-special.ndtri(0.5 * np.exp(gone[:3])) - 1.5)  # e^0.6/2 is near 1
    assert np.all(got[:3] <= inside * np.exp(-left[:3]) + 1e-12)
    assert np.all(got[:3] >= inside * np.exp(-left[:3]) - 2e-3)


def test_a_step_costs_what_the_smallest_shift_of_its_cell_does() -> None:
    unit = noise.parse("laplace(scale=1)").iid
    assert unit is not None
    mesh = Mesh(0.012, -1.5, 2.5)
    sheet = SimpleNamespace(
        unit=unit, p=2.0, dim=50, r=1.0, kappa=1e-3, mesh=mesh, shift=1.0, widest=1.5
    )
    grids = StepGrids(sheet, 1)  # type: ignore[arg-type]
    assert grids.costs[0] == sheet.kappa
    np.testing.assert_allclose(grids.costs[1:], grids.shifts[:-1] ** 2 + sheet.kappa, rtol=1e-14)
    assert len(grids.kernels) == len(grids.costs) == len(grids.steps.jumps)
    assert grids.shifts[-1] == sheet.r
    # a step stands for the largest shift of its cell
    law = list_laws(unit, float(grids.shifts[-1]))[0]
    _, jump = split_law(law, sheet.widest)
    assert tuple(grids.steps.jumps[-1, 0]) == (jump.gone, jump.left)


def test_both_signs_of_a_shift_are_listed() -> None:
    """e^(−x) moved right leaves P a mass that Q has not; moved left it is the other way."""
    unit = from_density(lambda x: -np.asarray(x), support=(0, math.inf)).unit
    split = [split_law(law, math.inf)[1] for law in list_laws(unit, 0.3)]
    jumps = [(one.gone, one.left) for one in split]
    np.testing.assert_allclose(jumps, [(0.0, 0.3), (0.3, 0.0)], atol=1e-5)


@pytest.mark.slow
def test_the_exponential_law_is_known_exactly() -> None:
    """Only the sums of both signs' shifts matter; to the left is worse: R = log 2p_A in l1."""

    def logpdf(x: Array) -> Array:
        return -np.asarray(x)

    unit = from_density(logpdf, support=(0, math.inf)).unit
    proved = bellman_radius(unit, l1, 784, 0.51, 0.49)
    assert 0.7 * math.log(1.02) < proved <= math.log(1.02)


def find_total_variation(u: float, dim: int) -> float:
    """Σ TV of dim coordinates of Gamma(½) that move by u/dim each: a falling density on a half-line
    moved by u leaves the mass of (0, u) behind.
    """
    return dim * math.erf(math.sqrt(u / dim))


def test_a_pole_at_the_end_of_a_half_line_has_a_radius() -> None:
    """T(α) ≥ 1 − α − TV, and √ is concave: TV ≤ 0.01 wherever equal shifts have no more."""

    def logpdf(x: Array) -> Array:
        return -0.5 * np.log(np.abs(x)) - x

    law = from_density(logpdf, support=(0, math.inf), points=(0,))
    found = certified_radius(law, 1, 2, p_a=0.51)
    certain = float(optimize.brentq(lambda u: find_total_variation(u, 2) - 0.01, 1e-9, 1e-2))
    assert 0.995 * certain <= found.proved <= found.searched <= 1.02 * certain


@pytest.mark.slow
@pytest.mark.parametrize(("p", "dim", "p_a"), [(2.0, 784, 0.9), (4.0, 3072, 0.6), (1.5, 10, 0.99)])
def test_a_uniform_law_that_nobody_recognises(p: float, dim: int, p_a: float) -> None:
    """(k) has its radius by formula."""

    def logpdf(x: Array) -> Array:
        return np.zeros_like(np.asarray(x, dtype=np.float64))

    truth = certified_radius(noise.uniform(scale=1), p, dim, p_a=p_a).proved
    unit = from_density(logpdf, support=(-1, 1)).unit
    assert 0.8 * truth < bellman_radius(unit, Norm(p), dim, p_a, 1.0 - p_a) <= truth


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exponent", "ends", "p", "p_a", "least"),
    [(1.0, (-1, 2), 4, 0.51, 0.8), (0.3, (-5, 5), 4, 0.9, 0.8)],
)
def test_truncated_noise_in_a_large_dimension(
    exponent: float, ends: tuple[float, float], p: float, p_a: float, least: float
) -> None:
    def logpdf(x: Array) -> Array:
        return -(np.abs(x) ** exponent)

    law = from_density(logpdf, support=ends, points=(0,))
    found = certified_radius(law, p, 150_528, p_a=p_a)
    assert least * found.searched < found.proved <= found.searched


def test_a_pair_without_jumps_is_charged_for_the_rounding_of_its_masses() -> None:
    _, jump = split_law(RatioLaw(np.zeros(1), np.ones(1), 0.0), math.inf)
    assert jump.gone > 2 * np.finfo(float).eps < jump.left


@pytest.mark.parametrize("i", [0, 1])
def test_a_cell_is_read_at_its_larger_end(i: int) -> None:
    """Its flow, the jump of its first coordinate and its steps are those of the larger end; the
    budget is charged, and the worst corner counts.
    """
    asked: list[Array] = []

    def flow(k: int) -> SimpleNamespace:
        def read(budgets: Array, columns: slice) -> Array:
            asked.append(budgets)
            return np.full((1, 3), float(k))

        return SimpleNamespace(effort=1, read=read)

    shifts = np.array([0.1, 0.3, 0.4, 0.7, 1.0])
    jumps = np.arange(1.0, 6.0)[:, None, None] * np.ones((5, 2, 2))
    steps = SimpleNamespace(shifts=shifts, steps=SimpleNamespace(jumps=jumps), costs=np.ones(5))
    read: list[tuple[float, float]] = []

    def read_line(values: Array, gamma: Array, gone: Array, left: Array, level: object) -> Array:
        read.append((float(values[0]), float(np.max(gone))))
        return np.linspace(0.9, 0.4, len(gone))

    sheet = SimpleNamespace(
        largest=[0.0, 0.35, 1.0],
        flows=[flow(k) for k in range(3)],
        mesh=SimpleNamespace(gamma=np.ones(3)),
        grids={1: steps},
        _cut_cell=lambda i, r: (np.array([2.0, 1.5]), None),
        _split_first=lambda k: ([], np.full((2, 2), 100.0 * k)),
        _read_line=read_line,
    )
    assert ApartSheet._bound_cell(sheet, i, 1.0, None) == 0.4  # type: ignore[arg-type]
    for budget, one in zip((2.0, 1.5), asked, strict=True):
        assert budget < one[0] <= budget * (1 + 1e-9)
    # the largest step of cell 0 lies in (0.3, 0.4], which costs 1 and jumps by 3
    rate, first, at = (3.0, 0.0, 0.0) if i == 0 else (5.0, 200.0, 2.0)
    assert [value for value, _ in read] == [at, at]
    assert [gone for _, gone in read] == pytest.approx([2 * rate + first, 1.5 * rate + first])
