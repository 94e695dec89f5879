"""The cells of the log-ratio against brute force on the raw density; what is not seen costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from unicr import noise
from unicr.noise import IID, from_density
from unicr.tradeoff import RatioLaw, make_ratio_law
from unicr.tradeoff._envelope import hockey_stick
from unicr.tradeoff._ratio import EPS, _place_edges
from unicr.tradeoff.internal import make_ratio_cells

Array = NDArray[np.float64]
T = np.array([-3.0, -1.0, -0.3, -0.01, 0.0, 0.02, 0.4, 1.0, 2.5])


def step(width: float) -> Callable[[Array], Array]:
    def logpdf(x: Array) -> Array:
        return -special.expit((np.abs(x) - 0.7) / width) - np.maximum(np.abs(x) - 1.5, 0)

    return logpdf


def hollow(x: Array) -> Array:
    return np.where(np.abs(x) < 1, -np.inf, -np.abs(x))


def histogram(x: Array) -> Array:
    heights = np.log(np.array([1.0, 3.0, 0.5, 2.0, 0.1, 4.0, 1.5, 0.7]))
    index = np.clip(np.floor((x + 2) * 2), 0, 7).astype(int)
    return np.where(np.abs(x) < 2, heights[index], -np.inf)


def comb(x: Array) -> Array:
    return np.where((np.abs(x) <= 0.2) | (np.abs(np.abs(x) - 1) <= 0.2), 0.0, -np.inf)


def lopsided(x: Array) -> Array:
    return np.logaddexp(-np.abs(x), -0.5 * ((x - 3) / 0.05) ** 2)


def spike(x: Array) -> Array:
    return np.logaddexp(-(x**2) / 2, 3 - 0.5 * ((x - 0.4) / 1e-4) ** 2)


DENSITIES: dict[str, tuple[Callable[[Array], Array], tuple[float, ...]]] = {
    "step": (step(1e-3), (-1.5, 1.5)),
    "sharper step": (step(1e-5), (-1.5, 1.5)),
    "hole": (hollow, ()),
    "histogram": (histogram, ()),
    "comb": (comb, ()),
    "lopsided": (lopsided, ()),
    "spike": (spike, (0.4,)),
}
SHIFTS = (1e-3, 0.5, 2.3, -0.37)


def brute_force(logpdf: Callable[[Array], Array], shift: float, t: Array) -> Array:
    """H at exp(t) by the midpoint rule on 2.4 million cells of the user's raw density."""
    x = np.asarray((np.arange(-1_200_000, 1_200_000) + 0.5) * 2e-5, dtype=np.float64)
    p, q = np.exp(logpdf(x)), np.exp(logpdf(x - shift))
    total = p.sum()
    return np.array([np.maximum(q - math.exp(v) * p, 0.0).sum() / total for v in t])


@pytest.fixture(scope="module")
def tabulated() -> dict[str, IID]:
    return {k: noise.from_density(f, points=points) for k, (f, points) in DENSITIES.items()}


@pytest.mark.parametrize("name", DENSITIES)
def test_users_densities_against_brute_force(name: str, tabulated: dict[str, IID]) -> None:
    for shift in SHIFTS[::2] if name == "spike" else SHIFTS:
        truth = brute_force(DENSITIES[name][0], shift, T)
        for bound, sign in (("lower", 1.0), ("upper", -1.0)):
            got = hockey_stick(make_ratio_law(tabulated[name], shift, bound=bound), T)
            assert np.all(sign * (got - truth) >= -1e-5), (shift, bound)
            np.testing.assert_allclose(got, truth, atol=1e-4)


FAMILIES = [
    noise.gaussian(sigma=1),
    noise.gennorm(beta=0.3, scale=1),
    noise.gennorm(beta=4.5, scale=1),
    noise.cauchy(scale=1),
    noise.pareto(beta=1, scale=1),
    noise.lapgauss(beta=0.3, scale=1),
    noise.uniform(scale=1),
    noise.laplace(scale=1).truncated(-1, 2),
]


@pytest.mark.parametrize("one", FAMILIES, ids=str)
@pytest.mark.parametrize("shift", [1e-9, -1e-3, 0.3, 1.9, -30.0])
def test_cells_hold_their_masses(one: IID, shift: float) -> None:
    cells = make_ratio_cells(one, shift, 1e-4)
    assert np.all(np.isfinite(cells.low))
    assert np.all(np.isfinite(cells.high))
    with np.errstate(over="ignore"):
        assert np.all(cells.q <= cells.p * np.exp(cells.high) * (1 + 1e-14))
        assert np.all(cells.q >= cells.p * np.exp(cells.low) * (1 - 1e-14))
    assert math.fsum(cells.q) + cells.infinite == pytest.approx(1, abs=4e-15)
    assert math.fsum(cells.p) <= 1 + 2e-15
    if one.facts.positive and abs(shift) < 2:
        assert cells.infinite < 1e-14
        assert math.fsum(cells.p) == pytest.approx(1, abs=1e-14)
    law = cells.law()
    assert np.sum(law.mass * np.exp(-law.loss)) == pytest.approx(math.fsum(cells.p), abs=1e-13)


@pytest.mark.parametrize("shift", [0.37, -1.0, 2.0**-40])
def test_beside_jumps_nothing_is_asked(shift: float) -> None:
    """Far from zero, where a place is known to 1e-10 only: every cell that is asked keeps away from
    jumps of both copies, and the mass beside them counts as infinite.
    """
    far = 1e6
    one = noise.from_density(
        lambda x: np.where(x < far + 1, 0.0, 1.0), support=(far, far + 2), points=(far + 1,)
    )
    unit = one.law.jumps
    np.testing.assert_allclose(np.sort(unit), [far, far + 1, far + 2], rtol=1e-12)
    edges, asked = _place_edges(one, shift, None)
    for jump in np.concatenate([unit, unit + shift]):
        near = (edges[:-1] <= jump + 8 * EPS * far) & (edges[1:] >= jump - 8 * EPS * far)
        assert not np.any(near & asked)
    cells = make_ratio_cells(one, shift, 1e-3)
    assert 1 - 1e-12 <= math.fsum(cells.q) + cells.infinite <= 1 + 1e-12
    assert math.fsum(cells.p) <= 1 + 1e-12


@pytest.mark.parametrize("one", [n for n in FAMILIES if n.facts.unimodal], ids=str)
@pytest.mark.parametrize("shift", [0.02, -0.8, 3.0])
def test_ranges_hold_what_the_ratio_takes(one: IID, shift: float) -> None:
    """The Q-mass with L > t from 400,001 points lies between what the cells' ends allow."""
    cells = make_ratio_cells(one, shift, 1e-4)
    u = (np.arange(400_001) + 0.5) / 400_001
    z = one.ppf(u) + shift
    with np.errstate(invalid="ignore"):
        ratio = one.logpdf(z - shift) - one.logpdf(z)
    finite = ratio[np.isfinite(ratio)]
    for t in np.quantile(finite, [0.05, 0.3, 0.6, 0.95]) if finite.size else [0.0]:
        for at, ends, side in ((t, cells.low, 1), (t, cells.high, -1)):
            share = float(np.sum(cells.q[ends > at])) + cells.infinite
            seen = np.mean(ratio > at - side * 1e-9)
            assert side * (seen - share) >= -1e-5


@pytest.mark.parametrize(
    ("width", "dim", "truth"), [(1e-3, 3072, 0.002818), (1e-4, 150_528, 0.0001213)]
)
def test_a_smooth_step_between_quantiles_is_seen(width: float, dim: int, truth: float) -> None:
    """It was not: five points in cells between quantiles gave .015528 and fifty times too much."""
    from unicr.radius import certified_radius

    one = noise.from_density(step(width), points=(-1.5, 1.5))
    found = certified_radius(one, "linf", dim=dim, p_a=0.9)
    assert found.proved == pytest.approx(truth, rel=1e-3)


def test_a_hole_is_infinite_loss() -> None:
    """Half of each lobe next to the hole moves into it: Q-mass 1 − e^−u, divided by two."""
    one: Any = noise.from_density(hollow)
    for shift in (0.1, -0.5, 1.0):
        expected = 0.5 * -math.expm1(-abs(shift))
        assert make_ratio_cells(one, shift).infinite == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("shift", [-1e-6, -0.3])
def test_edges_that_rounding_moved_do_not_split_a_cell_for_ever(shift: float) -> None:
    """L is constant where both e^(−x) are; a cell near an end is narrower than edges are known."""
    half = noise.from_density(lambda x: -x, support=(0, np.inf))
    cells = make_ratio_cells(half.unit, shift)
    assert cells.low.size < 500
    # the mass that the shift uncovers, of the table that is certified and of the typed density
    uncovered = float(half.unit.cdf(np.array([-shift]))[0])
    assert uncovered <= cells.infinite <= uncovered + 1e-12
    assert cells.infinite == pytest.approx(-np.expm1(shift), rel=1e-6)


@pytest.mark.parametrize("shift", [2.0**-10, 0.25, -1.0])
def test_a_law_far_from_zero_is_told_from_its_shift_at_least_as_easily(shift: float) -> None:
    """Around 2^23 places are 2e-9 apart: what edges misplace is charged."""

    def make(middle: float) -> RatioLaw:
        def logpdf(x: Array) -> Array:
            return np.where(x < middle, 3 * (x - middle), middle - x)

        return make_ratio_law(from_density(logpdf, points=[middle], name="skew"), shift)

    near, far = make(0.0), make(2.0**23)
    for t in np.linspace(-2.5, 2.5, 41) * abs(shift):
        here, there = (
            math.fsum((law.mass * np.maximum(-np.expm1(t - law.loss), 0.0)).tolist()) + law.infinite
            for law in (near, far)
        )
        assert there >= here - 1e-13
