"""Noise from a user's own 1-D density, from scipy and from torch, against closed forms."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import integrate, stats

from unicr import noise
from unicr.errors import NoiseError
from unicr.noise import IID

D: Any = torch.distributions
U = np.array([1e-12, 1e-9, 1e-4, 0.01, 0.2, 0.45])
Array = NDArray[np.float64]


def normal(x: Array) -> Array:
    return -(x**2) / 2 + 17.0


def gumbel(x: Array) -> Array:
    return -x - np.exp(-x)


def tent(x: Array) -> Array:
    """Kinks at −1, 0 and 1, where the density falls to zero."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(1 - np.abs(x), 0.0)))


def two_modes(x: Array) -> Array:
    """One quarter at −40, three quarters at 60, nothing in between."""
    left = math.log(0.25) - (x + 40) ** 2 / 2
    right = math.log(0.75) - (x - 60) ** 2 / 2
    return np.asarray(np.logaddexp(left, right))


def same_law(one: IID, law: Any) -> None:
    """As near as the straight pieces of a table are: 1e-6 in the density, less in its tails."""
    near = 1e-6 + 2e-8 / np.sqrt(U)
    for x in (law.ppf(U), one.ppf(U)):
        assert np.all(np.abs(one.cdf(x) / law.cdf(x) - 1) <= near)
    for x in (law.isf(U), one.isf(U)):
        assert np.all(np.abs(one.sf(x) / law.sf(x) - 1) <= near)
    x = law.ppf(np.linspace(0.01, 0.99, 21))
    np.testing.assert_allclose(one.pdf(x), law.pdf(x), rtol=3e-6)
    if math.isfinite(law.std()):
        assert one.mean == pytest.approx(law.mean(), rel=1e-6, abs=1e-7)
        assert one.sigma == pytest.approx(math.sqrt(law.var() + law.mean() ** 2), rel=1e-5)


def test_an_unnormalised_normal() -> None:
    one = noise.from_density(normal)
    same_law(one, stats.norm())
    assert one.facts.symmetric
    assert one.facts.log_concave
    assert one.facts.unimodal
    assert not one.facts.bounded
    assert one.facts.finite_variance
    assert one.facts.source == "table"


def test_an_asymmetric_density() -> None:
    one = noise.from_density(gumbel)
    same_law(one, stats.gumbel_r())
    assert not one.facts.symmetric
    assert one.facts.log_concave


def test_mass_is_one_by_another_quadrature() -> None:
    for f, low, high in ((gumbel, -6.0, 45.0), (tent, -1.0, 1.0), (normal, -9.0, 9.0)):
        one = noise.from_density(f)
        x = np.linspace(low, high, 400_001)
        mass = integrate.simpson(one.pdf(x), x=x)
        assert mass == pytest.approx(1, abs=1e-7)


def test_separated_modes_keep_their_masses_in_density_and_samples() -> None:
    one = noise.from_density(two_modes)
    np.testing.assert_allclose(one.cdf([-40, 0, 60]), [0.125, 0.25, 0.625], rtol=1e-7)
    assert one.mean == pytest.approx(0.75 * 60 - 0.25 * 40, rel=1e-7)
    n = 400_000
    draws = one.sample(n, 1, seed=5, dtype=torch.float64).numpy().ravel()
    spread = 5 * math.sqrt(0.25 * 0.75 / n)  # five standard deviations: 6e-7
    assert abs(np.mean(draws < 0) - 0.25) < spread
    assert np.abs(np.abs(draws - 10) - 50).max() < 8
    assert not one.facts.log_concave
    assert not one.facts.unimodal
    assert not one.facts.symmetric


def hollow(log_density: Callable[[Array], Array], low: float, high: float) -> Any:
    return lambda x: np.where((x > low) & (x < high), -np.inf, log_density(x))


def cauchy(x: Array) -> Array:
    return -np.log1p(x**2)


POSITIVE: dict[str, tuple[Callable[..., Any], tuple[float, float], bool]] = {
    "normal": (normal, (-math.inf, math.inf), True),
    "underflowing": (lambda x: np.log(np.exp(normal(x))), (-math.inf, math.inf), True),
    "soft end": (
        lambda x: np.where(x > 0, -0.5 / np.abs(x) - 1.5 * np.log(np.abs(x)), -np.inf),
        (-math.inf, math.inf),
        False,
    ),
    "soft declared end": (lambda x: -0.5 / x - 1.5 * np.log(x), (0.0, math.inf), False),
    "Cauchy": (cauchy, (-math.inf, math.inf), True),
    "zero at one point": (lambda x: np.log(np.abs(x)) - x**2, (-math.inf, math.inf), True),
    "half line": (lambda x: -x, (0.0, math.inf), False),
    "bounded": (tent, (-math.inf, math.inf), False),
    "hole": (hollow(normal, -0.5, 0.25), (-math.inf, math.inf), False),
    "hole of a Cauchy": (hollow(cauchy, -1, 1), (-math.inf, math.inf), False),
    "narrow hole": (hollow(normal, 0.3, 0.3001), (-math.inf, math.inf), False),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", POSITIVE)
def test_positive_means_no_hole_and_no_end(name: str) -> None:
    function, support, expected = POSITIVE[name]
    assert noise.from_density(function, support=support).facts.positive == expected


def test_every_noise_knows_whether_it_is_positive() -> None:
    for one in (noise.gaussian(sigma=1), noise.pareto(beta=1, scale=1), noise.cauchy(scale=2)):
        assert one.facts.positive
        assert not one.truncated(3).facts.positive
        assert noise.Anisotropic(one, [1, 2]).facts.positive
    assert not noise.uniform(sigma=1).facts.positive
    assert noise.spherical_exp(k=1, scale=1, dim=20).facts.positive
    assert not noise.ball(scale=1, dim=3).facts.positive


def test_kinks_and_ends_of_the_support() -> None:
    one = noise.from_density(tent)
    same_law(one, stats.triang(0.5, -1, 2))
    assert one.support == pytest.approx((-1, 1), abs=1e-9)
    assert one.facts.bounded
    assert one.facts.symmetric
    assert bool((one.sample(100_000, 1).abs() <= 1).all())
    assert float(one.pdf(1.5)) == 0


def test_a_declared_support_and_a_size() -> None:
    one = noise.from_density(lambda x: -x, support=(0, math.inf), scale=3)
    same_law(one, stats.expon(0, 3))
    assert one.scale == 3
    sized = noise.from_density(gumbel, sigma=2)
    assert sized.sigma == pytest.approx(2, rel=1e-12)
    with pytest.raises(NoiseError, match="not both"):
        noise.from_density(normal, sigma=1, scale=1)
    with pytest.raises(NoiseError, match="scale=-1"):
        noise.from_density(normal, scale=-1)


def test_scalar_functions_and_heavy_tails() -> None:
    cauchy = noise.from_density(lambda x: -math.log1p(float(x) ** 2))
    same_law(cauchy, stats.cauchy())
    assert cauchy.sigma == math.inf
    assert not cauchy.facts.finite_variance
    with pytest.raises(NoiseError, match=r"no finite variance.*truncated"):
        cauchy.with_sigma(1)


def raising(x: Array) -> Array:
    raise RuntimeError("no idea")


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "infinite mass": (lambda x: -np.log1p(np.abs(x)), "integrable"),
    "constant": (lambda x: np.zeros_like(x), "integrable"),
    "growing": (lambda x: x, "integrable"),
    "zero everywhere": (lambda x: np.full_like(x, -np.inf), "."),
    "NaN": (lambda x: np.full_like(x, np.nan), "(?i)nan"),
    "NaN in places": (lambda x: np.where(np.abs(x) < 1, np.nan, -x * x), "(?i)nan"),
    "negative density": (lambda x: np.log(np.asarray(np.exp(-x * x) - 0.1)), "(?i)nan"),
    "raising": (raising, "no idea"),
    "complex": (lambda x: -(x**2) + 1j, "complex"),
    "text": (lambda x: "x", "."),
    "infinite peak": (lambda x: -2 * np.log(np.abs(x)) - x * x, "integrable"),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_a_density_is_refused(name: str) -> None:
    function, reason = REFUSED[name]
    with pytest.raises(NoiseError, match=reason):
        noise.from_density(function)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(NoiseError, match="callable"):
        noise.from_density(3)  # type: ignore[arg-type]


def test_declared_facts() -> None:
    one = noise.from_density(normal, symmetric=True, log_concave=True)
    assert one.facts.source == "table"
    assert one.facts.log_concave
    modest = noise.from_density(normal, symmetric=False, log_concave=False)
    assert not modest.facts.symmetric
    assert not modest.facts.log_concave
    with pytest.raises(NoiseError, match=r"gumbel.*declared to be symmetric"):
        noise.from_density(gumbel, symmetric=True)
    with pytest.raises(NoiseError, match="declared to be log_concave"):
        noise.from_density(two_modes, log_concave=True)


@pytest.mark.parametrize(
    "law",
    [
        stats.norm(1, 2),
        stats.gumbel_r(0, 2),
        stats.t(3),
        stats.gamma(2.5, scale=0.3),
        stats.beta(2, 5),
        stats.lognorm(0.5),
    ],
    ids=lambda law: law.dist.name,
)
def test_scipy_distributions(law: Any) -> None:
    one = noise.from_scipy(law)
    same_law(one, law)
    assert noise.parse(repr(one * 1.7)) == one * 1.7
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("law", "reason"),
    [
        (stats.norm, "norm is not a frozen"),
        (stats.gamma, "gamma is not a frozen"),
        (stats.poisson(3), "poisson is not a frozen continuous"),
        (stats.poisson, "poisson is not a frozen continuous"),
        (stats.multivariate_normal([0, 1]), "not a frozen continuous"),
        (stats.norm([0, 1]), "arrays"),
        (stats.norm(0, -1), "invalid parameters"),
        ("norm", "not a frozen"),
    ],
)
def test_other_scipy_objects_are_refused(law: Any, reason: str) -> None:
    with pytest.raises(NoiseError, match=reason):
        noise.from_scipy(law)


TORCH: dict[str, tuple[Any, Any]] = {
    "normal": (D.Normal(1.0, 2.0), stats.norm(1, 2)),
    "gamma": (D.Gamma(2.0, 0.5), stats.gamma(2, scale=2)),
    "uniform": (D.Uniform(-1.0, 2.0), stats.uniform(-1, 3)),
    "half Cauchy": (D.HalfCauchy(1.0), stats.halfcauchy()),
    "Student": (D.StudentT(3.0), stats.t(3)),
    "log-normal": (D.LogNormal(0.0, 0.5), stats.lognorm(0.5)),
}


@pytest.mark.parametrize("name", TORCH)
def test_torch_distributions(name: str) -> None:
    distribution, law = TORCH[name]
    torch.manual_seed(7)
    before = torch.get_rng_state()
    one = noise.from_torch(distribution)
    same_law(one, law)
    assert torch.equal(before, torch.get_rng_state())
    if name == "normal":
        torch.manual_seed(8)
        assert noise.from_torch(distribution) == one


def test_a_torch_mixture_keeps_both_modes() -> None:
    modes = D.Normal(torch.tensor([-30.0, 30.0]), 1.0)
    one = noise.from_torch(D.MixtureSameFamily(D.Categorical(torch.tensor([0.25, 0.75])), modes))
    assert float(one.cdf(0.0)) == pytest.approx(0.25, rel=1e-7)  # its weights are float32
    assert "\n" not in one.text


@pytest.mark.parametrize(
    ("distribution", "reason"),
    [
        (D.Normal(torch.zeros(2), 1.0), r"batch shape \(2,\)"),
        (D.MultivariateNormal(torch.zeros(1), torch.eye(1)), r"event shape \(1,\)"),
        (D.Poisson(3.0), "discrete"),
        (D.Bernoulli(0.5), "discrete"),
        (stats.norm(), "not a torch"),
    ],
)
def test_other_torch_objects_are_refused(distribution: Any, reason: str) -> None:
    with pytest.raises(NoiseError, match=reason):
        noise.from_torch(distribution)


def test_equality_needs_the_same_density() -> None:
    first, second, other = (noise.from_density(f) for f in (normal, normal, gumbel))
    assert first == second
    assert hash(first) == hash(second)
    assert first != other
    one = noise.from_density(lambda x: -(x**2), name="mine")
    assert one != noise.from_density(lambda x: -2 * x**2, name="mine")
    assert one * 2.0 != one
    assert (one * 2.0).unit == one
    with pytest.raises(AttributeError, match="cannot be set"):
        one.scale = 2.0
    copy = pickle.loads(pickle.dumps(other))
    assert copy == other
    np.testing.assert_array_equal(copy.cdf(U), other.cdf(U))


def test_log_prob_adds_over_coordinates() -> None:
    one = noise.from_density(gumbel) * 2.0
    z = torch.linspace(-2, 5, 24).reshape(2, 3, 4)
    expected = stats.gumbel_r(0, 2).logpdf(z.numpy().astype(np.float64)).sum(axis=(1, 2))
    assert one.log_prob(z).dtype == torch.float64
    np.testing.assert_allclose(one.log_prob(z).numpy(), expected, rtol=1e-6)
