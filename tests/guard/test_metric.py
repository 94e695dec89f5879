"""Bounds of distances hold in exact arithmetic, and the metric is one for every p."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.guard.planted import exact
from unicr.guard import Metric
from unicr.norms import Norm, parse_norm

Pair = tuple[list[float], list[float]]

values = st.floats(-(2.0**99), 2.0**99, width=32)
vectors = st.integers(1, 9).flatmap(
    lambda d: st.tuples(*[st.lists(values, min_size=d, max_size=d)] * 2)
)


@pytest.mark.parametrize("norm", ["1", "2", "inf"])
@given(vectors)
@settings(max_examples=100, deadline=None)
def test_bounds_enclose_the_exact_distance(
    norm: str, pair: tuple[list[float], list[float]]
) -> None:
    a, b = (np.array(v, np.float32) for v in pair)
    metric = Metric(parse_norm(norm))
    x, c = a.astype(np.float64), b.astype(np.float64)
    above, below = metric.above(x, c), float(metric.below(x, b[None])[0])
    true = exact(norm, a, b)
    power = 2 if norm == "2" else 1
    assert Fraction(below) ** power <= true <= Fraction(above) ** power
    assert above <= below * (1 + 1e-11)


@pytest.mark.parametrize("p", [0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 40.0, math.inf])
def test_bounds_agree_with_the_norm_for_every_p(p: float) -> None:
    rng = np.random.default_rng(1)
    metric, norm = Metric(Norm(p)), Norm(p)
    rows = rng.normal(size=(50, 300)).astype(np.float32)
    x = rng.normal(size=300).astype(np.float32).astype(np.float64)
    true = np.array([norm(row - x) for row in rows]) ** min(1.0, p)
    above = np.array([metric.above(x, row.astype(np.float64)) for row in rows])
    below = metric.below(x, rows)
    np.testing.assert_allclose(above, true, rtol=1e-11)
    np.testing.assert_allclose(below, true, rtol=1e-11)
    assert np.all(below < above)


@pytest.mark.parametrize("p", [0.25, 0.5, 0.9, 1.0, 2.0, math.inf])
def test_the_triangle_inequality_holds_for_the_metric(p: float) -> None:
    rng = np.random.default_rng(2)
    metric = Metric(Norm(p))
    for _ in range(200):
        a, b, c = rng.laplace(size=(3, 6)) ** 3
        assert metric.above(a, c) <= (metric.above(a, b) + metric.above(b, c)) * (1 + 1e-11)


def test_below_one_the_norm_itself_breaks_the_triangle_inequality() -> None:
    half = Norm(0.5)
    assert half(np.array([1.0, 1.0])) == pytest.approx(4.0)
    assert half(np.array([1.0, 0.0])) + half(np.array([0.0, 1.0])) == pytest.approx(2.0)


@pytest.mark.parametrize("p", [0.25, 0.5, 1.0, 2.0])
@given(st.floats(1e-6, 1e6))
@settings(max_examples=50, deadline=None)
def test_radius_and_reach_are_rounded_down(p: float, radius: float) -> None:
    metric = Metric(Norm(p))
    assert metric.reach(radius) <= radius**metric.power
    assert metric.radius(metric.reach(radius)) <= radius
    assert metric.radius(metric.reach(radius)) == pytest.approx(radius, rel=1e-10)
    assert metric.shrink_radius(metric.reach(radius)) < radius


@pytest.mark.parametrize("inverse", [2, 4])
@given(st.floats(1e-6, 1e6))
@settings(max_examples=50, deadline=None)
def test_a_radius_lies_within_its_reach(inverse: int, reach: float) -> None:
    """p = 1/2 and 1/4, where ρ = ‖·‖^p and reach^(1/p) is exact in fractions."""
    metric = Metric(Norm(1 / inverse))
    whole = Fraction(reach) ** inverse
    assert whole * (1 - Fraction(1, 10**11)) <= Fraction(metric.radius(reach)) <= whole


def test_infinite_and_zero_reach() -> None:
    for p in (0.5, 2.0):
        metric = Metric(Norm(p))
        assert metric.reach(math.inf) == metric.radius(math.inf) == math.inf
        assert metric.shrink_radius(math.inf, 3.0) == math.inf
        assert (
            metric.reach(0.0) == metric.shrink_radius(0.0) == metric.shrink_radius(1.0, 2.0) == 0.0
        )
