"""What an explanation says: the radius step by step, files that are there, every charge."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import unicr
from unicr.noise import from_density, gaussian, laplace, parse
from unicr.radius import Explanation, SecondLaw, certified_radius, explain_radius
from unicr.radius._rounding import CHARGES, RADIUS_CHARGE
from unicr.radius.theorems import THEOREMS, Theorem

PACKAGE = Path(unicr.__file__).parent
THEORY = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")
CASES = [
    ("gaussian(sigma=0.5)", 2, 3072, "d"),
    ("laplace(sigma=1)", 1, 784, "b"),
    ("laplace(sigma=1)", "inf", 20, "c"),
    ("uniform(sigma=1)", 1.2, 5, "k"),
    ("linf_exp(k=1, j=0, sigma=1, dim=20)", 1, 20, "l"),
    ("sum(gaussian(sigma=0.5), laplace(sigma=0.1))", 2, 784, "d"),
]


@pytest.mark.parametrize(("text", "norm", "dim", "letter"), CASES)
def test_the_steps_multiply_to_the_radius(
    text: str, norm: float | str, dim: int, letter: str
) -> None:
    noise = parse(text)
    how = explain_radius(noise, norm, dim, p_a=0.9)
    result = certified_radius(noise, norm, dim, p_a=0.9)
    assert how.proved == result.proved > 0
    assert how.proved == how.unit_radius * how.scale * (1.0 - RADIUS_CHARGE)
    assert how.theorems[0].startswith(f"({letter}) ")
    assert how.grade == result.grade
    assert_it_leads_somewhere(how)


def assert_it_leads_somewhere(how: Explanation) -> None:
    for line in how.theorems:
        assert f"({line.partition('#')[2]})=" in THEORY
    for line in how.files:
        assert (PACKAGE.parent / line.partition(":")[0]).is_file()
        assert len(line.partition(":")[2]) > 20
    for line in how.charges:
        file, _, name = line.rpartition("; unicr/")[2].partition(" ")
        assert name.split(",")[0] in (PACKAGE / file).read_text(encoding="utf-8")


def test_other_theorems_are_named_with_less() -> None:
    how = explain_radius(laplace(sigma=1), 1.5, 2, p_a=0.9)
    assert how.theorems[0].startswith("(n) ")
    radii = [float(line.split()[0]) for line in how.others]
    assert radii
    assert max(radii) < how.unit_radius
    assert any(line.endswith("(b) one-hot, log-concave + (h) inclusion") for line in how.others)


def test_two_laws_are_explained_where_they_give_more() -> None:
    noise, second = parse("l1_exp(k=1, j=0, sigma=1, dim=784)"), SecondLaw(0.99, 0.5)
    how = explain_radius(noise, 1, p_a=0.9, second=second)
    assert how.theorems[0].startswith("(o) ")
    assert how.proved == certified_radius(noise, 1, p_a=0.9, second=second).proved


def test_a_density_of_a_user_is_explained() -> None:
    how = explain_radius(from_density(lambda x: -abs(x) - x**2, name="mine"), 1, 10, p_a=0.9)
    assert how.proved > 0
    assert_it_leads_somewhere(how)


@pytest.mark.parametrize(
    ("p_a", "proved", "word"), [(0.5, 0.0, "not above p_B"), (1.0, float("inf"), "p_A = 1")]
)
def test_without_a_theorem_it_says_why(p_a: float, proved: float, word: str) -> None:
    how = explain_radius(gaussian(sigma=1), 2, 10, p_a=p_a)
    assert how.proved == proved
    assert word in how.theorems[0]


@pytest.mark.parametrize("theorem", THEOREMS.values(), ids=lambda theorem: theorem.letter)
def test_every_theorem_has_its_place_and_its_files(theorem: Theorem) -> None:
    """The page has its letter, and each charge on its path stands in a folder that it names."""
    assert f"(theorem-{theorem.letter})=" in THEORY
    modules = [importlib.import_module(name) for name in theorem.computed_in]
    own = importlib.import_module(theorem.match.__module__)
    homes = {Path(str(module.__file__)).parent for module in (own, *modules)}
    homes |= {PACKAGE / "radius"}
    for charge in CHARGES:
        if theorem.letter in charge.theorems.split(", "):
            assert (PACKAGE / charge.constant.split(" ")[0]).parent in homes, charge


def test_as_text_every_step_has_its_lines() -> None:
    text = str(explain_radius(gaussian(sigma=0.5), 2, 3072, p_a=0.99))
    names = [match[1] for match in re.finditer(r"^(\S[\w ]*?)\s{2,}|^(at scale 1) ", text, re.M)]
    assert [name for name in names if name] == [
        "question", "theorem", "grade", "proved", "others", "files", "charges"
    ]  # fmt: skip
    assert "1.16317   times the scale 0.707107" in text
