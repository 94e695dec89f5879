"""One dimension, any density: every shift below the radius is certified, and hardly any beyond.

The oracle computes T of a histogram by sorting likelihood ratios on the common refinement of both
sets of edges: exact but for rounding, and no code of the package is in it.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from unicr import noise
from unicr.noise import IID, from_density
from unicr.radius import Evidence, Grade, Question, certified_radius
from unicr.radius.bellman import bound_gaps, list_kinks
from unicr.radius.bellman._chord import find_falling_reach
from unicr.radius.theorems import envelope
from unicr.tradeoff import RatioLaw, compose, make_ratio_law
from unicr.tradeoff._envelope import hockey_stick
from unicr.values import Array


def make_histogram(edges: Array, heights: Array) -> IID:
    def logpdf(x: Array) -> Array:
        x = np.asarray(x, dtype=np.float64)
        cell = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(heights) - 1)
        with np.errstate(divide="ignore"):
            value = np.log(heights[cell])
        return np.where((x >= edges[0]) & (x <= edges[-1]), value, -np.inf)

    ends = (float(edges[0]), float(edges[-1]))
    return from_density(logpdf, support=ends, points=edges[1:-1].tolist())


def tradeoff_of_histogram(edges: Array, heights: Array, shift: float, alpha: float) -> float:
    """T(α) of the histogram against itself moved by `shift` (Neyman and Pearson)."""
    return tradeoff_of_masses(*pair_of_histogram(edges, heights, shift), alpha)


def tradeoff_of_masses(p: Array, q: Array, alpha: float) -> float:
    """T(α) of finitely many cells: the largest ratios first."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(np.where(q > 0, p / q, np.inf), kind="stable")
    p, q = p[order], q[order]
    spent = np.concatenate([[0.0], np.cumsum(p)])
    power = np.concatenate([[0.0], np.cumsum(q)])
    return 1.0 - float(np.interp(alpha, spent, power))


def pair_of_histogram(edges: Array, heights: Array, shift: float) -> tuple[Array, Array]:
    """P- and Q-masses of the cells of both sets of edges."""
    heights = heights / np.sum(heights * np.diff(edges))
    cuts = np.unique(np.concatenate([edges, edges + shift]))
    middle, width = 0.5 * (cuts[1:] + cuts[:-1]), np.diff(cuts)

    def mass(at: Array) -> Array:
        cell = np.searchsorted(edges, at, side="right") - 1
        inside = (cell >= 0) & (cell < len(heights))
        return np.where(inside, heights[np.clip(cell, 0, len(heights) - 1)], 0.0) * width

    return mass(middle), mass(middle - shift)


HISTOGRAMS = {
    "three intervals": ([0.0, 1.0, 1.5, 2.5, 4.0, 5.0], [1.0, 0.0, 1.0, 0.0, 1.0]),
    "a hole": ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 0.0, 3.0, 1.0]),
    "two towers": ([-3.0, -2.0, 0.0, 0.25, 4.0], [1.0, 0.2, 3.0, 0.1]),
}


@pytest.mark.parametrize(
    ("name", "p_a"),
    [
        ("a hole", 0.95),
        *(
            pytest.param(name, p_a, marks=pytest.mark.slow)
            for name, p_a in product(HISTOGRAMS, (0.6, 0.9, 0.999))
        ),
    ],
)
def test_every_shift_below_the_radius_holds_and_one_just_beyond_fails(
    name: str, p_a: float
) -> None:
    edges, heights = (np.array(one) for one in HISTOGRAMS[name])
    found = certified_radius(make_histogram(edges, heights), 2, 1, p_a=p_a)
    assert found.theorem.startswith("(q)")
    assert found.grade is Grade.FLOATING_POINT  # χ of a table is enclosed, between its knots

    def worst(r: float) -> float:
        return min(tradeoff_of_histogram(edges, heights, s * r, 1 - p_a) for s in (1.0, -1.0))

    assert min(worst(r) for r in np.linspace(0, found.proved, 2001)[1:]) >= 0.5
    assert min(worst(found.proved * (1 + x)) for x in np.linspace(0, 2e-3, 21)) < 0.5
    assert found.guarantee == "exact"


def test_a_dip_between_two_good_shifts_is_not_stepped_over() -> None:
    """A tower falls into a hole at a shift of about 2; on either side of that it is hard to see."""
    edges, heights = np.array([0, 5, 5.05, 7, 7.05, 10.0]), np.array([1, 140, 1, 0, 1.0])
    p_a = 0.999

    def worst(r: float) -> float:
        return min(tradeoff_of_histogram(edges, heights, s * r, 1 - p_a) for s in (1.0, -1.0))

    assert worst(1.94) > 0.6 < worst(2.06)
    grid = np.linspace(1.94, 2.06, 1201)
    first = grid[int(np.argmax([worst(r) < 0.5 for r in grid]))]
    found = certified_radius(make_histogram(edges, heights), 1, 1, p_a=p_a)
    assert first * (1 - 1e-3) <= found.proved <= first


def measure_stick(edges: Array, heights: Array, shift: float, gamma: float) -> float:
    """H_γ of a histogram and itself moved by `shift`: a sum over its cells."""
    p, q = pair_of_histogram(edges, heights, shift)
    return float(np.sum(np.maximum(q - gamma * p, 0.0)))


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_a_histogram_has_straight_hockey_sticks_between_its_kinks(name: str) -> None:
    """And no excess is charged there; a cell with a kink inside pays."""
    edges, heights = (np.array(one) for one in HISTOGRAMS[name])
    unit = make_histogram(edges, heights).unit
    kinks = list_kinks(unit, 0.0, 20.0, 1000)
    assert kinks is not None
    ends = np.concatenate([[0.0], kinks])
    assert np.max(bound_gaps(unit, ends)[0]) < 1e-12
    bends = 0.0
    for gamma in (0.3, 0.9, 1.0, 1.7):
        at = np.array([measure_stick(edges, heights, u, gamma) for u in ends])
        for k in range(len(ends) - 1):
            middle = measure_stick(edges, heights, 0.3 * ends[k] + 0.7 * ends[k + 1], gamma)
            assert middle == pytest.approx(0.3 * at[k] + 0.7 * at[k + 1], abs=1e-12)
        slope = np.diff(at) / np.diff(ends)
        bends = max(bends, float(np.max(slope[:-1] - slope[1:])))
    assert bends > 0.01
    for k in range(1, len(ends) - 1):
        assert bound_gaps(unit, np.array([ends[k - 1], ends[k + 1]]))[0][0] > 1e-4


def test_shifts_below_the_first_kink_of_a_histogram_are_told_apart_less_than_longer_ones() -> None:
    """By their hockey-sticks; beyond it nobody knows, nor of a smooth density with two modes."""
    edges, heights = (np.array(one) for one in HISTOGRAMS["a hole"])
    unit = make_histogram(edges, heights).unit
    kinks = list_kinks(unit, 0.0, 20.0, 1000)
    assert kinks is not None
    reach = find_falling_reach(unit)
    assert 0.999 * kinks[0] < reach < kinks[0]
    for gamma in (0.5, 1.0, 2.0):
        sticks = [measure_stick(edges, heights, u * reach, gamma) for u in (0.1, 0.5, 1.0)]
        assert sticks == sorted(sticks)
    modes = from_density(lambda x: np.logaddexp(-0.5 * (x - 3) ** 2, -0.5 * (x + 3) ** 2))
    assert find_falling_reach(modes.unit) == 0
    assert find_falling_reach(noise.laplace(scale=1)) == math.inf


def test_an_envelope_of_shifts_is_charged_for_what_lies_between_them() -> None:
    """Two modes: at the shifts it was made of the charge is not needed, elsewhere it pays."""
    modes = from_density(lambda x: np.logaddexp(-2 * (x - 2) ** 2, -2 * (x + 2) ** 2)).unit
    bound = envelope.match(Question(modes, math.inf, 3))
    assert bound is not None
    up, _, both = bound._make_laws(1.0)
    t = np.linspace(-3, 3, 61)
    gaps, _ = bound_gaps(modes, np.append(0.0, bound._place_shifts(1.0)))
    assert 1e-6 < np.max(gaps) <= min(up.charge, both.charge) < 0.05
    for shift in np.linspace(0.03, 1.0, 34):
        found = hockey_stick(make_ratio_law(modes, float(shift)), t)
        assert np.all(found <= hockey_stick(up, t) + up.charge)


def test_coordinates_that_show_nothing_are_charged_all_the_same() -> None:
    """Five laws of no log-ratio whose hockey-sticks may lack 0.01 each: T(½) ≤ ½ − 0.05."""
    law = RatioLaw(np.zeros(1), np.ones(1), 0.0, charge=0.01)
    assert float(compose([(law, 5)]).beta(0.5)) <= 0.45


def test_a_histogram_in_linf_is_certified_for_every_smaller_shift() -> None:
    """The largest shifts need not be the worst: no two coordinates moved by anything up to the
    radius contradict it, and some do if it is a tenth larger.
    """
    edges, heights = (np.array(one) for one in HISTOGRAMS["two towers"])
    bound = envelope.match(Question(make_histogram(edges, heights).unit, math.inf, 2))
    assert bound is not None
    scale, p_a = make_histogram(edges, heights).scale, 0.9
    found = bound.radius(Evidence(p_a)) * scale

    def find_worst(r: float) -> float:
        """The least T along a grid of directions and lengths."""
        values = []
        for shifts in product(r * np.linspace(-1, 1, 21), repeat=2):
            laws = [pair_of_histogram(edges, heights, float(u)) for u in shifts]
            p, q = (np.outer(laws[0][i], laws[1][i]).ravel() for i in (0, 1))
            values.append(tradeoff_of_masses(p, q, 1 - p_a))
        return min(values)

    assert find_worst(found) >= 0.5
    assert find_worst(found / 0.9) < 0.5


@pytest.mark.slow
def test_a_second_class_with_its_own_bound_counts() -> None:
    edges, heights = (np.array(one) for one in HISTOGRAMS["two towers"])
    p_a, p_b = 0.8, 0.1
    found = certified_radius(make_histogram(edges, heights), 2, 1, p_a=p_a, p_b=p_b).proved

    def margin(r: float) -> float:
        return min(
            tradeoff_of_histogram(edges, heights, s * r, 1 - p_a)
            + tradeoff_of_histogram(edges, heights, s * r, p_b)
            - 1.0
            for s in (1.0, -1.0)
        )

    assert min(margin(r) for r in np.linspace(0, found, 1001)[1:]) >= 0
    assert min(margin(found * (1 + x)) for x in np.linspace(0, 2e-3, 21)) < 0


@pytest.mark.slow
def test_two_normal_modes_agree_with_a_fine_histogram() -> None:
    """An asymmetric smooth mixture: its own fine histogram, cell masses, is a coarsening of it, so
    that T of the histogram at multiples of the cell lies above T, and hardly.
    """

    def logpdf(x: Array) -> Array:
        return np.logaddexp(-0.5 * ((x - 2) / 0.5) ** 2, 0.3 - 0.5 * ((x + 2) / 0.7) ** 2)

    p_a, width = 0.9, 2e-3
    found = certified_radius(from_density(logpdf, points=(-2, 2)), math.inf, 1, p_a=p_a)
    edges: Array = np.asarray(np.arange(-4000, 4001) * width, dtype=np.float64)
    heights = np.exp(logpdf(0.5 * (edges[1:] + edges[:-1])))
    steps = np.arange(1, round(1.2 * found.proved / width)) * width
    values = np.array(
        [min(tradeoff_of_histogram(edges, heights, s * r, 1 - p_a) for s in (1, -1)) for r in steps]
    )
    first = steps[int(np.argmax(values < 0.5))]
    assert first - width - 1e-3 * first <= found.proved <= first + 1e-4
