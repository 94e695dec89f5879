"""Truncation conditions on an interval: the density is renormalised, no sample is clipped."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from unicr import noise
from unicr.errors import NoiseError
from unicr.noise import IID

CASES: dict[str, tuple[IID, float, float]] = {
    "cauchy": (noise.cauchy(scale=0.3), -5, 5),
    "gaussian one side": (noise.gaussian(sigma=1), 0.5, 3),
    "gaussian far tail": (noise.gaussian(sigma=1), 4, 6),
    "laplace": (noise.laplace(sigma=1), -1, 2),
    "pareto": (noise.pareto(beta=0.5, scale=1), -10, 10),
    "scipy": (noise.from_scipy(stats.gumbel_r(0, 2)), -3, 4),
    "sharp": (noise.gennorm(beta=0.25, sigma=1), -3, 3),
}


def inner_integral(one: IID, power: int, low: float, high: float) -> float:
    def f(x: float) -> float:
        return x**power * float(one.pdf(x))

    steps = [s * t for t in np.geomspace(1e-9, 1, 19) for s in (-1, 1)]
    inside = [0.0, *(10 * s for s in steps)]
    cuts = [low, *sorted(float(x) for x in inside if low < x < high), high]
    parts = [
        integrate.quad(f, a, b, epsabs=0, epsrel=1e-11, limit=200)[0]
        for a, b in itertools.pairwise(cuts)
    ]
    return math.fsum(parts)


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")  # kinks of a table
@pytest.mark.parametrize("name", CASES)
def test_it_is_the_base_density_renormalised(name: str) -> None:
    base, low, high = CASES[name]
    cut = base.truncated(high) if low == -high else base.truncated(low, high)
    mass = inner_integral(base, 0, low, high)
    x = np.linspace(low, high, 101)[1:-1]
    x = x[np.abs(x) > 1e-6]  # a table rounds a cusp of infinite slope
    np.testing.assert_allclose(cut.pdf(x), base.pdf(x) / mass, rtol=3e-6)
    middle = [low + t * (high - low) for t in (0.1, 0.5, 0.8)]
    for point in middle:
        expected = inner_integral(base, 0, low, point) / mass
        assert float(cut.cdf(point)) == pytest.approx(expected, rel=1e-6)
        assert float(cut.sf(point)) == pytest.approx(1 - expected, rel=1e-6)
    second = inner_integral(base, 2, low, high) / mass
    first = inner_integral(base, 1, low, high) / mass
    assert cut.sigma == pytest.approx(math.sqrt(second), rel=1e-6)
    assert cut.mean == pytest.approx(first, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_support_and_facts(name: str) -> None:
    base, low, high = CASES[name]
    cut = base.truncated(low, high)
    assert cut.support == pytest.approx((low, high), rel=1e-14)
    assert list(cut.pdf([low - 0.1, high + 0.1])) == [0, 0]
    assert list(cut.cdf([low - 1, high + 1])) == [0, 1]
    assert list(cut.sf([low - 1, high + 1])) == [1, 0]
    assert cut.facts.bounded
    assert cut.facts.finite_variance
    assert cut.facts.symmetric == (base.facts.symmetric and low == -high)
    assert cut.facts.log_concave == base.facts.log_concave
    u = np.array([1e-12, 1e-3, 0.3])
    np.testing.assert_allclose(cut.cdf(cut.ppf(u)), u, rtol=1e-9, atol=1e-14)


def test_a_truncated_normal_is_scipys() -> None:
    law = stats.truncnorm(0.5, 3)
    cut = noise.gaussian(sigma=1).truncated(0.5, 3)
    u = np.linspace(0.01, 0.99, 25)
    np.testing.assert_allclose(cut.ppf(u), law.ppf(u), rtol=1e-6)
    assert cut.mean == pytest.approx(law.mean(), rel=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_samples_are_not_clipped(name: str) -> None:
    base, low, high = CASES[name]
    cut = base.truncated(low, high)
    n = 200_000
    draws = cut.sample(n, 1, seed=2, dtype=torch.float64).numpy().ravel()
    half_step = cut.evaluate_error().step / 2
    assert low - half_step <= draws.min()
    assert draws.max() <= high + half_step
    # no value has more than 2^-16 of the mass: a Poisson count of mean 3 above 25 has 1e-15
    assert np.unique(draws, return_counts=True)[1].max() <= 25
    width = (high - low) * 1e-3
    for at_end, inside in (
        (draws < low + width, low + width),
        (draws > high - width, high - width),
    ):
        share = float(cut.cdf(inside)) if inside < (low + high) / 2 else float(cut.sf(inside))
        limit = 5 * math.sqrt(share / n) + 15 / n  # a Poisson tail below 1e-6
        assert abs(at_end.mean() - share) < limit
    distance = stats.kstest(cut.cdf(draws), stats.uniform.cdf).statistic
    assert distance < math.sqrt(math.log(2e6) / (2 * n))  # false alarm 1e-6


def test_truncation_beyond_the_support_changes_nothing() -> None:
    base = noise.uniform(scale=1)
    cut = base.truncated(5)
    assert cut.support == (-1, 1)
    np.testing.assert_allclose(cut.cdf([-0.5, 0.25]), base.cdf([-0.5, 0.25]), rtol=1e-12)


def test_truncating_twice() -> None:
    twice = noise.cauchy(scale=1).truncated(10).truncated(-1, 4)
    once = noise.cauchy(scale=1).truncated(-1, 4)
    x = np.linspace(-1, 4, 21)[1:-1]
    np.testing.assert_allclose(twice.cdf(x), once.cdf(x), rtol=1e-6)
    assert noise.parse(twice.text) == twice


def test_scaling_scales_the_ends() -> None:
    cut = noise.cauchy(scale=0.3).truncated(-1, 5)
    double = cut * 2.0
    assert double.text == "cauchy(scale=0.6).truncated(-2, 10)"
    assert double.support == pytest.approx((-2, 10))
    assert double.sigma == pytest.approx(2 * cut.sigma)
    np.testing.assert_allclose(double.cdf([-1.0, 3.0]), cut.cdf([-0.5, 1.5]), rtol=1e-12)
    sized = noise.cauchy(scale=0.3).truncated(5).with_sigma(0.25)
    assert sized.sigma == pytest.approx(0.25, rel=1e-12)
    unit = cut.unit
    assert unit.scale == 1
    np.testing.assert_allclose(unit.cdf([1.0]), cut.cdf([0.3]), rtol=1e-12)


def test_text() -> None:
    assert noise.cauchy(scale=0.3).truncated(5).text == "cauchy(scale=0.3).truncated(5)"
    own = noise.from_scipy(stats.gumbel_r(0, 2)) * 2.0
    assert own.truncated(3).text == "(scipy.gumbel_r(0, 2) * 2).truncated(3)"
    assert noise.parse(own.truncated(3).text) == own.truncated(3)


@settings(max_examples=8)
@given(
    scale=st.floats(0.01, 10),
    low=st.floats(-20, -0.01),
    high=st.floats(0.01, 20),
    factor=st.floats(0.01, 100),
)
def test_the_text_reads_back(scale: float, low: float, high: float, factor: float) -> None:
    cut = noise.laplace(sigma=scale).truncated(low * scale, high * scale) * factor
    again = noise.parse(cut.text)
    assert again == cut
    assert again.iid is not None
    np.testing.assert_array_equal(again.sample(2, 3), cut.sample(2, 3))


def test_it_is_a_value() -> None:
    cut = noise.cauchy(scale=0.3).truncated(5)
    assert cut == noise.cauchy(scale=0.3).truncated(-5, 5)
    assert hash(cut) == hash(noise.cauchy(scale=0.3).truncated(5))
    assert cut != noise.cauchy(scale=0.3).truncated(6)
    assert cut != noise.cauchy(scale=0.3)
    assert pickle.loads(pickle.dumps(cut)) == cut
    with pytest.raises(AttributeError, match="cannot be set"):
        cut.scale = 1.0


@pytest.mark.parametrize(
    "ends", [(0,), (-1,), (math.inf,), (math.nan,), (2, 1), (1, 1), (0, math.inf), (math.nan, 1)]
)
def test_impossible_ends(ends: tuple[float, ...]) -> None:
    with pytest.raises(NoiseError, match="cannot truncate to"):
        noise.gaussian(sigma=1).truncated(*ends)


def test_too_little_mass() -> None:
    with pytest.raises(NoiseError, match=r"gaussian\(sigma=1\) has a mass of only .* too little"):
        noise.gaussian(sigma=1).truncated(30, 40)
    with pytest.raises(NoiseError, match="too little"):
        noise.uniform(scale=1).truncated(2, 3)
