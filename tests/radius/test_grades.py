"""Grades of proof: the weakest that applies, as a field of every result."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from unicr import noise
from unicr.cli import app
from unicr.radius import Grade, Question, RadiusCurve, SecondLaw, certified_radius
from unicr.radius._grade import find_weakest
from unicr.radius.theorems import list_bounds

CHECKED, DECLARED = Grade.CHECKED_ON_A_GRID, Grade.DECLARED
LOGISTIC = noise.from_scipy(stats.logistic())
STUDENT = noise.from_scipy(stats.t(3))


def log_density(x: np.ndarray) -> np.ndarray:
    return -np.abs(x)


@pytest.mark.parametrize(
    ("law", "norm", "dim", "grade"),
    [
        (noise.gaussian(sigma=1), 3, 50, Grade.CLOSED_FORM),
        (noise.laplace(sigma=1), 1, 50, Grade.CLOSED_FORM),
        (noise.uniform(sigma=1), math.inf, 50, Grade.CLOSED_FORM),
        (noise.uniform(sigma=1), 1.5, 50, Grade.OUTWARD_ROUNDING),  # a minimum, by cells
        (noise.gaussian(sigma=1).truncated(2), 1, 50, Grade.FLOATING_POINT),  # by a table
        (noise.laplace(sigma=1), math.inf, 50, Grade.FLOATING_POINT),
        (noise.cauchy(scale=1), math.inf, 50, Grade.FLOATING_POINT),  # it knows where L turns
        (
            noise.lapgauss(beta=0.5, sigma=1),
            math.inf,
            50,
            Grade.FLOATING_POINT,
        ),  # it bounds L itself
        (noise.linf_exp(k=1, j=0, sigma=1, dim=20), math.inf, 20, Grade.OUTWARD_ROUNDING),
        (LOGISTIC, 1, 50, Grade.FLOATING_POINT),  # a user's: its table is its law
        (LOGISTIC, math.inf, 50, Grade.FLOATING_POINT),
        (STUDENT, math.inf, 50, Grade.FLOATING_POINT),  # not log-concave
        (noise.from_density(log_density, symmetric=True), 1, 50, Grade.FLOATING_POINT),
        (noise.from_radial_density(lambda r: -r, dim=6), 2, 6, CHECKED),
        (noise.Anisotropic(LOGISTIC, [1.0, 2.0]), math.inf, 2, Grade.FLOATING_POINT),
    ],
)
def test_the_weakest_grade_counts(law: noise.Noise, norm: float, dim: int, grade: Grade) -> None:
    found = certified_radius(law, norm, dim, p_a=0.9)
    assert found.proved > 0
    assert found.grade == grade
    assert str(grade) in repr(found)
    assert str(grade) in found._repr_html_()
    assert found.to_dict()["grade"] == str(grade)
    assert "checked" not in found.theorem
    if law.scales is None:
        assert RadiusCurve(law, norm, dim).grade == grade


@pytest.mark.parametrize(
    ("law", "grade"),
    [
        (noise.laplace(sigma=1), Grade.FLOATING_POINT),
        (noise.cauchy(scale=1), Grade.FLOATING_POINT),  # χ is enclosed
        (noise.gennorm(beta=1.5, sigma=1).truncated(2), Grade.FLOATING_POINT),
        (STUDENT, Grade.FLOATING_POINT),
    ],
)
def test_the_bellman_bound_rests_on_no_grid(law: noise.Noise, grade: Grade) -> None:
    bound = next(one for one in list_bounds(Question(law, 2, 10)) if one.theorem.startswith("(j)"))
    assert bound.grade == grade


def test_certainty_has_the_grade_of_the_facts() -> None:
    for law, grade in ((noise.sech(sigma=1), Grade.CLOSED_FORM), (LOGISTIC, Grade.CLOSED_FORM)):
        found = certified_radius(law, 2, 5, p_a=1.0)
        assert (found.proved, found.grade) == (math.inf, grade)


def test_nothing_proved_has_no_grade() -> None:
    assert certified_radius(noise.laplace(sigma=1), 2, 5, p_a=0.4).grade is None


def test_a_table_of_radii_tells_the_grade_of_each_row() -> None:
    rows = certified_radius(noise.gaussian(sigma=1), 2, 5, p_a=[0.3, 0.9]).plain_rows()
    assert [row["grade"] for row in rows] == [None, Grade.CLOSED_FORM]


def test_two_laws_are_graded_too() -> None:
    law = noise.l1_exp(k=1, j=0, scale=1, dim=6)  # the tables of other tests
    alone = certified_radius(law, 1, p_a=0.8)
    both = certified_radius(law, 1, p_a=0.8, second=SecondLaw(0.999, 0.5))
    assert both.proved > alone.proved
    assert (both.theorem, both.grade) == ("(o) votes under two laws", Grade.FLOATING_POINT)
    assert both.guarantee == "approximate"
    assert both.to_dict()["second"] == {"q_a": 0.999, "share": 0.5}
    useless = certified_radius(law, 1, p_a=0.8, second=SecondLaw(0.5, 0.5))
    assert (useless.proved, useless.theorem) == (alone.proved, alone.theorem)


def test_the_order_of_grades() -> None:
    assert [str(one) for one in Grade] == [
        "closed form",
        "outward rounding",
        "floating point with a charge",
        "facts checked on a grid",
        "declared by the user",
    ]
    assert find_weakest(Grade.FLOATING_POINT, DECLARED, Grade.CLOSED_FORM) == DECLARED


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    question = ["radius", "--noise", "laplace(sigma=1)", "--norm", "1", "--dim", "9", "--pa", ".9"]
    app(question, result_action="return_value")
    assert "grade      closed form\n" in capsys.readouterr().out
    app([*question, "--json"], result_action="return_value")
    assert json.loads(capsys.readouterr().out)["grade"] == "closed form"
