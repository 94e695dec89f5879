"""Joint noise of a user: any log-density with any sampler, drawn in reproducible blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from unicr import noise
from unicr.errors import NoiseError

COVARIANCE = torch.tensor([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]]).double()
ROOT = torch.linalg.cholesky(COVARIANCE)
INVERSE = torch.linalg.inv(COVARIANCE)


def logpdf(z: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(-0.5 * ((z @ INVERSE) * z).sum(1))


def sampler(n: int, generator: torch.Generator) -> torch.Tensor:
    z = torch.randn(n, 3, generator=generator, dtype=torch.float64)
    return torch.as_tensor(z @ ROOT.T)


def correlated(**declared: Any) -> noise.Joint:
    return noise.Joint(logpdf, sampler, dim=3, **declared)


def test_a_correlated_gaussian_is_sampled() -> None:
    n = 50_000
    z = correlated().sample(n, seed=3, dtype=torch.float64).numpy()
    spread = np.sqrt(
        (COVARIANCE**2 + torch.outer(COVARIANCE.diag(), COVARIANCE.diag())).numpy() / n
    )
    assert np.all(np.abs(np.cov(z.T) - COVARIANCE.numpy()) < 6 * spread)  # 2e-9 by entry
    assert np.all(np.abs(z.mean(axis=0)) < 6 * np.sqrt(COVARIANCE.diag().numpy() / n))
    white = np.linalg.solve(ROOT.numpy(), z.T).ravel()
    limit = math.sqrt(math.log(2e6) / (2 * white.size))  # false alarm 1e-6
    assert stats.kstest(white, stats.norm.cdf).statistic < limit


def test_log_prob_is_the_users_up_to_its_constant() -> None:
    law = stats.multivariate_normal(np.zeros(3), COVARIANCE.numpy())
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 3)))
    shift = law.logpdf(np.zeros(3))
    one = correlated()
    np.testing.assert_allclose(one.log_prob(z).numpy() + shift, law.logpdf(z.numpy()), rtol=1e-12)
    assert one.log_prob(z.float()).dtype == torch.float64
    assert one.log_prob(z.reshape(5, 3, 1)).shape == (5,)
    wide = stats.multivariate_normal(np.zeros(3), 4 * COVARIANCE.numpy())
    np.testing.assert_allclose(
        (one * 2.0).log_prob(z).numpy() + shift, wide.logpdf(z.numpy()), rtol=1e-12
    )


def test_sigma_and_scaling() -> None:
    one = correlated()
    expected = math.sqrt(float(COVARIANCE.diag().mean()))
    assert one.sigma == pytest.approx(expected, rel=0.06)  # 4,096 samples
    assert (one * 2.0).sigma == pytest.approx(2 * one.sigma, rel=1e-12)
    np.testing.assert_array_equal((one * 2.0).sample(4), 2 * one.sample(4))
    assert one.with_sigma(1).sigma == pytest.approx(1, rel=1e-9)
    assert correlated(finite_variance=False).sigma == math.inf


def test_facts_are_the_users_word() -> None:
    cautious = correlated().facts
    assert cautious.source == "declared"
    assert not cautious.symmetric
    assert not cautious.log_concave
    assert not cautious.unimodal
    assert not cautious.bounded
    bold = correlated(symmetric=True, log_concave=True).facts
    assert bold.symmetric
    assert bold.log_concave
    assert bold.unimodal
    assert correlated(unimodal=True).facts.unimodal


def test_it_is_a_value() -> None:
    one = correlated(name="mine")
    assert one == correlated(name="mine")
    assert hash(one) == hash(correlated(name="mine"))
    assert one != one * 2.0
    assert one.text == "mine"
    assert (one * 2.0).text == "mine * 2"
    assert correlated().text == "Joint(logpdf, dim=3)"
    with pytest.raises(AttributeError, match="cannot be set"):
        one._scale = 2.0
    with pytest.raises(NoiseError, match="has dimension 3, but the input has 4"):
        one.sample(2, 4)


def test_global_random_state_is_untouched() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    correlated().sample(100)
    assert torch.equal(before, torch.get_rng_state())


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "density of a wrong shape": (
        lambda: noise.Joint(lambda z: -z.square(), sampler, dim=3),
        r"returned shape \(64, 3\) for 64 samples",
    ),
    "NaN density": (
        lambda: noise.Joint(lambda z: z.sum(1) * math.nan, sampler, dim=3),
        "returned NaN",
    ),
    "density zero at its own samples": (
        lambda: noise.Joint(lambda z: torch.where(z[:, 0] > 0, 0.0, -math.inf), sampler, dim=3),
        "density and sampler do not match",
    ),
    "sampler of a wrong shape": (
        lambda: noise.Joint(logpdf, lambda n, g: torch.randn(3, n, generator=g), dim=3),
        r"sampler .* returned shape \(3, 64\), but \(64, 3\) is needed",
    ),
    "sampler of infinities": (
        lambda: noise.Joint(logpdf, lambda n, g: torch.full((n, 3), math.inf), dim=3),
        "not finite",
    ),
    "sampler that ignores its generator": (
        lambda: noise.Joint(logpdf, lambda n, g: torch.randn(n, 3), dim=3),
        "draw from the `generator`",
    ),
    "dim": (lambda: noise.Joint(logpdf, sampler, dim=0), "dim=0"),
    "fractional dim": (lambda: noise.Joint(logpdf, sampler, dim=2.5), "dim=2.5"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", REFUSED)
def test_mistakes_are_named(name: str) -> None:
    make, reason = REFUSED[name]
    with pytest.raises(NoiseError, match=reason):
        make()


def test_showing_draws_no_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    one = correlated() * 2.0
    monkeypatch.setattr(noise.Joint, "sample", None)
    assert repr(one).endswith(" * 2")
