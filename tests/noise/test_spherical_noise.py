"""Spherical noises: the law of the radius in closed form, uniform directions, true densities."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, special, stats

from unicr import noise
from unicr.errors import NoiseError
from unicr.noise import RadialNoise

Array = NDArray[np.float64]


class PowerLaw:
    """‖ε‖^k/c ~ law: the closed form of a radius."""

    def __init__(self, law: Any, power: float, scale: float) -> None:
        self.law, self.power, self.scale = law, power, scale

    def cdf(self, r: Any) -> Any:
        return self.law.cdf((np.asarray(r) / self.scale) ** self.power)

    def ppf(self, u: Any) -> Any:
        return self.law.ppf(u) ** (1 / self.power) * self.scale

    def isf(self, u: Any) -> Any:
        return self.law.isf(u) ** (1 / self.power) * self.scale


def shell(r: Array) -> Array:
    return -((r - 3.0) ** 2) * 8


def gg(k: float, d: int, s: float) -> tuple[RadialNoise, PowerLaw]:
    return noise.spherical_gg(k=k, scale=s, dim=d), PowerLaw(stats.chi2(d - 2 * k), 2, s)


def exp(k: float, d: int, s: float) -> tuple[RadialNoise, PowerLaw]:
    return noise.spherical_exp(k=k, scale=s, dim=d), PowerLaw(stats.gamma(d / k), k, s)


def ball(d: int, s: float) -> tuple[RadialNoise, PowerLaw]:
    return noise.ball(scale=s, dim=d), PowerLaw(stats.uniform(), d, s)


CASES = {
    "gg k=0": gg(0, 12, 0.5),
    "gg k=4": gg(4, 12, 2.0),
    "gg singular at 0": gg(1.2, 3, 1.0),
    "gg of DSRS": gg(1530, 3072, 0.5),
    "exp k=1": exp(1, 20, 0.3),
    "exp k=2": exp(2, 784, 1.5),
    "exp k=0.5": exp(0.5, 5, 1.0),
    "exp k=10": exp(10, 50, 1.0),
    "ball": ball(5, 2.0),
    "ball 3072": ball(3072, 1.0),
}


@pytest.mark.parametrize("name", CASES)
def test_the_radius_has_its_closed_form(name: str) -> None:
    one, law = CASES[name]
    u = np.array([1e-12, 1e-6, 0.01, 0.3, 0.5, 0.9])
    np.testing.assert_allclose(one.length.ppf(u), law.ppf(u), rtol=1e-8)
    np.testing.assert_allclose(one.length.cdf(law.ppf(u)), u, rtol=1e-8)
    np.testing.assert_allclose(one.length.isf(u), law.isf(u), rtol=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_sigma_is_the_second_moment_per_coordinate(name: str) -> None:
    one, _ = CASES[name]
    d, s = one.dim, one.scale
    if one.family == "spherical_gg":
        second = s * s * (d - 2 * one.numbers["k"])
    elif one.family == "spherical_exp":
        k = one.numbers["k"]
        second = s * s * math.exp(math.lgamma((d + 2) / k) - math.lgamma(d / k))
    else:
        second = s * s * d / (d + 2)
    assert one.sigma == pytest.approx(math.sqrt(second / d), rel=1e-9)
    assert (one * 3.0).sigma == pytest.approx(3 * one.sigma, rel=1e-12)
    assert one.with_sigma(0.25).sigma == pytest.approx(0.25, rel=1e-12)


IMAGENET = 150_528
LARGE: dict[str, Callable[[], tuple[RadialNoise, PowerLaw]]] = {
    "gg k=0": lambda: gg(0, IMAGENET, 2.0),
    "gg k=75000": lambda: gg(75_000, IMAGENET, 1.0),
    "exp k=1": lambda: exp(1, IMAGENET, 0.5),
    "ball": lambda: ball(IMAGENET, 3.0),
}


@pytest.mark.parametrize("name", LARGE)
def test_the_radius_has_its_closed_form_in_imagenet_size(name: str) -> None:
    one, law = LARGE[name]()
    u = np.array([1e-12, 1e-6, 0.01, 0.3, 0.5])
    # log φ is as large as 5e5, so its rounding alone moves a probability by 1e-10 of itself
    np.testing.assert_allclose(one.length.cdf(law.ppf(u)), u, rtol=2e-9)
    np.testing.assert_allclose(one.length.ppf(u), law.ppf(u), rtol=2e-12)
    np.testing.assert_allclose(one.length.isf(u), law.isf(u), rtol=2e-12)
    assert float(one.length.cdf(one.length.isf(1e-3))) == pytest.approx(0.999, abs=1e-10)
    assert one.facts.bounded == (one.family == "ball")


@pytest.mark.parametrize("name", LARGE)
def test_sampled_radii_follow_the_law_in_imagenet_size(name: str) -> None:
    one, law = LARGE[name]()
    n = 120
    r = one.sample(n, seed=5).double().norm(dim=1).numpy()
    assert stats.kstest(r, law.cdf).statistic < math.sqrt(math.log(2e6) / (2 * n))  # 1e-6


def test_sigma_in_imagenet_size() -> None:
    d = IMAGENET
    assert noise.ball(scale=1, dim=d).sigma == pytest.approx(1 / math.sqrt(d + 2), rel=1e-12)
    thin = noise.spherical_gg(k=75_000, scale=1, dim=d)
    assert thin.sigma == pytest.approx(math.sqrt((d - 150_000) / d), rel=1e-10)
    heavy = noise.spherical_exp(k=1, scale=1, dim=d)
    assert heavy.sigma == pytest.approx(math.sqrt(d + 1), rel=1e-10)


def test_sigma_sets_the_scale() -> None:
    one = noise.spherical_gg(k=1530, sigma=0.5, dim=3072)
    assert one.sigma == 0.5
    assert one.scale == pytest.approx(0.5 / math.sqrt((3072 - 3060) / 3072), rel=1e-9)
    assert one.facts.symmetric
    assert one.facts.finite_variance
    assert not one.facts.bounded
    assert noise.ball(sigma=1, dim=4).facts.bounded


@pytest.mark.parametrize("name", CASES)
def test_the_density_has_mass_one(name: str) -> None:
    one, law = CASES[name]
    d = one.dim
    sphere = math.log(2) + d / 2 * math.log(math.pi) - float(special.gammaln(d / 2))

    def radius_density(r: float) -> float:
        return math.exp(float(one.radial_logpdf(r)) + (d - 1) * math.log(r) + sphere)

    edges = law.ppf([1e-13, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-9, 1 - 1e-13])
    mass = sum(
        integrate.quad(radius_density, a, b, epsrel=1e-10)[0] for a, b in itertools.pairwise(edges)
    )
    assert mass == pytest.approx(1, abs=2e-8)


def test_log_prob_of_a_gaussian_in_disguise() -> None:
    z = torch.from_numpy(np.random.default_rng(1).normal(size=(6, 3, 2, 2)))
    gaussian = noise.gaussian(sigma=0.7)
    for one in (
        noise.spherical_gg(k=0, sigma=0.7, dim=12),
        noise.spherical_exp(k=2, sigma=0.7, dim=12),
        noise.from_radial_density(lambda r: -r * r, sigma=0.7, dim=12),
    ):
        got = one.log_prob(z)
        assert got.dtype == torch.float64
        np.testing.assert_allclose(got.numpy(), gaussian.log_prob(z).numpy(), rtol=1e-9)


def test_log_prob_of_the_ball() -> None:
    one = noise.ball(scale=2, dim=3)
    z = torch.tensor([[0.0, 0, 0], [0, 1.9, 0], [0, 2.1, 0]])
    volume = 4 / 3 * math.pi * 8
    got = one.log_prob(z)
    np.testing.assert_allclose(got[:2].numpy(), [-math.log(volume)] * 2, rtol=1e-9)
    assert got[2] == -math.inf


@pytest.mark.parametrize("name", CASES)
def test_sampled_radii_follow_the_law(name: str) -> None:
    one, law = CASES[name]
    n = 2_000 if one.dim > 500 else 20_000
    z = one.sample(n, seed=11, dtype=torch.float64)
    r = z.norm(dim=1).numpy()
    distance = stats.kstest(r, law.cdf).statistic
    assert distance < math.sqrt(math.log(2e6) / (2 * n))  # false alarm 1e-6


@pytest.mark.parametrize("name", ["gg k=4", "exp k=1", "ball"])
def test_directions_are_uniform(name: str) -> None:
    one, _ = CASES[name]
    n, d = 100_000, one.dim
    z = one.sample(n, seed=4, dtype=torch.float64)
    v = (z / z.norm(dim=1, keepdim=True)).numpy()
    # each entry is a mean of n bounded terms with known variance: 6.5 deviations, about 1e-8
    # by entry after allowing for non-normality
    np.testing.assert_allclose(v.mean(axis=0), 0, atol=6.5 / math.sqrt(n * d))
    covariance = v.T @ v / n
    np.testing.assert_allclose(
        covariance, np.eye(d) / d, atol=6.5 * math.sqrt(2) / (d * math.sqrt(n))
    )
    radius = z.norm(dim=1).numpy()
    assert abs(np.corrcoef(radius, v[:, 0])[0, 1]) < 6.5 / math.sqrt(n)


def test_a_users_radial_function() -> None:
    one = noise.from_radial_density(shell, dim=6)
    norm = integrate.quad(lambda r: r**5 * math.exp(-((r - 3) ** 2) * 8), 0, 8, points=[3])[0]
    below = integrate.quad(lambda r: r**5 * math.exp(-((r - 3) ** 2) * 8), 0, 3.1, points=[3])[0]
    assert float(one.length.cdf(3.1)) == pytest.approx(below / norm, rel=1e-8)
    second = integrate.quad(lambda r: r**7 * math.exp(-((r - 3) ** 2) * 8), 0, 8, points=[3])[0]
    assert one.sigma == pytest.approx(math.sqrt(second / norm / 6), rel=1e-8)
    assert not one.facts.unimodal
    assert not one.facts.log_concave
    assert one == noise.from_radial_density(shell, dim=6)
    assert one != noise.from_radial_density(shell, dim=7)
    double = one * 2.0
    assert float(double.length.cdf(6.2)) == pytest.approx(below / norm, rel=1e-8)
    assert double.sigma == pytest.approx(2 * one.sigma)
    assert float(double.radial_logpdf(6.0)) == pytest.approx(
        float(one.radial_logpdf(3.0)) - 6 * math.log(2), rel=1e-10
    )
    assert pickle.loads(pickle.dumps(one)) == one


def test_a_heavy_radial_function_has_no_sigma() -> None:
    one = noise.from_radial_density(lambda r: -4 * np.log1p(r), dim=3, scale=1)
    assert one.sigma == math.inf
    assert not one.facts.finite_variance
    with pytest.raises(NoiseError, match=r"no finite variance.*scale="):
        noise.from_radial_density(lambda r: -4 * np.log1p(r), dim=3, sigma=1)
    with pytest.raises(NoiseError, match="infinite mass far out"):
        noise.from_radial_density(lambda r: -3 * np.log1p(r), dim=3)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: noise.spherical_gg(k=6, dim=12, scale=1), r"k=6, dim=12.*2k < dim"),
        (lambda: noise.spherical_gg(k=-1, dim=12, scale=1), "k=-1"),
        (lambda: noise.spherical_gg(k=math.nan, dim=12, scale=1), "k=nan"),
        (lambda: noise.spherical_exp(k=0, dim=12, scale=1), "k=0"),
        (lambda: noise.spherical_exp(k=0.001, dim=12, scale=1), "k=0.001"),
        (lambda: noise.spherical_exp(k=math.inf, dim=12, scale=1), "k=inf"),
        (lambda: noise.ball(dim=12), "exactly one"),
        (lambda: noise.ball(dim=12, sigma=1, scale=1), "exactly one"),
        (lambda: noise.ball(dim=12, sigma=-1), "sigma=-1"),
        (lambda: noise.ball(dim=12, scale=math.inf), "scale=inf"),
        (lambda: noise.ball(dim=1, scale=1), "dim=1"),
        (lambda: noise.ball(dim=2.5, scale=1), "dim=2.5"),
        (lambda: noise.ball(dim=math.inf, scale=1), "dim=inf"),
        (lambda: noise.ball(dim=True, scale=1), "dim=True"),
    ],
)
def test_bad_parameters_are_named(make: Callable[[], object], reason: str) -> None:
    with pytest.raises(NoiseError, match=reason):
        make()


@settings(max_examples=3)
@given(
    k=st.floats(0.3, 4),
    size=st.floats(1e-2, 1e2),
    dim=st.integers(9, 40),
    key=st.sampled_from(["sigma", "scale"]),
    factor=st.floats(0.01, 100),
)
def test_the_text_reads_back(k: float, size: float, dim: int, key: str, factor: float) -> None:
    for make in (noise.spherical_gg, noise.spherical_exp):
        one: Any = make(k=k, dim=dim, **{key: size})
        assert noise.parse(one.text) == one
        assert noise.parse(repr(one * factor)) == one * factor


def test_it_is_a_value() -> None:
    one = noise.ball(sigma=1, dim=4)
    assert pickle.loads(pickle.dumps(one)) == one
    assert hash(one) == hash(noise.ball(sigma=1, dim=4))
    with pytest.raises(AttributeError, match="cannot be set"):
        one.dim = 5
    with pytest.raises(NoiseError, match="has dimension 4, but the input has 6"):
        one.sample(2, (2, 3))
    assert one.sample(2, (2, 2)).shape == (2, 2, 2)
