"""TabulatedDensity against closed forms, and its refusals."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unicr.errors import NoiseError
from unicr.law._quadrature import TabulatedDensity
from unicr.noise import from_density

INF = math.inf
Tables = dict[str, TabulatedDensity]

# name -> (distribution, smallest lower / upper tail at which float64 x resolves the probability)
CLOSED_FORMS = {
    "norm": (stats.norm(), 1e-16, 1e-16),
    "laplace": (stats.laplace(), 1e-16, 1e-16),
    "cauchy": (stats.cauchy(), 1e-16, 1e-16),
    "logistic": (stats.logistic(), 1e-16, 1e-16),
    "student3": (stats.t(3), 1e-16, 1e-16),
    "gennorm0.25": (stats.gennorm(0.25), 1e-16, 1e-16),
    "gennorm1.5": (stats.gennorm(1.5), 1e-16, 1e-16),
    "gennorm3": (stats.gennorm(3.0), 1e-16, 1e-16),
    "gumbel": (stats.gumbel_r(), 1e-16, 1e-16),
    "uniform": (stats.uniform(-1.0, 4.0), 1e-5, 1e-5),
    "triang": (stats.triang(0.3, loc=-1.0, scale=3.0), 1e-3, 1e-3),
    "beta": (stats.beta(0.5, 0.5), 1e-16, 1e-3),
    "expon": (stats.expon(), 1e-16, 1e-16),
    "gamma0.1": (stats.gamma(0.1), 1e-16, 1e-16),
    "lognorm": (stats.lognorm(2.0), 1e-16, 1e-16),
    "pareto0.3": (stats.pareto(0.3), 1e-3, 1e-16),
    "tiny": (stats.norm(scale=1e-6), 1e-16, 1e-16),
    "huge": (stats.norm(scale=1e6), 1e-16, 1e-16),
    "far": (stats.norm(1e4, 1.0), 1e-16, 1e-16),
}


@pytest.fixture(scope="module")
def tables() -> Tables:
    return {name: TabulatedDensity.build(law.logpdf) for name, (law, _, _) in CLOSED_FORMS.items()}


def gaussian_mixture(x: Any) -> Any:
    low = -0.5 * ((x + 1000.0) / 0.1) ** 2 + math.log(0.7)
    high = -0.5 * ((x - 1000.0) / 0.1) ** 2 + math.log(0.3)
    return np.logaddexp(low, high)


def intervals(*pairs: tuple[float, float]) -> Callable[[Any], Any]:
    def logpdf(x: Any) -> Any:
        inside = np.zeros(np.shape(x), dtype=bool)
        for a, b in pairs:
            inside |= (x >= a) & (x <= b)
        return np.where(inside, 0.0, -np.inf)

    return logpdf


# ------------------------------------------------------------------------------ closed forms


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_probabilities_match_the_closed_form_relative_to_each_tail(
    name: str, tables: Tables
) -> None:
    law, low, high = CLOSED_FORMS[name]
    table = tables[name]
    u = np.logspace(math.log10(low), math.log10(0.5), 200)
    v = np.logspace(math.log10(high), math.log10(0.5), 200)
    np.testing.assert_allclose(table.cdf(law.ppf(u)), law.cdf(law.ppf(u)), rtol=2e-12)
    np.testing.assert_allclose(table.sf(law.isf(v)), law.sf(law.isf(v)), rtol=2e-12)
    x = law.ppf(np.linspace(0.01, 0.99, 99))
    np.testing.assert_allclose(table.cdf(x) + table.sf(x), 1.0, rtol=1e-14)
    np.testing.assert_allclose(table.pdf(x), law.pdf(x), rtol=1e-12)
    assert abs(table.log_mass) < 1e-12


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_quantiles_return_through_the_closed_form(name: str, tables: Tables) -> None:
    law, low, high = CLOSED_FORMS[name]
    table = tables[name]
    tolerance = 1e-10 if name in {"far", "triang", "uniform", "pareto0.3", "beta"} else 1e-12
    u = np.logspace(math.log10(low), math.log10(0.5), 200)
    v = np.logspace(math.log10(high), math.log10(0.5), 200)
    np.testing.assert_allclose(law.cdf(table.ppf(u)), u, rtol=tolerance)
    np.testing.assert_allclose(law.sf(table.isf(v)), v, rtol=tolerance)


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_round_trips_hold_deep_in_both_tails(name: str, tables: Tables) -> None:
    _, low, high = CLOSED_FORMS[name]
    table = tables[name]
    u = np.logspace(max(-14.0, math.log10(low)), math.log10(0.5), 300)
    v = np.logspace(max(-16.0, math.log10(high)), math.log10(0.5), 300)
    np.testing.assert_allclose(table.cdf(table.ppf(u)), u, rtol=1e-11)
    np.testing.assert_allclose(table.sf(table.isf(v)), v, rtol=1e-11)


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_moments(name: str, tables: Tables) -> None:
    law, table = CLOSED_FORMS[name][0], tables[name]
    if name in {"cauchy", "pareto0.3"}:
        assert math.isnan(table.mean)
        assert table.second_moment == INF
        return
    scale = law.std()
    assert table.mean == pytest.approx(law.mean(), abs=1e-11 * scale, rel=1e-12)
    assert table.second_moment == pytest.approx(law.var() + law.mean() ** 2, rel=1e-10)


def test_a_mean_may_exist_without_a_second_moment() -> None:
    table = TabulatedDensity.build(stats.t(1.5).logpdf)
    assert table.mean == pytest.approx(0.0, abs=1e-10)
    assert table.second_moment == INF


@pytest.mark.parametrize(
    ("name", "support"),
    [
        ("norm", (-INF, INF)),
        ("uniform", (-1.0, 3.0)),
        ("beta", (0.0, 1.0)),
        ("expon", (0.0, INF)),
        ("gumbel", (-INF, INF)),
        ("cauchy", (-INF, INF)),
        ("pareto0.3", (1.0, INF)),
    ],
)
def test_support_is_detected_and_bounds_the_quantiles(
    name: str, support: tuple[float, float], tables: Tables
) -> None:
    table = tables[name]
    assert table.support == support
    assert (float(table.ppf(0.0)), float(table.ppf(1.0))) == support
    assert (float(table.isf(1.0)), float(table.isf(0.0))) == support
    tiny = np.array([1e-18, 1e-17, 1e-16])
    for far in (table.ppf(tiny), table.isf(tiny)):
        assert np.all(np.isfinite(far))
        assert np.all((far >= support[0]) & (far <= support[1]))
    assert table.cdf(-INF) == 0.0
    assert table.cdf(INF) == 1.0
    assert table.sf(-INF) == 1.0
    assert table.sf(INF) == 0.0


def test_extrapolated_quantiles_stay_monotone() -> None:
    v = np.logspace(-30, -10, 400)
    for law in (stats.norm(), stats.laplace(), stats.cauchy(), stats.gumbel_r()):
        x = TabulatedDensity.build(law.logpdf).isf(v)
        assert np.all(np.isfinite(x))
        assert np.all(np.diff(x) < 0.0)


# ------------------------------------------------------------------------------ hard shapes


def test_separated_modes_keep_their_masses() -> None:
    table = TabulatedDensity.build(gaussian_mixture)
    assert table.cdf(0.0) == pytest.approx(0.7, abs=1e-12)
    assert table.sf(0.0) == pytest.approx(0.3, abs=1e-12)
    assert table.log_mass == pytest.approx(math.log(0.1 * math.sqrt(2 * math.pi)), abs=1e-12)
    assert table.mean == pytest.approx(-400.0, rel=1e-12)
    assert {-1000.0, 1000.0} <= set(table.breakpoints)
    assert table.ppf(0.35) == pytest.approx(-1000.0, abs=1e-9)


def test_separated_modes_that_underflow_between() -> None:
    def logpdf(x: Any) -> Any:
        return np.log(np.exp(-0.5 * (x - 300.0) ** 2) + 3.0 * np.exp(-0.5 * (x + 300.0) ** 2))

    table = TabulatedDensity.build(logpdf)
    assert table.cdf(0.0) == pytest.approx(0.75, abs=1e-12)
    assert table.support == (-INF, INF)


def test_three_separated_intervals() -> None:
    table = TabulatedDensity.build(intervals((-5.0, -4.0), (0.0, 1.0), (7.0, 7.01)))
    x = np.array([-6.0, -4.5, -2.0, 0.25, 3.0, 7.005, 8.0])
    expected = np.array([0.0, 0.5, 1.0, 1.25, 2.0, 2.005, 2.01]) / 2.01
    np.testing.assert_allclose(table.cdf(x), expected, atol=1e-13)
    assert table.breakpoints == (-5.0, -4.0, 0.0, 1.0, 7.0, 7.01)
    inside = table.ppf(np.linspace(0.0, 1.0, 1001))
    assert np.all(np.isfinite(table.logpdf(inside)))


def test_jump_and_kink_are_located() -> None:
    def logpdf(x: Any) -> Any:
        return np.where(x < 0.3, 0.0, 1.0) - np.abs(x) - 2.0 * np.maximum(x - math.pi, 0.0)

    table = TabulatedDensity.build(logpdf)
    jump = (math.exp(-0.3) - math.exp(-math.pi)) * math.e
    expected = [1.0, 2.0 - math.exp(-0.3), jump, math.exp(1.0 - math.pi) / 3.0]
    total = expected[1] + jump + expected[3]
    assert math.exp(table.log_mass) == pytest.approx(total, rel=1e-12)
    assert table.cdf(0.3) == pytest.approx(expected[1] / total, rel=1e-12)
    assert table.sf(math.pi) == pytest.approx(expected[3] / total, rel=1e-12)
    for place in (0.3, math.pi):
        assert min(abs(place - b) for b in table.breakpoints) < 1e-9


@pytest.mark.parametrize("place", [0.0, 0.3, -7.0])
def test_integrable_singularity(place: float) -> None:
    table = TabulatedDensity.build(lambda x: -0.5 * np.log(np.abs(x - place)) - np.abs(x - place))
    assert math.exp(table.log_mass) == pytest.approx(2.0 * math.sqrt(math.pi), rel=1e-11)
    assert table.cdf(place) == pytest.approx(0.5, abs=1e-11)
    gamma = stats.gamma(0.5)
    s = np.array([1e-3, 0.1, 1.0, 5.0])
    np.testing.assert_allclose(table.sf(place + s), gamma.sf(place + s - place) / 2, rtol=1e-10)


def test_singularity_hidden_by_underflow() -> None:
    table = TabulatedDensity.build(lambda x: -0.25 * np.log(x * x) - np.abs(x))
    assert math.exp(table.log_mass) == pytest.approx(2.0 * math.sqrt(math.pi), rel=1e-12)


def test_heavy_two_sided_pareto() -> None:
    table = TabulatedDensity.build(lambda x: -1.3 * np.log1p(np.abs(x)))
    v = np.logspace(-16, -1, 50)
    np.testing.assert_allclose(table.isf(v), (2.0 * v) ** (-1.0 / 0.3) - 1.0, rtol=1e-11)


def test_overflowing_and_offset_formulas() -> None:
    naive = TabulatedDensity.build(lambda x: np.log(np.exp(-x) / (1.0 + np.exp(-x)) ** 2))
    assert naive.support == (-INF, INF)
    assert naive.cdf(-20.0) == pytest.approx(stats.logistic.cdf(-20.0), rel=1e-12)
    offset = TabulatedDensity.build(lambda x: 5e3 - x * x / 2.0)
    assert offset.log_mass == pytest.approx(5e3 + 0.5 * math.log(2 * math.pi), abs=1e-9)


def test_declared_support_truncates() -> None:
    table = TabulatedDensity.build(lambda x: -x * x / 2.0, support=(1.0, 2.0))
    law = stats.truncnorm(1.0, 2.0)
    x = np.linspace(0.5, 2.5, 41)
    np.testing.assert_allclose(table.cdf(x), law.cdf(x), atol=1e-13)
    assert table.support == (1.0, 2.0)
    assert table.pdf(2.5) == 0.0


def test_points_show_where_a_narrow_far_density_is() -> None:
    logpdf = intervals((12345.6, 12345.7))
    with pytest.raises(NoiseError, match="points"):
        TabulatedDensity.build(logpdf)
    table = TabulatedDensity.build(logpdf, points=(12345.65,))
    assert math.exp(table.log_mass) == pytest.approx(0.1, rel=1e-9)


# ------------------------------------------------------------------------------ ways of calling


def test_scalar_only_functions() -> None:
    def logpdf(x: Any) -> Any:
        return -x if x > 0 else 2.0 * x

    table = TabulatedDensity.build(logpdf)
    assert table.cdf(0.0) == pytest.approx(1.0 / 3.0, rel=1e-12)
    scalar_math = TabulatedDensity.build(lambda x: -math.log(math.cosh(x)))
    assert math.exp(scalar_math.log_mass) == pytest.approx(math.pi, rel=1e-12)
    half = TabulatedDensity.build(lambda x: math.log(x) - x, support=(0.0, INF))
    assert half.mean == pytest.approx(2.0, rel=1e-12)


def test_torch_functions() -> None:
    torch = pytest.importorskip("torch")
    returns = TabulatedDensity.build(lambda x: -(torch.as_tensor(x) ** 2) / 2)
    law = torch.distributions.Laplace(torch.tensor(0.0, dtype=torch.float64), 1.0)
    takes = TabulatedDensity.build(law.log_prob)
    assert returns.second_moment == pytest.approx(1.0, rel=1e-12)
    assert takes.second_moment == pytest.approx(2.0, rel=1e-12)


def test_scalars_arrays_and_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = TabulatedDensity.build(lambda x: np.log(np.exp(-x * x / 2)))
        assert np.ndim(table.cdf(0.3)) == 0
        assert isinstance(float(table.ppf(0.3)), float)
        grid = np.array([[0.0, 0.1, 0.5], [0.9, 1.0, 0.3]])
        assert table.ppf(grid).shape == (2, 3)
        assert table.cdf([-INF, INF, 1e300, -1e300, 0.0]).shape == (5,)
        assert table.cdf(np.array([])).shape == (0,)
    assert np.isnan(table.ppf([-0.1, 1.1, math.nan])).all()
    assert math.isnan(table.cdf(math.nan))
    assert math.isnan(table.pdf(math.nan))


# ------------------------------------------------------------------------------ shape questions

SHAPES = {
    "norm": (stats.norm().logpdf, True, True),
    "laplace": (stats.laplace().logpdf, True, True),
    "logistic": (stats.logistic().logpdf, True, True),
    "uniform": (stats.uniform(-1.0, 2.0).logpdf, True, True),
    "gennorm1.5": (stats.gennorm(1.5).logpdf, True, True),
    "gumbel": (stats.gumbel_r().logpdf, False, True),
    "far": (stats.norm(1e4).logpdf, False, True),
    "expon": (stats.expon().logpdf, False, True),
    "cauchy": (stats.cauchy().logpdf, True, False),
    "student": (stats.t(5).logpdf, True, False),
    "gennorm0.75": (stats.gennorm(0.75).logpdf, True, False),
    "gennorm0.99": (stats.gennorm(0.99).logpdf, True, False),
    "singular": (lambda x: -0.5 * np.log(np.abs(x)) - np.abs(x), True, False),
    "bimodal": (lambda x: np.logaddexp(-((x - 2) ** 2), -((x + 2) ** 2)), True, False),
    "unequal modes": (gaussian_mixture, False, False),
    "two intervals": (intervals((-2.0, -1.0), (1.0, 2.0)), True, False),
    "almost symmetric": (lambda x: -x * x / 2 - 1e-5 * x, False, True),
}


@pytest.mark.parametrize("name", SHAPES)
def test_symmetry_and_log_concavity(name: str) -> None:
    """A density that is not of a shape, by more than its table is off, gets a table that is not."""
    logpdf, symmetric, log_concave = SHAPES[name]
    facts = from_density(logpdf).facts
    assert facts.symmetric is symmetric
    assert facts.log_concave is log_concave


# ------------------------------------------------------------------------------ refusals


def raising(x: Any) -> Any:
    raise RuntimeError("out of order")


REFUSALS: dict[str, tuple[Any, str]] = {
    "cauchy without square": (lambda x: -np.log1p(np.abs(x)), "infinite mass .*LOG"),
    "overflowing tail": (lambda x: -0.5 * np.log1p(x * x), "infinite mass .*LOG"),
    "constant": (lambda x: 0.0 * x, "infinite mass .*LOG"),
    "constant scalar": (lambda x: 0.0, "infinite mass .*LOG"),
    "pdf instead of logpdf": (lambda x: np.exp(-x * x / 2), "LOG of the density"),
    "pole": (lambda x: -np.log(np.abs(x)) - x * x, "infinite mass at x = 0"),
    "shifted pole": (lambda x: -np.log(np.abs(x - 0.3)) - x * x, "infinite mass at x = 0.3|0.29"),
    "strong pole": (lambda x: -1.5 * np.log(np.abs(x)) - x * x, "infinite mass at x = 0"),
    "nothing": (lambda x: np.full(np.shape(x), -np.inf), "zero .*every point that was tried"),
    "nan half line": (lambda x: np.where(x > 2, np.nan, -x * x), "NaN at x = 2"),
    "nan at a point": (lambda x: np.where(x == 0, np.nan, -x * x), "NaN at x = 0"),
    "nan everywhere": (lambda x: np.nan * x, "NaN at x"),
    "infinite interval": (lambda x: np.where((x > 2) & (x < 3), INF, -x * x), "inf on an interval"),
    "two outputs": (lambda x: np.stack([x, x]), "one real number to one real number"),
    "text": (lambda x: "low", "one real number to one real number"),
    "complex": (lambda x: -x * x + 1j, "complex"),
    "float32": (lambda x: np.float32(-x * x), "float64"),
    "raises": (raising, "RuntimeError at x = .*out of order"),
    "undefined below zero": (lambda x: math.log(x) - x, "ValueError at x = .*support"),
    "rapid oscillation": (lambda x: -x * x + np.sin(1e7 * x), "local maxima"),
    "not callable": (3.0, "callable"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    logpdf, message = REFUSALS[name]
    with pytest.raises(NoiseError, match=message):
        TabulatedDensity.build(logpdf)


def test_the_cause_of_a_raising_function_is_chained() -> None:
    with pytest.raises(NoiseError) as caught:
        TabulatedDensity.build(raising)
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    ("support", "words"),
    [
        ((1.0, 0.0), "first number must be below"),
        ((0.0, 0.0), "first number must be below"),
        ((0.0, math.nan), "first number must be below"),
        ((0.0,), "must be a pair"),
        (None, "must be a pair"),
    ],
)
def test_bad_support(support: Any, words: str) -> None:
    with pytest.raises(NoiseError, match=f"support.*{words}"):
        TabulatedDensity.build(lambda x: -x * x, support=support)


def test_bad_points() -> None:
    with pytest.raises(NoiseError, match="points must be finite"):
        TabulatedDensity.build(lambda x: -x * x, points=(INF,))


# ------------------------------------------------------------------------------ properties

MONOTONE = [
    TabulatedDensity.build(logpdf)
    for logpdf in (stats.norm().logpdf, gaussian_mixture, stats.cauchy().logpdf)
]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(MONOTONE), st.floats(1e-18, 0.999), st.floats(1e-18, 0.999))
def test_quantiles_are_monotone(table: TabulatedDensity, u: float, v: float) -> None:
    low, high = min(u, v), max(u, v)
    x, y = table.ppf(low), table.ppf(high)
    assert x <= y + 4.0 * np.spacing(abs(y))
    x, y = table.isf(high), table.isf(low)
    assert x <= y + 4.0 * np.spacing(abs(y))


@settings(max_examples=12, deadline=None)
@given(
    st.floats(-1e3, 1e3),
    st.floats(1e-3, 1e3),
    st.floats(0.3, 6.0),
    st.floats(0.2, 5.0),
)
def test_two_piece_power_exponentials(
    centre: float, scale: float, power: float, ratio: float
) -> None:
    def logpdf(x: Any) -> Any:
        z = (x - centre) / scale
        return -(np.abs(np.where(z > 0.0, z, z * ratio)) ** power)

    table = TabulatedDensity.build(logpdf)
    mass = scale * math.gamma(1.0 + 1.0 / power) * (1.0 + 1.0 / ratio)
    assert math.exp(table.log_mass) == pytest.approx(mass, rel=1e-9)
    assert table.cdf(centre) == pytest.approx(1.0 / (1.0 + ratio), rel=1e-9)


def test_a_slow_function_is_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unicr.law._quadrature._table.PATIENCE", 0.05)

    def slow(x: Any) -> Any:
        time.sleep(0.02)
        return -x * x

    with pytest.raises(NoiseError, match="too slow"):
        TabulatedDensity.build(slow)
