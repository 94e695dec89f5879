"""The trade-off of spherical noise against closed forms, Monte Carlo and its own symmetries."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from unicr.errors import RadiusError
from unicr.noise import Spherical, SphericalNoise, ball, spherical_exp, spherical_gg
from unicr.tradeoff._base import Lines
from unicr.tradeoff._spherical import spherical_tradeoff
from unicr.values import Array

ALPHA = np.array([0.4, 0.1, 0.01, 1e-3])
SAMPLES = 120_000


def largest_shift(noise: SphericalNoise, p_a: float) -> float:
    low, high = 0.0, 8 * noise.sigma
    for _ in range(24):
        middle = 0.5 * (low + high)
        inside = spherical_tradeoff(noise, middle).needed() <= p_a
        low, high = (middle, high) if inside else (low, middle)
    return low


def check_by_sampling(tradeoff: Lines, loss: Array) -> None:
    """H(t) = E_P[(1 − e^{t+L})⁺] from both sides: at most sixteen tests of six standard errors.

    Every line lies above H, and T above 1 − H(t) − e^t·α for any α: false alarms below 1e-7.
    """
    wanted = np.quantile(-loss, [0.02, 0.2, 0.35, 0.5, 0.6, 0.75, 0.9, 0.99], method="lower")
    for place in wanted[np.isfinite(wanted)]:
        i = int(np.argmin(np.abs(tradeoff.t - place)))
        t, h = float(tradeoff.t[i]), float(tradeoff.h[i])
        sample = np.maximum(-np.expm1(np.minimum(t + loss, 0.0)), 0.0)
        error = 6 * float(np.std(sample)) / math.sqrt(sample.size) + 1e-6
        expected = float(np.mean(sample))
        assert h >= expected - error
        alpha = float(np.mean(loss > t))
        slack = 1e-4 if tradeoff.bound == "estimate" else 5e-5
        assert float(tradeoff.beta(alpha)) >= 1 - expected - math.exp(t) * alpha - error - slack


def distances(r: Array, shift: float, dim: int, rng: np.random.Generator) -> Array:
    cosine = 2 * rng.beta((dim - 1) / 2, (dim - 1) / 2, r.size) - 1
    return np.sqrt(np.maximum(r * r + shift * shift - 2 * r * shift * cosine, 0.0))


@pytest.mark.parametrize("dim", [2, 3, 23, 24, 784, 3072, 150_528])
@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_without_a_power_it_is_the_gaussian_and_never_above_it(dim: int, mu: float) -> None:
    tradeoff = spherical_tradeoff(spherical_gg(k=0, sigma=0.5, dim=dim), 0.5 * mu)
    reached = special.ndtri(1 - ALPHA) - special.ndtri(tradeoff.beta(ALPHA))
    excess = np.append(reached, special.ndtri(tradeoff.needed())) / mu - 1
    assert tradeoff.bound == "lower"
    assert np.all(excess >= 0)
    assert np.all(excess <= (2e-6 if dim >= 24 else 1e-4) * (1 if mu >= 1 else 3))


def test_lines_lie_above_the_gaussian_hockey_stick() -> None:
    for dim, mu in [(2, 0.05), (2, 2.0), (5, 4.5), (13, 0.3), (14, 4.5), (3072, 1.0), (3072, 6.0)]:
        lines = spherical_tradeoff(spherical_gg(k=0, sigma=1, dim=dim), mu)
        used = np.abs(lines.t) < 100
        t, h = lines.t[used], lines.h[used]
        exact = special.ndtr(mu / 2 - t / mu) - np.exp(t + special.log_ndtr(-mu / 2 - t / mu))
        assert np.min(h - exact) >= -1e-15


@pytest.mark.parametrize("dim", [2, 3, 50, 784, 3072])
@pytest.mark.parametrize("p_a", [0.6, 0.9, 0.99])
def test_the_ball_has_its_closed_form(dim: int, p_a: float) -> None:
    a = (dim + 1) / 2
    radius = 1.5 * (2 - 4 * float(special.betaincinv(a, a, 0.75 - p_a / 2)))
    tradeoff = spherical_tradeoff(ball(scale=1.5, dim=dim), radius)
    assert tradeoff.bound == "lower"
    assert 0 <= tradeoff.needed() - p_a <= 1e-6 * (p_a - 0.5) / 0.1
    assert float(tradeoff.beta(0.0)) == pytest.approx(1.5 - p_a, abs=1e-6)


def test_disjoint_balls_are_told_apart() -> None:
    assert np.all(spherical_tradeoff(ball(scale=1, dim=5), 2.5).beta([0.0, 0.3]) == 0)


@pytest.mark.parametrize("dim", [3, 3072])
def test_the_second_power_is_the_gaussian(dim: int) -> None:
    tradeoff = spherical_tradeoff(spherical_exp(k=2, sigma=2.0, dim=dim), 3.0)
    assert 0 <= special.ndtri(tradeoff.needed()) / 1.5 - 1 <= 2e-6


@pytest.mark.parametrize("dim", [2, 5, 50, 3072])
@pytest.mark.parametrize("shift", [0.7, 2.5])
def test_the_first_power_agrees_with_samples(dim: int, shift: float) -> None:
    noise = spherical_exp(k=1, sigma=1, dim=dim)
    rng = np.random.default_rng(dim)
    r = rng.gamma(dim, noise.scale, SAMPLES)
    loss = (r - distances(r, shift, dim, rng)) / noise.scale
    check_by_sampling(spherical_tradeoff(noise, shift), loss)


@pytest.mark.parametrize(("dim", "k"), [(3, 1.2), (50, 19.0), (3072, 1530.0)])
@pytest.mark.parametrize("shift", [0.4, 2.0])
def test_a_singular_centre_agrees_with_samples(dim: int, k: float, shift: float) -> None:
    noise = spherical_gg(k=k, sigma=1, dim=dim)
    rng = np.random.default_rng(dim + 1)
    r = noise.scale * np.sqrt(2 * rng.gamma(dim / 2 - k, size=SAMPLES))
    rho = distances(r, shift, dim, rng)
    loss = 2 * k * np.log(r / rho) + (r * r - rho * rho) / (2 * noise.scale**2)
    check_by_sampling(spherical_tradeoff(noise, shift), loss)


def two_shells(r: Array) -> Array:
    return np.asarray(np.logaddexp(-8 * (r - 2) ** 2, -1.0 - 8 * (r - 4) ** 2))


def steps(r: Array) -> Array:
    return np.where(r < 1, 0.0, np.where(r < 2, -1.0, np.where(r < 3, -0.5, -np.inf)))


def student(r: Array) -> Array:
    return np.asarray(-4.0 * np.log1p(r * r))


def separated(r: Array) -> Array:
    return np.where((r > 1) & (r < 2), 0.0, np.where((r > 3) & (r < 4), -1.0, -np.inf))


def hollow(r: Array) -> Array:
    return np.where((r >= 1) & (r <= 2), -3 * r, -np.inf)


@pytest.mark.parametrize("radial", [two_shells, steps, student, separated, hollow])
@pytest.mark.parametrize(("dim", "shift"), [(2, 0.5), (5, 2.2)])
def test_any_radial_density_agrees_with_samples(radial: object, dim: int, shift: float) -> None:
    noise = Spherical(radial, dim=dim)  # type: ignore[arg-type]
    rng = np.random.default_rng(7)
    r = noise.radius_ppf(rng.random(SAMPLES))
    rho = distances(r, shift, dim, rng)
    loss = noise.radial_logpdf(rho) - noise.radial_logpdf(r)
    tradeoff = spherical_tradeoff(noise, shift)
    assert tradeoff.bound == ("lower" if radial in (student, hollow) else "estimate")
    check_by_sampling(tradeoff, loss)


def test_the_noise_of_dsrs_is_certified_a_little_below_the_gaussian() -> None:
    noise = spherical_gg(k=1530, sigma=0.5, dim=3072)
    for p_a in (0.6, 0.9, 0.99):
        radius = largest_shift(noise, p_a)
        assert 0.9 < radius / (0.5 * special.ndtri(p_a)) < 1


def test_it_scales_with_the_noise() -> None:
    small = spherical_tradeoff(spherical_exp(k=1, scale=1, dim=20), 3.0)
    large = spherical_tradeoff(spherical_exp(k=1, scale=4, dim=20), -12.0)
    assert np.allclose(small.beta(ALPHA), large.beta(ALPHA), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dim", [2, 14, 3072])
def test_it_is_convex_decreasing_its_own_inverse_and_falls_with_the_shift(dim: int) -> None:
    noise = spherical_exp(k=1, sigma=1, dim=dim)
    alpha = np.linspace(0.001, 0.999, 200)
    before = 1 - alpha
    for shift in (0.3, 0.8, 1.6, 3.2):
        beta = spherical_tradeoff(noise, shift).beta(alpha)
        assert np.all(np.diff(beta) <= 0)
        assert np.all(np.diff(beta, n=2) >= -1e-12)
        assert np.all(beta <= before)
        inside = beta > 1e-6
        again = spherical_tradeoff(noise, shift).beta(beta[inside])
        assert np.allclose(again, alpha[inside], rtol=0, atol=1e-5)
        before = beta


def test_no_shift_is_no_information() -> None:
    tradeoff = spherical_tradeoff(spherical_gg(k=3, sigma=1, dim=50), 0.0)
    assert np.allclose(tradeoff.beta(ALPHA), 1 - ALPHA, atol=1e-15)
    assert tradeoff.needed() == 0.5


@pytest.mark.parametrize("shift", [math.nan, math.inf])
def test_a_shift_must_be_finite(shift: float) -> None:
    with pytest.raises(RadiusError, match="finite length"):
        spherical_tradeoff(ball(scale=1, dim=3), shift)


def test_imagenet_size_is_nearly_gaussian() -> None:
    first = spherical_tradeoff(spherical_exp(k=1, sigma=1, dim=150_528), 1.0)
    assert 1.0 < special.ndtri(first.needed()) < 1.001
