"""One dimension, any density: every shift below the radius is certified, and hardly any beyond.

The oracle computes T of a histogram by sorting likelihood ratios on the common refinement of both
sets of edges: exact but for rounding, and no code of the package is in it.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from unicr.noise import IID, from_density
from unicr.radius import Grade, certified_radius
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
    heights = heights / np.sum(heights * np.diff(edges))
    cuts = np.unique(np.concatenate([edges, edges + shift]))
    middle, width = 0.5 * (cuts[1:] + cuts[:-1]), np.diff(cuts)

    def mass(at: Array) -> Array:
        cell = np.searchsorted(edges, at, side="right") - 1
        inside = (cell >= 0) & (cell < len(heights))
        return np.where(inside, heights[np.clip(cell, 0, len(heights) - 1)], 0.0) * width

    p, q = mass(middle), mass(middle - shift)
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(np.where(q > 0, p / q, np.inf), kind="stable")
    p, q = p[order], q[order]
    spent = np.concatenate([[0.0], np.cumsum(p)])
    power = np.concatenate([[0.0], np.cumsum(q)])
    return 1.0 - float(np.interp(alpha, spent, power))


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
