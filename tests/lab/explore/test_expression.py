"""Typed densities: what is allowed means what Python means by it, and nothing else is run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats

from unicr.errors import SpecError
from unicr.lab.explore import parse_expression
from unicr.lab.explore._expression import DEEPEST, FUNCTIONS, LONGEST
from unicr.noise import from_density

Array = NDArray[np.float64]
X: Array = np.array([-7.3, -2.0, -1.0, -0.4, 0.0, 0.3, 1.0, 1.7, 2.0, 8.1])
NUMPY: dict[str, Any] = {
    "exp": np.exp,
    "log": np.log,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "erf": special.erf,
    "erfc": special.erfc,
    "log1p": np.log1p,
    "logaddexp": np.logaddexp,
    "min": np.minimum,
    "max": np.maximum,
    "where": np.where,
    "pi": np.float64(math.pi),
    "e": np.float64(math.e),
    "F": np.float64,
}

numbers = st.floats(0.01, 50).map(lambda v: f"{v:.3g}")
leaves = st.one_of(
    st.sampled_from(["x", "x", "pi", "e"]).map(lambda name: (name, name)),
    numbers.map(lambda text: (text, f"F({text})")),
)


def grow(inner: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
    """Pairs of one expression as a user types it and as numpy alone must read it."""

    def operation(parts: tuple[tuple[str, str], str, tuple[str, str]]) -> tuple[str, str]:
        (a, b), op, (c, d) = parts
        return f"({a} {op} {c})", f"({b} {op} {d})"

    def called(name: str, parts: list[tuple[str, str]]) -> tuple[str, str]:
        typed, plain = (", ".join(part[i] for part in parts) for i in (0, 1))
        return f"{name}({typed})", f"{name}({plain})"

    def call(name: str, count: int) -> st.SearchStrategy[tuple[str, str]]:
        parts = st.lists(inner, min_size=count, max_size=count)
        return parts.map(lambda found: called(name, found))

    calls = [call(name, count) for name, (count, _) in FUNCTIONS.items() if name != "where"]
    choice = st.tuples(inner, inner, inner).map(
        lambda p: (
            f"where({p[0][0]} > 0.5, {p[1][0]}, {p[2][0]})",
            f"where({p[0][1]} > 0.5, {p[1][1]}, {p[2][1]})",
        )
    )
    operators = st.sampled_from(["+", "-", "*", "/", "**"])
    return st.one_of(
        st.tuples(inner, operators, inner).map(operation),
        inner.map(lambda p: (f"-{p[0]}", f"-{p[1]}")),
        choice,
        *calls,
    )


def by_python(text: str) -> Array:
    with np.errstate(all="ignore"):
        value = eval(text, {"__builtins__": {}}, {**NUMPY, "x": X})
    return np.broadcast_to(np.asarray(value, dtype=np.float64), X.shape)


def test_every_function_is_compared() -> None:
    assert set(FUNCTIONS) <= set(NUMPY)


@given(st.recursive(leaves, grow, max_leaves=6))
def test_an_expression_is_what_python_and_numpy_make_of_it(pair: tuple[str, str]) -> None:
    typed, plain = pair
    assume(len(typed) <= LONGEST)
    np.testing.assert_array_equal(parse_expression(typed).value(X), by_python(plain))


@given(st.recursive(leaves, grow, max_leaves=6))
def test_the_logarithm_is_that_of_the_value(pair: tuple[str, str]) -> None:
    """Where the value is an ordinary number and no large terms cancel in it."""
    typed, plain = pair
    assume(len(typed) <= LONGEST and "tan(" not in typed)
    value = by_python(plain)
    if (value < -1e-6).any():
        with pytest.raises(SpecError, match="is negative"):
            parse_expression(typed).log(X)
    else:
        ordinary = np.isfinite(value) & (value > 1e-6) & (value < 1e6)
        log = parse_expression(typed).log(X[ordinary])
        np.testing.assert_allclose(log, np.log(value[ordinary]), rtol=1e-6, atol=1e-6)


def test_tails_do_not_underflow() -> None:
    far = np.array([-1e3, 40.0, 1e4])
    for text, expected in {
        "exp(-x**2)": -(far**2),
        "exp(-x**2) * (1 + 0.3*cos(x))": -(far**2) + np.log(1 + 0.3 * np.cos(far)),
        "1 / cosh(x)": math.log(2) - np.abs(far),
        "exp(-abs(x)) + exp(-x**2)": -np.abs(far),
        "sqrt(exp(-x**2))": -(far**2) / 2,
        "exp(-x**2) ** 3": -3 * far**2,
        "where(x > 0, exp(-x), exp(2*x))": np.where(far > 0, -far, 2 * far),
        "erfc(abs(x))": math.log(2) + special.log_ndtr(-math.sqrt(2) * np.abs(far)),
    }.items():
        np.testing.assert_allclose(parse_expression(text).log(far), expected, rtol=1e-12)


def test_no_mass_where_a_factor_is_zero() -> None:
    assert parse_expression("(x > 0) * exp(-x)").log(np.array([-2.0]))[0] == -math.inf
    assert parse_expression("(0 < x < 2) * exp(x**2)").log(np.array([1e200]))[0] == -math.inf


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("exp(-x**2/2)", stats.norm()),
        ("3 / cosh(x)", stats.hypsecant()),
        ("1/(1 + x**2)", stats.cauchy()),
        ("(x > 0) * exp(-x)", stats.expon()),
        ("max(1 - abs(x), 0)", stats.triang(0.5, -1, 2)),
        ("where(abs(x) <= 2, 1, 0)", stats.uniform(-2, 4)),
    ],
)
def test_typed_densities_are_the_laws_of_scipy(text: str, law: Any) -> None:
    noise = from_density(parse_expression(text).log_density("density"))
    u = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.9999])
    np.testing.assert_allclose(law.cdf(noise.ppf(u)), u, rtol=1e-5)  # docs/theory.md#tables


def test_a_log_density_is_taken_as_it_is() -> None:
    noise = from_density(parse_expression("-x - exp(-x)").log_density("log-density"))
    assert float(noise.ppf(0.3)) == pytest.approx(stats.gumbel_r().ppf(0.3), rel=1e-8)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "type a density"),
        ("   ", "type a density"),
        ("__import__('os').system('true')", "not allowed"),
        ("__import__", "unknown name '__import__'"),
        ("x.__class__", "not allowed"),
        ("(lambda: x)()", "not allowed"),
        ("(lambda: (lambda: (lambda: x)())())()", "not allowed"),
        ("[x for x in (1, 2)]", "not allowed"),
        ("x if x else 1", "not allowed"),
        ("x[0]", "not allowed"),
        ("(y := x)", "not allowed"),
        ("f'{x}'", "not allowed"),
        ("open('x')", "unknown name 'open'"),
        ("eval('x')", "unknown name 'eval'"),
        ("exp(x, x)", "exp takes 1, not 2"),
        ("exp(x=1)", "not allowed"),
        ("exp(*x)", "not allowed"),
        ("exp", "unknown name 'exp'"),
        ("'x'", "is not a number"),
        ("1j * x", "is not a number"),
        ("True", "is not a number"),
        ("expp(-x)", "did you mean exp"),
        ("x ^ 2", r"write \*\*"),
        ("x @ x", "use"),
        ("x // 2", "use"),
        ("x == 1", "only the comparisons"),
        ("not x", "not allowed"),
        ("x and x", "not allowed"),
        ("2x", "cannot read"),
        ("exp(-x", "cannot read"),
        ("x; x", "cannot read"),
        ("x\nimport os", "cannot read"),
        ("x\0", "cannot read"),
        ("+" * 200 + "x", "nested"),
        ("(" * 150 + "x" + ")" * 150, "characters"),
        ("x" + "+x" * 100, "nested"),
        ("9" * 5000, "characters"),
        ("(" * 200, "cannot read"),
        ("ｅｘｅｃ(x)", "unknown name"),
    ],
)
def test_hostile_and_mistyped_texts_are_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(SpecError, match=reason) as caught:
        parse_expression(text)
    assert len(str(caught.value)) < 400


def test_huge_powers_are_floats() -> None:
    assert parse_expression("9**9**9**9").value(X)[0] == math.inf
    assert parse_expression("9" * LONGEST).value(X)[0] == pytest.approx(1e300)
    assert parse_expression("1e999").value(X)[0] == math.inf


def test_the_depth_that_is_allowed_is_read() -> None:
    value = parse_expression("-" * DEEPEST + "x").value(X)
    np.testing.assert_array_equal(value, X)


def test_a_density_may_be_infinite_at_a_point_and_undefined_on_a_half_line() -> None:
    assert parse_expression("1 / abs(x)**0.5").log(np.array([0.0]))[0] == math.inf
    assert parse_expression("1 / x**2").log(np.array([0.0]))[0] == math.inf
    assert np.isnan(parse_expression("sqrt(x)").log(np.array([-1.0]))[0])
    gamma = from_density(parse_expression("sqrt(x) * exp(-x)").log_density("density"))
    assert float(gamma.ppf(0.2)) == pytest.approx(stats.gamma(1.5).ppf(0.2), rel=1e-6)


def test_a_density_that_dips_below_zero_between_the_probes_is_refused() -> None:
    dip = parse_expression("exp(-x**2) - 2*exp(-1e12*(x - 0.123456)**2)")
    with pytest.raises(SpecError, match=r"negative at x = 0.123"):
        dip.log(np.array([0.123456]))


def test_a_negative_density_is_refused() -> None:
    with pytest.raises(SpecError, match=r"negative at x = .*a log-density"):
        parse_expression("-x**2").log_density("density")
    with pytest.raises(SpecError, match="negative"):
        parse_expression("exp(-x**2) * cos(x)").log_density("density")
