"""Tightness validation: known verdicts about published formulas."""

import math
from pathlib import Path

import pytest

from unicr import noise
from unicr.norms import Norm
from unicr.tightness import formula, judge, load_formula, validate


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (1.0, "tight"),
        (0.9995, "tight"),
        (0.95, "inside the bracket"),
        (0.8, "loose"),
        (1.01, "WRONG"),
    ],
)
def test_verdicts(value: float, verdict: str) -> None:
    assert judge(value, 0.9, 1.0)[0] == verdict


def test_loss_is_counted_from_the_proved_radius() -> None:
    assert judge(0.45, 0.9, 1.0)[1] == pytest.approx(0.5)
    assert judge(1.5, 0.9, 1.0)[1] == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("name", "spec", "p", "verdict"),
    [
        ("cohen", "gaussian(sigma=0.5)", 2, "tight"),
        ("teng", "laplace(sigma=1)", 1, "tight"),
        ("lecuyer", "gaussian(sigma=0.5)", 2, "loose"),
        ("lecuyer", "laplace(sigma=1)", 1, "loose"),
        ("li", "gaussian(sigma=1)", 2, "loose"),
        ("yang_gaussian_linf", "gaussian(sigma=1)", math.inf, "tight"),
        ("yang_uniform_linf", "uniform(sigma=1)", math.inf, "tight"),
        ("yang_levelset_l1", "linf_exp(k=1, j=0, sigma=1, dim=784)", 1, "tight"),
        ("yang_levelset_l1", "linf_pareto(a=794, sigma=1, dim=784)", 1, "tight"),
        ("yang_levelset_l1", "splitting(scale=0.5)", 1, "tight"),
        ("yang_differential", "linf_exp(k=1, j=0, sigma=1, dim=784)", math.inf, "tight"),
        ("yang_differential", "l1_exp(k=1, j=0, sigma=1, dim=784)", 1, "tight"),
        ("dvijotham_kl", "gaussian(sigma=1)", 2, "loose"),
        ("dvijotham_hockey_stick", "laplace(sigma=1)", 1, "tight"),
    ],
)
def test_published_formulas(name: str, spec: str, p: float, verdict: str) -> None:
    rows = validate(formula(name), noise.parse(spec), Norm(p), 784, [0.6, 0.9, 0.99])
    assert [row.verdict for row in rows] == [verdict] * 3


@pytest.mark.slow
@pytest.mark.important
def test_pareto_formula_is_below_what_is_possible() -> None:
    rows = validate(
        formula("yang_pareto_l1"), noise.pareto(beta=3, scale=1), Norm(1), 8, [0.7, 0.95]
    )
    assert {row.verdict for row in rows} <= {"loose", "inside the bracket", "tight"}
    assert rows[-1].formula < 0.7 * rows[-1].searched


def test_a_wrong_formula_is_called_wrong(tmp_path: Path) -> None:
    """Using the l2 radius for linf, a mistake seen in practice."""
    file = tmp_path / "mine.py"
    file.write_text(
        "from statistics import NormalDist\n"
        "def optimistic(p_a):\n    return NormalDist().inv_cdf(p_a)\n"
    )
    rows = validate(
        load_formula(f"{file}:optimistic"), noise.gaussian(sigma=1), Norm(math.inf), 784, [0.9]
    )
    assert rows[0].verdict == "WRONG"
    assert "above what is possible" in rows[0].text
