"""Noise with a scale per coordinate: samples, density, and the radii that theorems give it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import special, stats

from unicr import noise
from unicr.errors import NoiseError
from unicr.norms import Norm, linf
from unicr.radius import Evidence, MonteCarlo, Question, certified_radius
from unicr.radius._boundary import find_first_root
from unicr.radius.theorems.all_equal import THEOREM as all_equal
from unicr.tradeoff import compose, make_ratio_law
from unicr.tradeoff.internal import compute_margin, compute_start_margin

SCALES = (1.0, 0.5, 2.0)
QUICK = MonteCarlo(samples=4_000, particles=6, iterations=4, confidence_method="none")


def test_samples_are_the_scaled_samples_of_the_base() -> None:
    base = noise.laplace(sigma=1)
    one = noise.Anisotropic(base, SCALES)
    z = one.sample(100, seed=4, start=7, dtype=torch.float64)
    plain = base.sample(100, 3, seed=4, start=7, dtype=torch.float64)
    np.testing.assert_allclose(z, plain * torch.tensor(SCALES), rtol=1e-15)
    np.testing.assert_array_equal(one.sample(3, seed=4, start=9, dtype=torch.float64), z[2:5])
    shift = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    moved = one.sample(100, seed=4, start=7, dtype=torch.float64, base=shift)
    np.testing.assert_allclose(moved, z + shift, rtol=1e-12)


def test_density_is_the_product_of_scaled_ones() -> None:
    one = noise.Anisotropic(noise.laplace(scale=0.7), SCALES)
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 3)))
    laws = [stats.laplace(scale=0.7 * s) for s in SCALES]
    expected = sum(law.logpdf(z[:, i].numpy()) for i, law in enumerate(laws))
    np.testing.assert_allclose(one.log_prob(z), expected, rtol=1e-12)
    assert one.log_prob(z.reshape(6, 1, 3).float()).dtype == torch.float64


def test_it_is_a_value() -> None:
    base = noise.gennorm(beta=1.5, sigma=1)
    one = noise.Anisotropic(base, SCALES)
    assert one == noise.Anisotropic(base, np.array([SCALES]))
    assert one != noise.Anisotropic(base, (1.0, 0.5, 2.5))
    assert hash(one) == hash(noise.Anisotropic(base, list(SCALES)))
    assert one.dim == 3
    assert one.text == "gennorm(beta=1.5, sigma=1).scales(1, 0.5, 2)"
    assert noise.parse(one.text) == one
    assert (one * 2).entries.tolist() == [2.0, 1.0, 4.0]
    assert one.sigma == pytest.approx(math.sqrt(5.25 / 3), rel=1e-12)
    assert one.facts == base.facts
    long = noise.Anisotropic(base, np.linspace(1, 2, 500))
    assert long.text == "Anisotropic(gennorm(beta=1.5, sigma=1), 500 scales from 1 to 2)"
    assert long.cache_key != noise.Anisotropic(base, np.geomspace(1, 2, 500)).cache_key
    with pytest.raises(ValueError, match="read-only"):
        one.entries[0] = 3.0


@pytest.mark.parametrize(
    ("scales", "reason"),
    [
        ([], "scales is empty"),
        ([1.0, 0.0], r"scales\[1\]=.*above 0"),
        ([1.0, math.nan], r"scales\[1\]=.*nan"),
        ([-1.0], r"scales\[0\]="),
        (["a"], "must be a list of numbers"),
    ],
)
def test_bad_scales_are_named(scales: list[float], reason: str) -> None:
    with pytest.raises(NoiseError, match=reason):
        noise.Anisotropic(noise.gaussian(sigma=1), scales)


def test_the_base_must_be_iid() -> None:
    with pytest.raises(NoiseError, match=r"i\.i\.d\. noise to scale, not ball"):
        noise.Anisotropic(noise.ball(scale=1, dim=2), [1, 2])


def worst_by_grid(base: noise.IID, scales: tuple[float, float], p: float, p_a: float) -> float:
    """Brute force in two dimensions: the smallest boundary radius over a fan of directions."""
    best = math.inf
    norm = Norm(p)
    for angle in np.linspace(0, math.pi / 2, 13):
        direction = np.array([math.cos(angle), math.sin(angle)])
        direction = np.where(direction < 1e-9, 0, direction) / norm(direction)

        def value(r: float, direction: np.ndarray = direction) -> float:
            moves = [r * d / s for d, s in zip(direction, scales, strict=True) if d > 0]
            laws = [(make_ratio_law(base.unit, u / base.scale), 1) for u in moves]
            return compute_margin(compose(laws), p_a, 1 - p_a)

        start = compute_start_margin(p_a, 1 - p_a)
        best = min(best, find_first_root(value, start, 0.5, monotone=True, tolerance=1e-4))
    return best


@pytest.mark.parametrize("p", [1.0, math.inf])
@pytest.mark.parametrize("name", ["laplace(sigma=1)", "gennorm(beta=1.5, sigma=1)"])
def test_exact_radii_are_the_worst_of_a_fan(name: str, p: float) -> None:
    base = noise.parse(name)
    assert isinstance(base, noise.IID)
    scales = (1.0, 0.6)
    found = certified_radius(noise.Anisotropic(base, scales), p, p_a=0.9)
    assert found.guarantee == "exact"
    assert found.engine != "montecarlo"
    assert found.proved == pytest.approx(worst_by_grid(base, scales, p, 0.9), rel=1e-3)


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, 8.0, math.inf])
def test_gaussian_is_exact_for_every_p(p: float) -> None:
    one = noise.Anisotropic(noise.gaussian(sigma=0.8), SCALES)
    found = certified_radius(one, p, p_a=0.95, p_b=0.02)
    gap = 0.8 * (special.ndtri(0.95) - special.ndtri(0.02)) / 2
    generator = np.random.default_rng(1)
    directions = [np.abs(generator.normal(size=3)) ** 4 for _ in range(20_000)]
    directions += [np.eye(3)[i] for i in range(3)] + [np.ones(3)]
    norm = Norm(p)
    radii = [gap * norm(d) / np.linalg.norm(d / np.array(SCALES)) for d in directions]
    assert found.guarantee == "exact"
    assert found.radius <= min(radii) * (1 + 1e-12)
    assert found.radius == pytest.approx(min(radii), rel=2e-3)
    if math.isinf(p):
        assert found.radius == pytest.approx(gap / np.linalg.norm(1 / np.array(SCALES)), rel=1e-12)


def test_equal_scales_are_the_iid_noise() -> None:
    base = noise.laplace(sigma=1)
    for p, p_a in itertools.product((1, math.inf), (0.6, 0.99)):
        found = certified_radius(noise.Anisotropic(base, [2.0] * 5), p, p_a=p_a)
        assert found.radius == certified_radius(base * 2, p, 5, p_a=p_a).radius


def test_many_scales_are_rounded_down() -> None:
    base = noise.laplace(sigma=1)
    scales = np.geomspace(1, 1.3, 200)

    def composed(one: noise.Noise) -> float:
        bound = all_equal.match(Question(one, linf))
        assert bound is not None
        return bound.radius(Evidence(0.9))

    proved = composed(noise.Anisotropic(base, scales))
    rough = [noise.Anisotropic(base, np.geomspace(1, 1.3, 40).repeat(5) * f) for f in (0.97, 1.03)]
    low, high = (composed(one) for one in rough)
    assert low < proved < high
    sampled = certified_radius(noise.Anisotropic(base, scales), "inf", p_a=0.9, montecarlo=QUICK)
    assert sampled.engine == "montecarlo"
    assert 0.9 * sampled.searched < proved <= sampled.searched * (1 + 1e-12)  # rounded down


def test_l2_is_a_bracket() -> None:
    base = noise.laplace(sigma=1)
    one = noise.Anisotropic(base, (1.0, 0.6))
    truth = worst_by_grid(base, (1.0, 0.6), 2.0, 0.9)
    found = certified_radius(one, 2, p_a=0.9, montecarlo=QUICK)
    assert found.engine == "montecarlo"
    assert found.searched == pytest.approx(truth, rel=0.04)
    assert 0.7 * truth < found.proved <= truth
    assert "smallest scale" in found.theorem
