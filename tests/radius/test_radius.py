"""Certified radii against closed forms, reference values, properties, and a check of soundness."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import special, stats

from unicr import noise
from unicr.errors import RadiusError
from unicr.montecarlo import MonteCarlo
from unicr.norms import Norm
from unicr.radius import (
    Evidence,
    Grade,
    Question,
    Radius,
    RadiusCurve,
    certified_radius,
    round_down,
)
from unicr.radius._direction import list_counts, search_direction

PROBABILITIES = (0.51, 0.6, 0.9, 0.99, 0.999, 1 - 1e-6, 1 - 1e-9)

HEAVY = [pytest.mark.slow, pytest.mark.important]  # what takes longest


def searched(spec: str, p: float, dim: int, p_a: float, p_b: float | None = None) -> Radius:
    return certified_radius(noise.parse(spec), p, dim, p_a=p_a, p_b=p_b)


@pytest.mark.parametrize("dim", [1, 784, 3072, 150528])
@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, 10, math.inf])
def test_gaussian_every_norm(p: float, dim: int) -> None:
    for p_a in PROBABILITIES:
        r2 = 0.7 * stats.norm.isf(1 - p_a)
        truth = r2 if p <= 2 else r2 * dim ** (1 / p - 0.5)
        result = searched("gaussian(sigma=0.7)", p, dim, p_a)
        assert result.searched == pytest.approx(truth, rel=1e-9)
        assert result.proved <= truth * (1 + 1e-12)
        assert result.guarantee == "exact"


@pytest.mark.parametrize("p_a", [0.51, 0.9, 0.999, 1 - 1e-9])
def test_numeric_engine_agrees_with_gaussian_closed_form(p_a: float) -> None:
    for p, dim in ((math.inf, 784), (2, 50), (1, 784)):
        exact = searched("gaussian(sigma=1)", p, dim, p_a)
        numeric = certified_radius(noise.gaussian(sigma=1), p, dim, p_a=p_a, engine="numeric")
        assert numeric.engine == "composition"
        assert exact.searched * (1 - 1e-4) <= numeric.searched <= exact.searched * (1 + 1e-12)


@pytest.mark.parametrize(
    ("spec", "quantile"),
    [
        ("laplace(sigma=1)", stats.laplace(scale=math.sqrt(0.5)).isf),
        ("sech(sigma=1)", stats.hypsecant(scale=2 / math.pi).isf),
        ("gennorm(beta=1.5, scale=1)", stats.gennorm(1.5).isf),
        ("gennorm(beta=3, scale=1)", stats.gennorm(3).isf),
        ("uniform(scale=2)", stats.uniform(-2, 4).isf),
    ],
)
@pytest.mark.parametrize("p", [0.3, 1])
def test_log_concave_l1_is_the_quantile(spec: str, quantile, p: float) -> None:  # type: ignore[no-untyped-def]
    for p_a in PROBABILITIES:
        result = searched(spec, p, 3072, p_a)
        assert result.searched == pytest.approx(quantile(1 - p_a), rel=1e-7)
        assert result.guarantee == "exact"


def test_exponential_mix_l1_by_quadrature() -> None:
    one = noise.expmix(beta=0.5, sigma=1)
    x = certified_radius(one, 1, 784, p_a=0.97).searched
    grid = np.linspace(x, x + 40, 2_000_001)
    tail = np.trapezoid(one.pdf(grid), grid)
    assert tail == pytest.approx(0.03, rel=1e-9)


@pytest.mark.parametrize("dim", [1, 10, 3072])
def test_uniform_linf(dim: int) -> None:
    for p_a in (0.51, 0.6, 0.9, 0.99):
        truth = 2 * 1.5 * (1 - (1.5 - p_a) ** (1 / dim))
        result = searched("uniform(scale=1.5)", math.inf, dim, p_a)
        assert result.proved <= truth * (1 + 1e-12)
        assert result.searched == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("dim", [3, 784])
def test_uniform_ball(dim: int) -> None:
    one = noise.ball(scale=1.0, dim=dim)
    for p_a in (0.6, 0.99):
        a = (dim + 1) / 2
        truth = 2 - 4 * float(special.betaincinv(a, a, 0.75 - p_a / 2))
        result = certified_radius(one, 2, p_a=p_a)
        assert truth * (1 - 1e-4) <= result.searched <= truth * (1 + 1e-9)
        assert result.guarantee == "exact"


TABLE = [
    ("laplace(sigma=1)", 1, (0.15779, 1.13804, 2.76622, 4.39439)),
    ("laplace(sigma=1)", 2, (0.15779, 0.90968, 1.65652, 2.20559)),
    ("laplace(sigma=1)", math.inf, (0.00323, 0.01641, 0.02989, 0.03979)),
    ("gennorm(beta=1.5, sigma=1)", 1, (0.21691, 1.23802, 2.49803, 3.53848)),
    ("gennorm(beta=1.5, sigma=1)", 2, (0.21691, 1.21651, 2.2226, 2.9527)),
    ("gennorm(beta=3, sigma=1)", 2, (0.23812, 1.20451, 2.12666, 2.63087)),
    ("gennorm(beta=0.75, sigma=1)", 1, (0.11038, 0.95317, 2.63114, 4.42648)),
    ("sech(sigma=1)", 1, (0.20337, 1.17312, 2.64420, 4.11013)),
    ("expmix(beta=0.5, sigma=1)", math.inf, (0.00443, 0.0224, 0.04067, 0.05405)),
]


@pytest.mark.parametrize(("spec", "p", "reference"), TABLE, ids=lambda v: str(v)[:24])
def test_reference_table(spec: str, p: float, reference: tuple[float, ...]) -> None:
    """Values of an independent implementation, d = 3072, σ = 1, to the digits it printed."""
    one = noise.parse(spec)
    for p_a, value in zip((0.6, 0.9, 0.99, 0.999), reference, strict=True):
        found, _ = search_direction(Question(one, p, 3072), Evidence(p_a))
        assert found == pytest.approx(value, rel=2e-3, abs=5.1e-6)
        assert found <= value * (1 + 2e-4) + 5.1e-6


def test_big_plus_dust_is_found() -> None:
    """Near a crossover of the best k, one large coordinate and dust beats every k-equal."""
    result = searched("laplace(sigma=1)", 2, 3072, 0.72)
    assert result.searched == pytest.approx(0.40690, rel=5e-4)
    assert result.direction is not None
    assert len(result.direction.levels) == 2


def test_unequal_pair_is_found() -> None:
    result = searched("gennorm(beta=0.75, sigma=1)", 1.5, 3072, 0.84)
    assert result.searched == pytest.approx(0.63593, rel=5e-4)


def test_one_hot_alone_would_overestimate() -> None:
    result = searched("laplace(sigma=1)", 2, 3072, 0.99)
    assert result.searched < 1.66 < 2.76


@pytest.mark.parametrize(
    "spec",
    [
        "laplace(sigma=1)",
        "lapgauss(beta=0.5, sigma=1)",
        "gennorm(beta=0.25, sigma=1)",
        "cauchy(scale=1)",
        "pareto(beta=1, scale=1)",
        "cauchy(scale=1).truncated(5)",
    ],
)
def test_low_and_extreme_probabilities_work(spec: str) -> None:
    for p, dim in ((math.inf, 784), (1, 1), (math.inf, 1)):
        radii = [searched(spec, p, dim, p_a).searched for p_a in PROBABILITIES]
        assert all(np.diff(radii) > 0)
        assert radii[0] > 0
        assert all(np.isfinite(radii))


def test_one_dimension_makes_all_norms_equal() -> None:
    for spec in ("laplace(sigma=1)", "cauchy(scale=1)", "gennorm(beta=0.5, sigma=1)"):
        radii = [searched(spec, p, 1, 0.9).searched for p in (0.5, 1, 2, math.inf)]
        np.testing.assert_allclose(radii, radii[0], rtol=1e-6)


def test_asymmetric_signs_differ() -> None:
    """Gumbel at p_A = 0.9: the two signs give 1.884 and 1.2005, the radius is the smaller."""
    result = searched("scipy.gumbel_r(0, 1)", 1, 1, 0.9)
    assert result.searched == pytest.approx(1.2005, rel=1e-3)
    assert 0 < result.proved <= result.searched


@pytest.mark.slow
@pytest.mark.important
def test_asymmetric_linf_bracket() -> None:
    result = searched("scipy.gumbel_r(0, 1)", math.inf, 20, 0.9)
    assert 0 < result.proved <= result.searched
    assert result.theorem.startswith("(f)")


def test_comb_noise_first_root_only() -> None:
    """Uniform on three separated intervals: certified up to the first failure, not beyond it."""

    def comb(x: np.ndarray) -> np.ndarray:
        inside = (np.abs(x) <= 0.2) | (np.abs(np.abs(x) - 1) <= 0.2)
        return np.where(inside, 0.0, -np.inf)

    result = certified_radius(noise.from_density(comb), 1, 1, p_a=0.95)
    overlap_radius = 0.4 * (0.95 - 0.5)
    assert result.searched == pytest.approx(overlap_radius, rel=2e-2)
    assert result.searched < 0.25


def test_spherical_noise_in_every_norm() -> None:
    one = noise.spherical_gg(k=0, sigma=0.5, dim=50)
    for p in (1, 2, 4, math.inf):
        same = searched("gaussian(sigma=0.5)", p, 50, 0.95)
        result = certified_radius(one, p, p_a=0.95)
        assert result.searched == pytest.approx(same.searched, rel=1e-4)
        assert result.searched <= same.searched


@pytest.mark.slow
@pytest.mark.important
def test_a_users_spherical_density_that_rises_is_sampled_and_has_no_curve() -> None:
    mine = noise.from_radial_density(lambda r: -((r - 1) ** 2) / 2, dim=20)
    result = certified_radius(mine, 2, p_a=0.9, montecarlo=MonteCarlo(samples=4000))
    assert result.proved == 0 < result.searched
    assert result.engine == "montecarlo"
    with pytest.raises(RadiusError, match="increases with the length"):
        RadiusCurve(mine, 2)


def test_a_users_spherical_density_that_falls_is_proved() -> None:
    mine = noise.from_radial_density(lambda r: -(r**2) / 2, dim=20)
    for p, factor in ((2, 1.0), (math.inf, 20**-0.5)):
        result = certified_radius(mine, p, p_a=0.9)
        true = factor * float(stats.norm.ppf(0.9))
        assert true * (1 - 1e-3) <= result.proved <= true
        assert result.grade == Grade.CHECKED_ON_A_GRID
        assert result.guarantee == "exact"


def test_multiclass_values() -> None:
    result = searched("laplace(sigma=1)", 1, 784, 0.4, 0.2)
    law = stats.laplace(scale=math.sqrt(0.5))
    assert result.searched == pytest.approx((law.ppf(0.4) - law.ppf(0.2)) / 2, rel=1e-9)
    gauss = searched("gaussian(sigma=1)", 2, 784, 0.7, 0.1)
    assert gauss.searched == pytest.approx((stats.norm.ppf(0.7) - stats.norm.ppf(0.1)) / 2)
    numeric = certified_radius(
        noise.gaussian(sigma=1), math.inf, 784, p_a=0.7, p_b=0.1, engine="numeric"
    )
    assert numeric.searched == pytest.approx(gauss.searched / 28, rel=1e-4)
    assert numeric.searched <= gauss.searched / 28


def test_p_b_is_clipped() -> None:
    one = searched("laplace(sigma=1)", math.inf, 100, 0.9, 0.7)
    two = searched("laplace(sigma=1)", math.inf, 100, 0.9)
    assert one.searched == two.searched
    assert one.p_b == pytest.approx(0.1)


def test_abstains_when_p_a_is_not_above_p_b() -> None:
    for p_a, p_b in ((0.5, None), (0.3, 0.3), (0.2, None), (0.0, 0.5)):
        result = searched("laplace(sigma=1)", 2, 784, p_a, p_b)
        assert (result.radius, result.proved, result.searched) == (0, 0, 0)
        assert result.guarantee == "abstain"


def test_certainty_is_infinite_for_unbounded_noise_and_finite_for_bounded() -> None:
    assert searched("laplace(sigma=1)", 2, 784, 1.0).radius == math.inf
    assert searched("uniform(scale=1)", 1, 784, 1.0).radius == pytest.approx(1.0)
    assert searched("laplace(sigma=1)", 2, 784, 1.0).to_dict()["radius"] == "inf"


@pytest.mark.parametrize("p_a", [-0.1, 1.1, math.nan, "0.9", True])
def test_bad_probabilities(p_a: float) -> None:
    with pytest.raises(RadiusError, match="p_a="):
        certified_radius(noise.laplace(sigma=1), 2, 784, p_a=p_a)
    with pytest.raises(RadiusError, match="p_b="):
        certified_radius(noise.laplace(sigma=1), 2, 784, p_a=0.9, p_b=p_a)


def test_bad_dimensions_and_engines() -> None:
    one = noise.laplace(sigma=1)
    for dim in (0, -3, 2.5, True):
        with pytest.raises(RadiusError, match="dim="):
            certified_radius(one, 2, dim, p_a=0.9)  # type: ignore[arg-type]
    with pytest.raises(RadiusError, match="any dimension"):
        certified_radius(one, 2, p_a=0.9)
    with pytest.raises(RadiusError, match="has dimension 50"):
        certified_radius(noise.ball(scale=1, dim=50), 2, 51, p_a=0.9)
    with pytest.raises(RadiusError, match="engine="):
        certified_radius(one, 2, 784, p_a=0.9, engine="magic")  # type: ignore[call-overload]
    with pytest.raises(RadiusError, match="no exact theorem"):
        certified_radius(one, 2, 784, p_a=0.9, engine="exact")


def test_the_radius_is_the_proved_one_unless_the_searched_one_is_asked_for() -> None:
    one = noise.gennorm(beta=0.75, sigma=1)
    result = certified_radius(one, 1, 3072, p_a=0.9)
    assert result.radius == result.proved
    assert result.proved < result.searched
    asked = certified_radius(one, 1, 3072, p_a=0.9, searched=True)
    assert (asked.radius, asked.proved) == (result.searched, result.proved)


def test_round_down_never_rounds_up() -> None:
    rng = np.random.default_rng(5)
    for value in [*10 ** rng.uniform(-9, 3, 2000), 0.1, 1.0, 0.999999999, 2 / 3, 0.0]:
        assert float(round_down(float(value))) <= value
        assert float(round_down(float(value))) >= value * (1 - 2e-5)
    assert round_down(math.inf) == "inf"


def test_geometric_counts() -> None:
    for dim in (1, 2, 3, 10, 784, 150528):
        counts = list_counts(dim)
        assert counts[0] == 1
        assert counts[-1] == dim
        assert all(b <= max(a * 1.6, a + 1) for a, b in itertools.pairwise(counts))


SPECS = (
    "gaussian(sigma=1)",
    "laplace(sigma=1)",
    "gennorm(beta=1.5, sigma=1)",
    "gennorm(beta=0.75, sigma=1)",
    "cauchy(scale=1)",
    "uniform(sigma=1)",
    "expmix(beta=0.3, sigma=1)",
)


@settings(max_examples=20)
@given(
    spec=st.sampled_from(SPECS),
    p=st.sampled_from([1.0, math.inf]),
    dim=st.integers(1, 2000),
    p_a=st.floats(0.05, 1 - 1e-6),
    gap=st.floats(0.01, 0.9),
    scale=st.floats(0.01, 50),
)
def test_properties(spec: str, p: float, dim: int, p_a: float, gap: float, scale: float) -> None:
    """R grows with p_A, falls with p_B and p, scales with the noise; proved ≤ searched."""
    one = noise.parse(spec)
    p_b = p_a * (1 - gap)

    def radius(a: float, b: float, law: noise.Noise = one, norm: float = p) -> Radius:
        return certified_radius(law, norm, dim, p_a=a, p_b=b)

    assume(math.isinf(p) or one.facts.log_concave or dim == 1)  # nothing to search: quick
    base = radius(p_a, p_b)
    assert base.proved <= base.searched
    assert radius(p_a + 0.5 * (1 - p_a), p_b).searched >= base.searched * (1 - 3e-5)
    assert radius(p_a, p_b * 0.5).searched >= base.searched * (1 - 3e-5)
    assert radius(p_a, p_b, one * scale).searched == pytest.approx(scale * base.searched, rel=3e-5)
    other = radius(p_a, p_b, norm=math.inf)
    assert other.searched <= base.searched * (1 + 3e-5)


@pytest.mark.slow
@pytest.mark.important
@pytest.mark.parametrize("spec", ["laplace(sigma=1)", "gennorm(beta=3, sigma=1)"])
def test_radius_falls_with_p(spec: str) -> None:
    results = [searched(spec, p, 200, 0.9) for p in (0.5, 1, 1.5, 2, 3, math.inf)]
    found = [r.searched for r in results]
    proved = [r.proved for r in results]
    assert all(b <= a * (1 + 1e-4) for a, b in itertools.pairwise(found))
    assert all(a <= b for a, b in zip(proved, found, strict=True))
    assert all(r > 0 for r in proved)


@pytest.mark.parametrize(
    ("spec", "p"),
    [
        pytest.param("laplace(sigma=1)", 2, marks=HEAVY),
        pytest.param("gennorm(beta=3, sigma=1)", 2, marks=HEAVY),
        ("gennorm(beta=0.75, sigma=1)", 1),
        ("lapgauss(beta=0.5, sigma=1)", 1.5),
        ("cauchy(scale=1)", 1),
        ("expmix(beta=0.5, sigma=1)", math.inf),
    ],
)
def test_no_random_direction_breaks_a_proved_radius(spec: str, p: float) -> None:
    """Independent Monte Carlo of the likelihood-ratio test just inside `proved` (6 σ, 1e-9)."""
    one = noise.parse(spec)
    assert isinstance(one, noise.IID)
    dim, p_a, n = 30, 0.9, 40_000
    radius = certified_radius(one, p, dim, p_a=p_a).proved * (1 - 1e-9)
    rng = np.random.default_rng(11)
    z = one.sample(n, dim, seed=3, dtype=torch.float64).numpy()
    for trial in range(12):
        sparse = rng.random(dim) < (1.0, 0.3, 0.1)[trial % 3]
        delta = np.where(sparse, rng.standard_gamma(0.3, dim), 0.0)
        delta[0] += 1e-3 + (trial == 5)
        delta *= radius / Norm(p)(delta)
        under_p = (one.logpdf(z - delta) - one.logpdf(z)).sum(axis=1)
        under_q = (one.logpdf(z) - one.logpdf(z + delta)).sum(axis=1)
        slopes = np.quantile(under_p, [p_a - 0.02, p_a, p_a + 0.02])
        lower = [
            1 - math.exp(t) * (1 - p_a) - np.maximum(-np.expm1(t - under_q), 0).mean()
            for t in slopes
        ]
        assert max(lower) >= 0.5 - 6 * 0.5 / math.sqrt(n)


def test_an_array_of_probabilities_is_each_of_them() -> None:
    p_a = np.array([[0.3, 0.5, 0.6], [0.9, 0.99, 1.0]])
    many = certified_radius(noise.gaussian(sigma=0.5), 2, 784, p_a=p_a)
    assert many.radius.shape == p_a.shape
    for p, radius in zip(p_a.flat, many.radius.flat, strict=True):
        assert radius == certified_radius(noise.gaussian(sigma=0.5), 2, 784, p_a=float(p)).radius
    two = certified_radius(noise.gaussian(sigma=0.5), 2, 784, p_a=[0.9, 0.8], p_b=[0.05, 0.1])
    single = certified_radius(noise.gaussian(sigma=0.5), 2, 784, p_a=0.8, p_b=0.1)
    assert two.to_dict()["radius"][1] == single.radius
    curve = certified_radius(noise.laplace(sigma=1), "inf", 784, p_a=[0.6, 0.7, 0.8, 0.9, 0.99])
    for p, proved in zip((0.6, 0.7, 0.8, 0.9, 0.99), curve.proved, strict=True):
        alone = certified_radius(noise.laplace(sigma=1), "inf", 784, p_a=p).proved
        assert 0.998 * alone <= proved <= alone
    with pytest.raises(RadiusError, match="probabilities"):
        certified_radius(noise.gaussian(sigma=1), 2, 784, p_a=[0.5, 1.5])
