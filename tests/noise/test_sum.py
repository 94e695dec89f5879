"""Sums of independent noises: text, data, samples, and radii that no linear classifier breaks."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from unicr import noise
from unicr.errors import NoiseError, RadiusError, SpecError
from unicr.noise._base import Draws
from unicr.noise.internal import derive
from unicr.radius import RadiusCurve, certified_radius
from unicr.values import Array

TEXT = "sum(gaussian(sigma=0.5), laplace(sigma=0.4))"


def test_a_sum_is_a_value_with_a_text_and_data() -> None:
    law = noise.Sum(noise.gaussian(sigma=0.5), noise.laplace(sigma=0.4))
    assert law.text == TEXT
    assert noise.parse(TEXT) == law == noise.from_data(json.loads(json.dumps(noise.to_data(law))))
    assert noise.parse(f"{TEXT} * 2") == law * 2 == noise.parse(f"({TEXT}) * 2")
    assert law != noise.Sum(noise.laplace(sigma=0.4), noise.gaussian(sigma=0.5))
    assert law.sigma == math.hypot(0.5, 0.4)
    assert law.facts.symmetric
    assert law.facts.log_concave
    assert law.dim is None
    nested = noise.Sum(law, noise.ball(scale=1, dim=3))
    assert len(nested.parts) == 3
    assert nested.dim == 3
    assert noise.parse(nested.text) == nested


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sum(gaussian(sigma=1))", "at least two parts"),
        ("sum(gaussian(sigma=3), gaussian(sigma=4))", r"gaussian\(sigma=5\)"),
        ("sum(ball(scale=1, dim=3), ball(scale=1, dim=4))", "one dimension, not 3 and 4"),
        ("sum(gaussian(sigma=1), laplace(sigma=1)", "not closed"),
        ("sum(gaussian(sigma=1), 3)", "cannot read"),
        ("sum(gaussian(sigma=1), laplace(sigma=1)).truncated(2)", "cannot be truncated"),
        ("sum(gaussian(sigma=1), sum(laplace(sigma=1), sech(sigma=1)))", "one sum"),
        (
            "sum(laplace(sigma=1).scales(1, 2), gaussian(sigma=1).scales(1, 2))",
            "at least one part must have",
        ),
    ],
)
def test_what_is_no_sum_is_refused_in_one_line(text: str, reason: str) -> None:
    with pytest.raises((SpecError, NoiseError), match=reason) as error:
        noise.parse(text)
    assert "\n" not in str(error.value)


def test_samples_follow_the_convolution() -> None:
    """DKW: n = 20,000 points are off by more than the limit with probability 1e-6."""
    law, n = noise.Sum(noise.laplace(scale=1), noise.uniform(scale=2)), 10_000
    z = np.sort(law.sample(n, 2, seed=3, dtype=torch.float64).numpy().ravel())

    def integral(x: Array) -> Array:  # of the distribution function of Laplace noise
        return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, x + np.exp(-np.abs(x)) / 2)

    exact = (integral(z + 2) - integral(z - 2)) / 4  # the mean of F over z − 2 … z + 2
    found = (np.arange(2 * n) + 0.5) / (2 * n)
    assert np.abs(found - exact).max() < math.sqrt(math.log(2e6) / (4 * n))


@pytest.mark.parametrize("p_a", [0.6, 0.9, 0.999])
def test_no_linear_classifier_breaks_the_radius_of_a_sum(p_a: float) -> None:
    """f(z) = [z_1 < t] has p_A = F(t) under the sum, and changes at δ = t e_1, F by quadrature."""
    normal, laplace = stats.norm(scale=0.5), stats.laplace(scale=0.4 / math.sqrt(2))

    def cdf(t: float) -> float:
        inside = lambda y: normal.pdf(y) * laplace.cdf(t - y)  # noqa: E731
        return float(integrate.quad(inside, -8, 8, points=(t,), epsabs=1e-12, limit=200)[0])

    law = noise.parse(TEXT)
    for t in (0.05, 0.3, 0.8, 1.5):
        assert certified_radius(law, 1, 7, p_a=cdf(t)).radius <= t * (1 + 1e-9)
    found = certified_radius(law, 1, 7, p_a=p_a)
    parts = [certified_radius(part, 1, 7, p_a=p_a).radius for part in law.parts]
    assert found.radius == pytest.approx(max(parts), rel=1e-12)
    assert found.theorem.endswith("part of a sum")
    assert found.guarantee == "approximate"
    curve = RadiusCurve(law, 1, 7)
    assert found.radius * (1 - 1e-3) < float(curve(p_a)) <= found.radius
    assert float(curve(1.0)) == math.inf
    assert not curve.bracketed


def test_a_part_may_be_anything_that_does_not_know_the_input() -> None:
    mixture = noise.Joint(
        lambda z: -z.square().sum(1),
        lambda n, g: torch.randn(n, 3, generator=g) * 2.0,
        dim=3,
        name="anything",
    )
    law = noise.Sum(mixture, noise.gaussian(sigma=0.7))
    found = certified_radius(law, 2, p_a=0.9)
    assert found.radius == certified_radius(noise.gaussian(sigma=0.7), 2, 3, p_a=0.9).radius
    with pytest.raises(NoiseError, match=r"the density of .* is not known"):
        law.log_prob(torch.zeros(1, 3))
    with pytest.raises(RadiusError, match=r"the density of .* is not known"):
        certified_radius(law, 2, p_a=0.9, engine="montecarlo")


def test_a_sum_has_the_facts_that_all_of_its_parts_have() -> None:
    gaussian, cauchy = noise.gaussian(sigma=1), noise.cauchy(scale=1)
    slope = noise.from_density(lambda x: -np.asarray(x), support=(0, math.inf))
    heavy, lean = noise.Sum(gaussian, cauchy), noise.Sum(gaussian, slope)
    for law in (heavy, noise.Sum(cauchy, gaussian)):
        assert law.facts.symmetric
        assert not law.facts.log_concave
        assert not law.facts.unimodal
        assert not law.facts.finite_variance
        assert law.sigma == math.inf
    for law in (lean, noise.Sum(slope, gaussian)):
        assert not law.facts.symmetric
        assert not law.facts.bounded
        assert law.facts.positive
        assert law.facts.source == "table"
    # two exponential laws: E(X + Y)² = 2 + 2 + 2·1·1
    assert noise.Sum(slope, slope).facts.source == "table"
    assert noise.Sum(slope, slope).sigma == pytest.approx(math.sqrt(6), rel=1e-6)


def test_copies_of_a_sum_follow_from_their_number_alone() -> None:
    law = noise.parse(TEXT)
    out, part = torch.empty(6, 3), torch.empty(2, 3)
    key = derive("a sum")
    law._fill(out, Draws(key, 0), None)
    law._fill(part, Draws(key, 4), None)
    assert torch.equal(part, out[4:])
