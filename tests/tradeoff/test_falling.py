"""Trade-offs of falling densities of a norm: below closed forms and samples, and close to them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import special

from unicr import noise
from unicr.errors import RadiusError
from unicr.noise import Noise, RadialNoise, from_radial_density
from unicr.tradeoff import TradeOff
from unicr.tradeoff.internal import ball_tradeoff, cross_tradeoff, cube_tradeoff, falls
from unicr.values import Array

ALPHA = np.array([0.4, 0.1, 0.01])
SAMPLES = 60_000


def check_by_sampling(tradeoff: TradeOff, law: Noise, delta: Array, loss: float = 2e-3) -> None:
    """T at five levels from samples of both laws: never above, and at most `loss` below.

    Ten frequencies with an error of 6 deviations each: a false alarm below 1e-7.
    """
    z = law.sample(SAMPLES, seed=5, dtype=torch.float64)
    shift = torch.from_numpy(delta)
    p = (law.log_prob(z - shift) - law.log_prob(z)).numpy()
    q = (law.log_prob(z) - law.log_prob(z + shift)).numpy()
    error = 6 * 0.5 / math.sqrt(SAMPLES)
    t = np.quantile(p, [0.1, 0.3, 0.5, 0.7, 0.9], method="lower")
    t = t[np.isfinite(t)]
    alpha, beta = np.mean(p[:, None] > t, axis=0), np.mean(q[:, None] <= t, axis=0)
    found = tradeoff.beta(np.concatenate([np.minimum(alpha + error, 1.0), alpha]))
    assert np.all(found[: t.size] <= beta + error)
    assert np.all(found[t.size :] >= beta - error * (1 + np.exp(t)) - loss)


def student(r: Array) -> Array:
    return np.asarray(-9.0 * np.log1p(r * r))


def logistic(r: Array) -> Array:
    return np.asarray(-3 * r - 2 * np.log1p(np.exp(-3 * r)))


def wavy(r: Array) -> Array:
    return np.asarray(-4 * r - 0.5 * np.sin(4 * r))


def stairs(r: Array) -> Array:
    return np.where(r <= 4, -np.floor(r), -np.inf)


@pytest.mark.parametrize(("radial", "dim"), [(student, 2), (logistic, 12), (wavy, 5), (stairs, 3)])
def test_a_users_falling_density_lies_below_samples(radial: object, dim: int) -> None:
    law = from_radial_density(radial, dim=dim)  # type: ignore[arg-type]
    assert falls(law)
    delta = np.full(dim, 0.6 * law.sigma / math.sqrt(dim))
    tradeoff = ball_tradeoff(law, float(np.linalg.norm(delta)))
    assert tradeoff.bound == "lower"
    check_by_sampling(tradeoff, law, delta, loss=4e-3)


@pytest.mark.parametrize(("dim", "mu"), [(2, 1.0), (3, 0.2), (50, 3.0), (3072, 1.0)])
def test_a_gaussian_in_disguise_is_never_above_the_gaussian(dim: int, mu: float) -> None:
    law = from_radial_density(lambda r: -r * r / 2, dim=dim)
    tradeoff = ball_tradeoff(law, mu)
    exact = special.ndtr(special.ndtri(1 - ALPHA) - mu)
    assert np.all(tradeoff.beta(ALPHA) <= exact)
    assert np.all(tradeoff.beta(ALPHA) >= exact - 3e-4)
    assert 0 <= special.ndtri(tradeoff.find_least_p_a()) / mu - 1 <= 2e-3
    many = np.linspace(0.01, 0.99, 40)
    assert np.all(tradeoff.beta(many) <= special.ndtr(special.ndtri(1 - many) - mu))


def test_a_density_that_rises_somewhere_does_not_fall() -> None:
    assert not falls(from_radial_density(lambda r: -8 * (r - 2) ** 2, dim=3))
    assert not falls(from_radial_density(lambda r: np.where(r < 1, -np.inf, -3 * r), dim=3))


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize(
    "law",
    [
        noise.linf_exp(k=1, j=0, sigma=1, dim=8),
        noise.linf_exp(k=3, j=2, sigma=1, dim=8),
        noise.linf_pareto(a=14, sigma=1, dim=8),
        noise.linf_exp(k=1, j=0, scale=0.25, dim=8).truncated(2),
    ],
    ids=str,
)
def test_cubes_agree_with_samples(law: RadialNoise, count: int) -> None:
    delta = np.concatenate([np.full(count, 0.3), np.zeros(8 - count)])
    check_by_sampling(cube_tradeoff(law, [(0.3, count)]), law, delta)


def test_unequal_coordinates_of_a_cube_agree_with_samples() -> None:
    law = noise.linf_exp(k=2, j=0, sigma=1, dim=6)
    delta = np.array([0.5, -0.2, -0.2, 0, 0, 0])
    check_by_sampling(cube_tradeoff(law, [(0.5, 1), (-0.2, 2)]), law, delta)


@pytest.mark.parametrize("k", [0.7, 4.0])
def test_one_coordinate_of_a_cross_polytope_agrees_with_samples(k: float) -> None:
    law = noise.l1_exp(k=k, j=1, sigma=1, dim=6)
    delta = np.array([0.7, 0, 0, 0, 0, 0])
    check_by_sampling(cross_tradeoff(law, 0.7), law, delta)


@pytest.mark.parametrize("dim", [2, 40, 3072])
def test_the_cross_polytope_of_laplace_has_its_closed_form(dim: int) -> None:
    law = noise.l1_exp(k=1, j=0, sigma=1, dim=dim)
    for p_a in (0.6, 0.9, 0.99):
        radius = math.log(0.5 / (1 - p_a)) / math.sqrt(2)
        assert 0 <= cross_tradeoff(law, radius).find_least_p_a() - p_a <= 3e-5


@pytest.mark.parametrize("dim", [2, 10, 3072])
def test_the_cube_has_its_closed_form(dim: int) -> None:
    """exp(−‖z‖_∞) has D = t: all coordinates like Laplace noise, one by the mean of 1/b."""
    law = noise.linf_exp(k=1, j=0, scale=1, dim=dim)
    for p_a in (0.6, 0.9, 0.99):
        every = math.log(0.5 / (1 - p_a))
        assert 0 <= cube_tradeoff(law, [(every, dim)]).find_least_p_a() - p_a <= 2e-5
        if dim > 1000 or (dim == 10 and p_a == 0.6):  # else s > 2b is not rare
            one = 2 * dim * (p_a - 0.5)
            assert 0 <= cube_tradeoff(law, [(one, 1)]).find_least_p_a() - p_a <= 2e-5


@pytest.mark.parametrize("order", [1, math.inf])
@pytest.mark.parametrize("family", ["cube", "cross"])
def test_the_worst_perturbation_of_given_length_is_a_vertex(family: str, order: float) -> None:
    """The T of a vertex lies below that of random δ of the same length, by samples."""
    law: RadialNoise = noise.linf_exp(k=1, j=0, sigma=1, dim=4)
    if family == "cross":
        law = noise.l1_exp(k=3, j=0, sigma=1, dim=4)
    if family == "cross" and order > 1:
        pytest.skip("there is no quadrature for all coordinates of a cross-polytope")
    count = 1 if order == 1 else 4
    worst = cube_tradeoff(law, [(1.2, count)]) if family == "cube" else cross_tradeoff(law, 1.2)
    rng = np.random.default_rng(3)
    for _ in range(5):
        delta = rng.normal(size=4) ** 3
        delta *= 1.2 / np.linalg.norm(delta, order)
        check_by_sampling(worst, law, delta, loss=1.0)


@pytest.mark.parametrize("shift", [math.nan, math.inf])
def test_a_shift_is_finite(shift: float) -> None:
    with pytest.raises(RadiusError, match="finite number"):
        ball_tradeoff(from_radial_density(student, dim=3), shift)
    with pytest.raises(RadiusError, match="finite number"):
        cross_tradeoff(noise.l1_exp(k=1, j=0, scale=1, dim=3), shift)
