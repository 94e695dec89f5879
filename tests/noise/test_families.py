"""The i.i.d. families, against scipy.stats, closed forms and plain numerical integration."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from unicr import noise
from unicr.errors import NoiseError, UnicrError
from unicr.noise import IID, IIDFamily

SIGMA = 0.7
FAMILIES: dict[str, IID] = {
    "gaussian": noise.gaussian(sigma=SIGMA),
    "laplace": noise.laplace(sigma=SIGMA),
    "sech": noise.sech(sigma=SIGMA),
    "gennorm 0.25": noise.gennorm(beta=0.25, sigma=SIGMA),
    "gennorm 0.75": noise.gennorm(beta=0.75, sigma=SIGMA),
    "gennorm 1.5": noise.gennorm(beta=1.5, sigma=SIGMA),
    "gennorm 3": noise.gennorm(beta=3, sigma=SIGMA),
    "gennorm 20": noise.gennorm(beta=20, sigma=SIGMA),
    "cauchy": noise.cauchy(scale=0.3),
    "pareto 0.5": noise.pareto(beta=0.5, scale=0.3),
    "pareto 2.5": noise.pareto(beta=2.5, scale=0.3),
    "pareto 4": noise.pareto(beta=4, sigma=SIGMA),
    "lapgauss 0": noise.lapgauss(beta=0, sigma=SIGMA),
    "lapgauss 0.5": noise.lapgauss(beta=0.5, sigma=SIGMA),
    "lapgauss 0.01": noise.lapgauss(beta=0.01, sigma=SIGMA),
    "lapgauss 1": noise.lapgauss(beta=1, sigma=SIGMA),
    "expmix 0": noise.expmix(beta=0, sigma=SIGMA),
    "expmix 0.5": noise.expmix(beta=0.5, sigma=SIGMA),
    "expmix 0.79": noise.expmix(beta=0.79, sigma=SIGMA),
    "expmix 0.81": noise.expmix(beta=0.81, sigma=SIGMA),
    "expmix 0.999": noise.expmix(beta=0.999, sigma=SIGMA),
    "expmix 1": noise.expmix(beta=1, sigma=SIGMA),
    "uniform": noise.uniform(sigma=SIGMA),
}
LISTED = {name.split()[0] for name in FAMILIES}
FAMILIES |= {  # a family that is added is tested by its example
    name: cast(IID, noise.parse(kind.example))
    for name, kind in noise.FAMILIES.items()
    if isinstance(kind, IIDFamily) and kind.view is None and name not in LISTED
}
WITH_VARIANCE = [name for name, law in FAMILIES.items() if math.isfinite(law.sigma)]

# p at z ≥ 0 up to a factor, of the family's own parameters
PAPER: dict[str, Callable[..., float]] = {
    "gaussian": lambda z: math.exp(-(z**2)),
    "laplace": lambda z: math.exp(-z),
    "sech": lambda z: 2 * math.exp(-z) / (1 + math.exp(-2 * z)),
    "gennorm": lambda z, beta: math.exp(-(z**beta)) if z < 1e9 else 0.0,
    "cauchy": lambda z: 1 / (1 + z * z),
    "pareto": lambda z, beta: (1 + z) ** (-beta - 1),
    "lapgauss": lambda z, beta: beta * math.exp(-z) + (1 - beta) * math.exp(-z * z),
    "expmix": lambda z, beta: math.exp(-beta * z - (1 - beta) * z * z),
    "uniform": lambda z: float(z <= 1),
}
SCIPY: dict[str, Any] = {
    "gaussian": stats.norm(0, SIGMA),
    "laplace": stats.laplace(0, SIGMA / math.sqrt(2)),
    "sech": stats.hypsecant(0, SIGMA / (math.pi / 2)),
    "gennorm 0.75": stats.gennorm(0.75, 0, SIGMA / stats.gennorm(0.75).std()),
    "gennorm 1.5": stats.gennorm(1.5, 0, SIGMA / stats.gennorm(1.5).std()),
    "gennorm 3": stats.gennorm(3, 0, SIGMA / stats.gennorm(3).std()),
    "cauchy": stats.cauchy(0, 0.3),
    "uniform": stats.uniform(-SIGMA * math.sqrt(3), 2 * SIGMA * math.sqrt(3)),
    "expmix 0": stats.norm(0, SIGMA),
    "lapgauss 0": stats.norm(0, SIGMA),
    "expmix 1": stats.laplace(0, SIGMA / math.sqrt(2)),
    "lapgauss 1": stats.laplace(0, SIGMA / math.sqrt(2)),
}


def read_formula(text: str) -> Callable[..., float]:
    """What a family prints as its density, at a = 1: of z ≥ 0 and its numbers by first letters."""
    if text == "1 on [-a, a]":
        return lambda z: float(z <= 1)
    code = re.sub(r"\|([^|]*)\|", r"(abs(\1))", text).replace("^", "**")
    code = re.sub(r"((?<![a-z])[a-z]|[\d)])(?=\()", r"\1*", code)
    code = re.sub(r"(?<=\d)(?=[a-z])", "*", code)

    def value(z: float, **numbers: float) -> float:
        known = {"x": z, "a": 1.0, "exp": math.exp, "sech": lambda y: 1 / math.cosh(y)}
        try:
            return float(eval(code, known | {name[0]: number for name, number in numbers.items()}))
        except OverflowError:
            return 0.0  # of a density that falls

    return value


@pytest.mark.parametrize("name", FAMILIES)
def test_the_printed_formula_is_the_density(name: str) -> None:
    law = FAMILIES[name].unit
    formula = read_formula(noise.FAMILIES[law.family or ""].formula)
    at_zero = formula(0.0, **law.numbers)
    for z in (1e-3, 0.3, 0.99, 2.0, 7.0):
        expected = formula(z, **law.numbers) / at_zero
        assert float(law.pdf(z) / law.pdf(0.0)) == pytest.approx(expected, rel=1e-11, abs=1e-300)


def integral(f: Callable[[float], float], low: float, high: float) -> float:
    """∫f over 0 ≤ low < high ≤ ∞, in pieces that grow geometrically up to 1e60."""
    grid = np.concatenate([np.geomspace(1e-6, 1e6, 25), np.geomspace(1e7, 1e60, 54)])
    edges = [low, *(float(e) for e in grid if low < e < high)]
    if math.isfinite(high):
        edges.append(high)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", integrate.IntegrationWarning)
        parts = [
            integrate.quad(f, a, b, epsabs=0, epsrel=1e-12, limit=200)[0]
            for a, b in itertools.pairwise(edges)
        ]
    return math.fsum(parts)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_density_is_the_papers_formula_normalised(name: str) -> None:
    one = FAMILIES[name]
    family = one.family or ""
    formula = PAPER.get(family) or read_formula(noise.FAMILIES[family].formula)
    high = min(one.support[1] / one.scale, math.inf)
    mass = 2 * integral(lambda z: formula(z, **one.numbers), 0, high)
    for z in (0.0, 1e-3, 0.3, 0.99, 2.0, 7.0):
        expected = formula(z, **one.numbers) / mass / one.scale
        for x in (z * one.scale, -z * one.scale):
            assert float(one.pdf(x)) == pytest.approx(expected, rel=2e-9, abs=1e-300)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_density_has_mass_one_and_the_cdf_is_its_integral(name: str) -> None:
    one = FAMILIES[name]
    top = one.support[1]

    def pdf(x: float) -> float:
        return float(one.pdf(x))

    assert 2 * integral(pdf, 0, top) == pytest.approx(1, abs=2e-9)
    for x in (0.05, 0.4, 1.1):
        inside = integral(pdf, 0, min(x, top))
        assert float(one.cdf(x)) == pytest.approx(0.5 + inside, abs=1e-9)
        assert float(one.cdf(-x)) == pytest.approx(0.5 - inside, abs=1e-9)


@pytest.mark.parametrize("name", WITH_VARIANCE)
def test_sigma_is_the_root_of_the_second_moment(name: str) -> None:
    one = FAMILIES[name]
    second = 2 * integral(lambda x: x * x * float(one.pdf(x)), 0, one.support[1])
    assert math.sqrt(second) == pytest.approx(one.sigma, rel=2e-9)
    assert one.facts.finite_variance
    assert one.mean == 0


@pytest.mark.parametrize("name", SCIPY)
def test_against_scipy(name: str) -> None:
    one, law = FAMILIES[name], SCIPY[name]
    x = np.linspace(-4, 4, 101) * SIGMA
    np.testing.assert_allclose(one.pdf(x), law.pdf(x), rtol=1e-10)
    np.testing.assert_allclose(one.cdf(x), law.cdf(x), rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(one.sf(x), law.sf(x), rtol=1e-10, atol=1e-300)
    u = np.array([1e-12, 1e-6, 0.01, 0.3, 0.7, 0.99])
    np.testing.assert_allclose(one.ppf(u), law.ppf(u), rtol=1e-9)
    np.testing.assert_allclose(one.isf(u), law.isf(u), rtol=1e-9)
    if name != "cauchy":
        assert one.sigma == pytest.approx(law.std(), rel=1e-10)


@pytest.mark.parametrize("name", FAMILIES)
def test_quantiles_invert_deep_in_both_tails(name: str) -> None:
    one = FAMILIES[name]
    u = np.concatenate([np.logspace(-15, -0.4, 60), [0.45, 0.5]])
    u = u[u >= (1e-6 if one.facts.bounded else 1e-15)]
    np.testing.assert_allclose(one.cdf(one.ppf(u)), u, rtol=1e-9)
    np.testing.assert_allclose(one.sf(one.isf(u)), u, rtol=1e-9)
    np.testing.assert_allclose(one.isf(u), -one.ppf(u), rtol=1e-14)
    assert np.all(np.diff(one.ppf(u)) > 0)
    assert np.isnan(one.ppf([-0.1, 1.1])).all()
    assert tuple(one.ppf([0.0, 1.0])) == pytest.approx(one.support)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_far_tail_is_the_integral_of_the_density(name: str) -> None:
    one = FAMILIES[name]
    if one.facts.bounded:
        return
    for v in (1e-3, 1e-8, 1e-12):
        x = float(one.isf(v))
        tail, _ = integrate.quad(
            lambda t, x=x: float(one.pdf(x * t)) * x, 1, math.inf, epsabs=0, epsrel=1e-11, limit=500
        )
        assert tail == pytest.approx(v, rel=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_infinity_is_an_ordinary_argument(name: str) -> None:
    one = FAMILIES[name]
    ends = [-math.inf, math.inf]
    assert list(one.logpdf(ends)) == [-math.inf, -math.inf]
    assert list(one.cdf(ends)) == [0, 1]
    assert list(one.sf(ends)) == [1, 0]
    assert bool(torch.isneginf(one.log_prob_coordinates(torch.tensor(ends))).all())


@pytest.mark.parametrize("name", FAMILIES)
def test_facts_agree_with_the_density(name: str) -> None:
    one = FAMILIES[name]
    x = np.linspace(0.003, 30, 40_001) * one.scale
    x = x[x < one.support[1]]
    log = one.logpdf(x)
    np.testing.assert_array_equal(log, one.logpdf(-x))
    assert one.facts.symmetric
    bend = np.diff(log, 2)
    concave = bool(np.all(bend <= 1e-12 * (1 + np.abs(log[1:-1]))))
    assert one.facts.log_concave == concave
    assert np.all(np.diff(log) <= 0)
    assert one.facts.unimodal
    assert one.facts.bounded == math.isfinite(one.support[1])
    assert one.facts.finite_variance == math.isfinite(one.sigma)
    assert one.facts.source == "analytic"


def test_families_meet_at_their_ends() -> None:
    x = np.linspace(-5, 5, 201)
    pairs = [
        (noise.gennorm(beta=1, sigma=1), noise.laplace(sigma=1)),
        (noise.gennorm(beta=2, sigma=1), noise.gaussian(sigma=1)),
        (noise.gennorm(beta=2, scale=1.3), noise.gaussian(scale=1.3)),
        (noise.expmix(beta=0, scale=1.3), noise.gaussian(scale=1.3)),
        (noise.expmix(beta=1, scale=1.3), noise.laplace(scale=1.3)),
        (noise.lapgauss(beta=0, scale=1.3), noise.gaussian(scale=1.3)),
        (noise.lapgauss(beta=1, scale=1.3), noise.laplace(scale=1.3)),
    ]
    for one, other in pairs:
        np.testing.assert_allclose(one.pdf(x), other.pdf(x), rtol=1e-12)
        np.testing.assert_allclose(one.cdf(x), other.cdf(x), rtol=1e-12)
        assert one.sigma == pytest.approx(other.sigma, rel=1e-13)
        assert one.scale == pytest.approx(other.scale, rel=1e-13)


def test_expmix_is_continuous_towards_laplace() -> None:
    laplace = noise.laplace(scale=1)
    for gap in (1e-3, 1e-6, 1e-9, 1e-12, 1e-15):
        near = noise.expmix(beta=1 - gap, scale=1)
        assert near.sigma == pytest.approx(laplace.sigma, rel=20 * gap + 1e-13)
        assert float(near.sf(3.0)) == pytest.approx(float(laplace.sf(3.0)), rel=20 * gap + 1e-13)


def test_scale_is_the_papers_alpha() -> None:
    for one in FAMILIES.values():
        unit, double = one.unit, one * 2.0
        assert unit.scale == 1
        assert double.scale == pytest.approx(2 * one.scale, rel=1e-15)
        assert double.sigma == pytest.approx(2 * one.sigma, rel=1e-14)
        x = np.linspace(-3, 3, 7)
        np.testing.assert_allclose(double.pdf(2 * x), one.pdf(x) / 2, rtol=1e-12)
        np.testing.assert_allclose(one.cdf(x * one.scale), unit.cdf(x), rtol=1e-9)
        assert one * 2.0 == 2.0 * one == one.scaled(2)
    assert noise.gaussian(scale=1).sigma == pytest.approx(math.sqrt(0.5))
    assert noise.uniform(scale=2).support == (-2, 2)


def test_with_sigma() -> None:
    assert noise.laplace(scale=0.2).with_sigma(3).sigma == pytest.approx(3)
    with pytest.raises(NoiseError, match=r"no finite variance.*scale=.*truncated"):
        noise.cauchy(scale=1).with_sigma(1)
    with pytest.raises(NoiseError, match="sigma=0"):
        noise.laplace(scale=0.2).with_sigma(0)


@pytest.mark.parametrize("name", FAMILIES)
def test_log_prob_adds_over_all_coordinates_in_float64(name: str) -> None:
    one = FAMILIES[name]
    z = torch.from_numpy(np.random.default_rng(3).normal(0, 0.4, (5, 3, 4, 2)).astype(np.float32))
    got = one.log_prob(z)
    expected = one.logpdf(z.numpy().astype(np.float64)).sum(axis=(1, 2, 3))
    assert got.dtype == torch.float64
    assert got.shape == (5,)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-13)
    assert one.log_prob_coordinates(z).shape == z.shape


MAKERS: list[Callable[..., Any]] = [
    noise.gaussian,
    noise.laplace,
    noise.sech,
    noise.uniform,
    lambda **kw: noise.gennorm(beta=1.5, **kw),
    lambda **kw: noise.pareto(beta=3, **kw),
    lambda **kw: noise.lapgauss(beta=0.5, **kw),
    lambda **kw: noise.expmix(beta=0.5, **kw),
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("key", ["sigma", "scale"])
@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "x", None, 10**400])
def test_a_bad_size_is_named(make: Callable[..., Any], key: str, bad: object) -> None:
    with pytest.raises(NoiseError, match=r"neither was given" if bad is None else key):
        make(**{key: bad})


def test_sigma_and_scale_exclude_each_other() -> None:
    with pytest.raises(NoiseError, match=r"gaussian needs exactly one .* both was given"):
        noise.gaussian(sigma=1, scale=1)
    with pytest.raises(NoiseError, match=r"cauchy needs exactly one .* neither was given"):
        noise.cauchy()


@pytest.mark.parametrize(
    "make",
    [
        lambda: noise.cauchy(sigma=1),
        lambda: noise.pareto(beta=2, sigma=1),
        lambda: noise.pareto(beta=0.5, sigma=1),
    ],
)
def test_no_variance_means_no_sigma(make: Callable[[], Any]) -> None:
    with pytest.raises(NoiseError, match=r"no finite variance.*scale=.*\.truncated\("):
        make()
    with pytest.raises(NoiseError) as caught:
        make()
    cure = noise.parse(str(caught.value).rsplit("truncate it: ", 1)[1])
    assert math.isfinite(cure.sigma)


@pytest.mark.parametrize(
    ("make", "bad"),
    [
        (noise.gennorm, 0),
        (noise.gennorm, -1),
        (noise.gennorm, math.nan),
        (noise.gennorm, math.inf),
        (noise.gennorm, 1e-3),
        (noise.pareto, 0),
        (noise.pareto, math.nan),
        (noise.lapgauss, -0.1),
        (noise.lapgauss, 1.1),
        (noise.lapgauss, math.nan),
        (noise.expmix, 2),
        (noise.expmix, "half"),
    ],
)
def test_beta_out_of_range_is_named(make: Callable[..., Any], bad: object) -> None:
    with pytest.raises(NoiseError, match=r"beta="):
        make(beta=bad, scale=1)


def test_errors_are_value_errors_with_one_root() -> None:
    with pytest.raises(ValueError, match="sigma"):
        noise.gaussian(sigma=-1)
    with pytest.raises(UnicrError):
        noise.gaussian(sigma=-1)


@pytest.mark.parametrize("factor", [0, -2, math.nan, math.inf, "x"])
def test_a_bad_factor_is_named(factor: Any) -> None:
    with pytest.raises(NoiseError, match="factor="):
        noise.gaussian(sigma=1) * factor


@pytest.mark.parametrize("name", FAMILIES)
def test_a_noise_is_a_value(name: str) -> None:
    one = FAMILIES[name]
    with pytest.raises(AttributeError, match="cannot be set"):
        one.scale = 3.0
    with pytest.raises(AttributeError, match="cannot be set"):
        setattr(one, "anything", 3.0)  # noqa: B010
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del one.scale
    copy = pickle.loads(pickle.dumps(one))
    assert copy == one
    assert hash(copy) == hash(one)
    assert copy.text == one.text
    assert one != one * 2.0
    assert one != "text"


def test_equality_is_that_of_the_law() -> None:
    assert noise.uniform(sigma=1) == noise.uniform(scale=noise.uniform(sigma=1).scale)
    assert noise.gennorm(beta=2, sigma=1) != noise.gennorm(beta=2.5, sigma=1)
    assert noise.gaussian(sigma=1) != noise.laplace(sigma=1)
    assert len({noise.gaussian(sigma=1), noise.gaussian(sigma=1.0)}) == 1


def any_family() -> st.SearchStrategy[IID]:
    size = st.floats(1e-3, 1e3)
    key = st.sampled_from(["sigma", "scale"])
    plain = st.builds(
        lambda make, k, s: make(**{k: s}),
        st.sampled_from([noise.gaussian, noise.laplace, noise.sech, noise.uniform]),
        key,
        size,
    )
    ranges: list[tuple[Callable[..., IID], float, float]] = [
        (noise.gennorm, 0.1, 50),
        (noise.pareto, 2.01, 50),
        (noise.lapgauss, 0, 1),
        (noise.expmix, 0, 1),
    ]
    shaped = st.one_of(
        *(
            st.builds(
                lambda b, k, s, make=make: make(beta=b, **{k: s}), st.floats(low, high), key, size
            )
            for make, low, high in ranges
        )
    )
    heavy = st.builds(lambda b, s: noise.pareto(beta=b, scale=s), st.floats(0.5, 2), size)
    return st.one_of(plain, shaped, heavy, st.builds(lambda s: noise.cauchy(scale=s), size))


@given(one=any_family(), factor=st.floats(1e-3, 1e3))
def test_the_text_reads_back_as_the_same_noise(one: IID, factor: float) -> None:
    for value in (one, one * factor, (one * factor) * factor, one.unit):
        assert noise.parse(repr(value)) == value
        assert noise.parse(json.loads(json.dumps(value.text))) == value


@given(one=any_family(), v=st.floats(1e-12, 0.5))
def test_quantiles_invert_for_all_parameters(one: IID, v: float) -> None:
    assert float(one.sf(one.isf(v))) == pytest.approx(v, rel=1e-9, abs=1e-15)
    assert float(one.cdf(one.ppf(v))) == pytest.approx(v, rel=1e-9, abs=1e-15)
