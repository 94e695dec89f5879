"""The explorer's answers against closed forms and against `certified_radius`."""

from __future__ import annotations

import json
import re
import shlex
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from unicr.errors import NoiseError, RadiusError, SpecError, UnicrError
from unicr.lab.explore import answer
from unicr.lab.explore._answers import GRID, LAST_P, STEPS, coarse_to_fine
from unicr.noise import FAMILIES, parse
from unicr.radius import certified_radius

GAUSSIAN = {"family": "gaussian", "sigma": "0.5", "norm": "2", "dim": "3072"}
BUMP = {
    "family": "typed",
    "expression": "exp(-abs(x)**1.5) * (1 + 0.3*cos(x))",
    "sigma": "0.7",
    "norm": "inf",
    "dim": "784",
}


def test_the_gaussian_l2_radius_is_cohens() -> None:
    found = answer("radius", {**GAUSSIAN, "pa": "0.99"})
    expected = 0.5 * stats.norm.ppf(0.99)
    assert found["proved"] == found["searched"] == pytest.approx(expected, rel=1e-12)
    assert float(found["proved_text"]) <= expected
    assert float(found["proved_text"]) == pytest.approx(expected, rel=1e-5)
    assert found["guarantee"] == "exact"
    assert found["noise"] == "gaussian(sigma=0.5)"


@pytest.mark.parametrize(
    ("words", "spec"),
    [
        ({"family": "gennorm", "beta": "1.5", "sigma": "0.3"}, "gennorm(beta=1.5, sigma=0.3)"),
        ({"family": "cauchy", "scale": "0.3"}, "cauchy(scale=0.3)"),
        pytest.param(
            {"family": "ball", "sigma": "2"}, "ball(sigma=2, dim=20)", marks=pytest.mark.slow
        ),
        pytest.param(
            {"family": "spherical_exp", "k": "1", "scale": "2"},
            "spherical_exp(k=1, scale=2, dim=20)",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_radii_are_those_of_certified_radius(words: dict[str, str], spec: str) -> None:
    found = answer("radius", {**words, "norm": "inf", "dim": "20", "pa": "0.8"})
    expected = certified_radius(parse(spec), "inf", 20, p_a=0.8)
    assert found["proved"] == pytest.approx(expected.proved, rel=1e-4)
    assert found["searched"] == pytest.approx(expected.searched, rel=1e-4)
    assert found["theorem"] == expected.theorem
    assert found["guarantee"] == expected.guarantee
    assert parse(found["noise"]) == parse(spec)


def test_uniform_noise_on_a_square_is_exact() -> None:
    """Uniform on a square: p_A falls by the area lost, least for equal shifts; 0.9 lasts to 0.4."""
    words = {"family": "uniform", "scale": "1", "norm": "2", "dim": "2", "pa": "0.9"}
    found = answer("radius", words)
    truth = 2 * np.sqrt(2) * (1 - np.sqrt(0.6))
    assert found["guarantee"] == "exact"
    assert found["proved"] <= truth * (1 + 1e-12)
    assert found["proved"] == pytest.approx(truth, rel=1e-6)
    assert found["searched"] == pytest.approx(truth, rel=1e-3)
    assert float(found["proved_text"]) <= found["proved"]
    assert float(found["searched_text"]) <= found["searched"]


def test_the_command_asks_for_the_same_radius(capsys: pytest.CaptureFixture[str]) -> None:
    from unicr.cli import app

    words = {"family": "laplace", "sigma": "0.25", "norm": "1", "dim": "784", "pa": "0.95"}
    found = answer("radius", words)
    program, *arguments = shlex.split(found["command"])
    assert program == "unicr"
    app([*arguments, "--json"], exit_on_error=False, print_error=False)
    printed = json.loads(capsys.readouterr().out)
    assert printed["proved"] == pytest.approx(found["proved"], rel=1e-12)


def test_the_file_of_a_typed_density_is_the_same_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = answer("radius", {**BUMP, "pa": "0.9"})
    assert found["grade"] == "floating point with a charge"
    (tmp_path / found["file"]["name"]).write_text(found["file"]["text"])
    monkeypatch.chdir(tmp_path)
    noise = parse(found["noise"])
    assert noise.sigma == pytest.approx(0.7, rel=1e-9)
    again = certified_radius(noise, "inf", 784, p_a=0.9)
    assert again.proved == pytest.approx(found["proved"], rel=1e-6)


def test_a_typed_laplace_is_the_laplace_of_the_formulas() -> None:
    words = {"family": "typed", "expression": "exp(-abs(x))", "scale": "1", "norm": "1", "dim": "9"}
    found = answer("radius", {**words, "pa": "0.9"})
    assert found["proved"] == pytest.approx(stats.laplace.ppf(0.9), rel=1e-8)


def test_half_and_one_are_not_numbers_to_draw() -> None:
    half = answer("radius", {**GAUSSIAN, "pa": "0.5"})
    assert (half["proved"], half["guarantee"]) == (0, "abstain")
    one = answer("radius", {**GAUSSIAN, "pa": "1"})
    assert one["proved"] is None
    assert one["proved_text"] == "inf"
    json.dumps(one, allow_nan=False)


def test_the_order_of_the_points_ends_complete() -> None:
    order = coarse_to_fine(STEPS)
    assert order[:5] == [0, 32, 16, 8, 24]
    assert sorted(order) == list(range(STEPS + 1))


@pytest.mark.parametrize(
    ("words", "norm", "truth"),
    [
        ({"family": "gaussian", "sigma": "2"}, "2", lambda p: 2 * stats.norm.ppf(p)),
        ({"family": "laplace", "scale": "1"}, "1", stats.laplace.ppf),
        ({"family": "uniform", "scale": "1"}, "1", lambda p: 2 * p - 1),
        ({"family": "gennorm", "beta": "6", "scale": "1"}, "1", stats.gennorm(6).ppf),
    ],
)
def test_curves_lie_below_the_closed_form_and_close_to_it(
    words: dict[str, str], norm: str, truth: object
) -> None:
    assert callable(truth)
    query = {**words, "norm": norm, "dim": "10"}
    known = 0
    while True:
        found = answer("curve", {**query, "known": str(known)})
        assert found["known"] > known
        exact = truth(np.array(found["p_a"]))
        for side in ("proved", "searched"):
            assert (np.array(found[side]) <= exact * (1 + 1e-12) + 1e-12).all()
        for one in found["points"]:
            assert one["proved"] == pytest.approx(float(truth(one["p_a"])), rel=1e-9, abs=1e-9)
        known = found["known"]
        if found["complete"]:
            break
    assert known == STEPS + 1
    assert found["p_a"][0] == 0.5
    assert found["p_a"][-1] == pytest.approx(LAST_P)
    np.testing.assert_allclose(found["proved"], exact, rtol=0.03, atol=0.01)


def test_a_whole_curve_has_no_stairs() -> None:
    """Where one theorem gives all of it, the last answer is the curve that certificates read."""
    law = parse("gennorm(beta=1.5, sigma=1)")
    words = {"family": "gennorm", "beta": "1.5", "sigma": "1", "norm": "inf", "dim": "3072"}
    found = answer("curve", {**words, "known": str(STEPS + 1)})
    assert found["complete"]
    assert np.diff(found["proved"])[np.array(found["p_a"][1:]) > 0.51].min() > 0
    for k in (31, 62, 93):
        exact = certified_radius(law, "inf", 3072, p_a=found["p_a"][k])
        assert 0.995 * exact.proved < found["proved"][k] <= exact.proved


def test_a_proved_line_is_never_interpolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no closed form is free, it stays level from one proved point to the next."""
    monkeypatch.setattr("unicr.lab.explore._answers.PATIENCE", 0.0)
    query = {"family": "laplace", "scale": "1", "norm": "inf", "dim": "10", "known": "2"}
    found = answer("curve", query)
    points = [(one["p_a"], one["proved"]) for one in found["points"]]
    for p, value in zip(found["p_a"], found["proved"], strict=True):
        assert value <= max(r for at, r in points if at <= p) * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.important
def test_a_noise_without_a_curve_is_drawn_from_its_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("unicr.lab.explore._answers.PATIENCE", 0.0)
    words = {"family": "l1_exp", "k": "1", "j": "0", "sigma": "1", "norm": "2", "dim": "20"}
    found = answer("curve", {**words, "known": "2"})
    points = {one["p_a"]: one["proved"] for one in found["points"]}
    assert max(points.values()) > 0
    line = dict(zip(found["p_a"], found["proved"], strict=True))
    assert all(line[p] == pytest.approx(value) for p, value in points.items())


def test_a_slow_curve_comes_point_by_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unicr.lab.explore._answers.PATIENCE", 0.0)
    query = {"family": "gaussian", "sigma": "1", "norm": "2", "dim": "10"}
    steps = [answer("curve", {**query, "known": str(k)}) for k in (0, 3, 4)]
    assert [found["known"] for found in steps] == [3, 4, 5]
    assert not steps[-1]["complete"]
    shown = [one["p_a"] for one in steps[-1]["points"]]
    assert shown == sorted(float(GRID[i]) for i in (0, 16, 8, 24))


def test_densities_are_drawn_with_their_facts() -> None:
    found = answer("density", {"family": "laplace", "sigma": "1"})
    x, y = np.array(found["x"]), np.array(found["y"])
    np.testing.assert_allclose(y, stats.laplace(scale=1 / np.sqrt(2)).pdf(x), rtol=1e-12)
    assert 0.0 in found["x"]
    assert found["facts"]["log-concave"] is True
    assert found["source"] == "analytic"
    typed = answer("density", {k: v for k, v in BUMP.items() if k not in ("norm", "dim")})
    assert typed["source"] == "table"
    assert typed["sigma"] == pytest.approx(0.7)


def test_the_density_of_a_spherical_noise_is_that_of_its_length() -> None:
    found = answer("density", {"family": "spherical_gg", "k": "0", "sigma": "1", "dim": "40"})
    assert found["of"] == "the length"
    inner = slice(1, -1)  # at the ends the difference quotient is one-sided
    expected = stats.chi(40).pdf(np.array(found["x"]))
    np.testing.assert_allclose(np.array(found["y"])[inner], expected[inner], atol=1e-3)


def test_an_infinite_density_and_variance_can_be_drawn() -> None:
    words = {"family": "typed", "expression": "exp(-abs(x)) / sqrt(abs(x))", "scale": "1"}
    found = answer("density", words)
    json.dumps(found, allow_nan=False)
    cauchy = answer("density", {"family": "cauchy", "scale": "1"})
    assert cauchy["sigma"] is None


def test_every_family_is_listed_with_its_parameters() -> None:
    listed = {family["name"]: family for family in answer("families", {})["families"]}
    assert list(listed) == list(FAMILIES)
    for name, family in listed.items():
        told = [(p["name"], p["min"], p["max"], p["start"]) for p in family["parameters"]]
        assert told == [(p.name, *p.slider) for p in FAMILIES[name].parameters]
        assert all(p.low <= p.slider[0] <= p.slider[2] <= p.slider[1] <= p.high
                   for p in FAMILIES[name].parameters)  # fmt: skip


@pytest.mark.important
@pytest.mark.slow
def test_every_end_of_every_slider_makes_a_noise() -> None:
    for family in answer("families", {})["families"]:
        name = family["name"]
        for end in ("min", "max", "start"):
            shape = {p["name"]: repr(p[end]) for p in family["parameters"]}
            words = {"family": name, **shape, "scale": "1", "dim": "5000"}
            assert answer("density", words)["x"]


@pytest.mark.parametrize(
    ("question", "change", "kind", "reason"),
    [
        ("radius", {"family": "gausian"}, SpecError, "unknown family 'gausian'"),
        ("radius", {"sigma": "zero"}, SpecError, "sigma='zero' is not a number"),
        ("radius", {"sigma": "nan"}, SpecError, "sigma='nan' is not a number"),
        ("radius", {"sigma": "-1"}, NoiseError, "sigma=-1.0 must be"),
        ("radius", {"scale": "1"}, SpecError, "exactly one"),
        ("radius", {"beta": "1"}, SpecError, "unknown setting 'beta'"),
        ("radius", {"norm": "two"}, SpecError, "cannot read the norm 'two'"),
        ("radius", {"norm": "-1"}, SpecError, "above 0"),
        ("radius", {"dim": "0"}, SpecError, "dim=0 must be"),
        ("radius", {"dim": "1.5"}, SpecError, "dim=1.5 must be"),
        ("radius", {"dim": "1e300"}, SpecError, "dim=1e\\+300 must be"),
        ("radius", {"pa": "1.5"}, RadiusError, "p_a=1.5"),
        ("radius", {"family": "typed"}, SpecError, "no expression="),
        ("radius", {"family": "ball", "dim": "1"}, NoiseError, "dim=1 must be"),
        ("curve", {"known": "99"}, SpecError, "known=99"),
        ("families", {}, SpecError, "unknown setting"),
    ],
)
def test_mistakes_are_named(
    question: str, change: dict[str, str], kind: type[UnicrError], reason: str
) -> None:
    with pytest.raises(kind, match=reason):
        answer(question, {**GAUSSIAN, "pa": "0.9", **change})


@pytest.mark.parametrize("missing", ["family", "sigma", "norm", "dim", "pa"])
def test_what_is_missing_is_named(missing: str) -> None:
    query = {k: v for k, v in {**GAUSSIAN, "pa": "0.9"}.items() if k != missing}
    with pytest.raises(SpecError, match=missing):
        answer("radius", query)


@pytest.mark.parametrize(
    ("expression", "kind", "reason"),
    [
        ("exp(x**2)", "density", "cannot be used as a density"),
        ("1", "density", "infinite mass"),
        ("x", "log-density", "cannot be used as a log-density"),
        ("1.1 + sin(1e6*x)", "log-density", "local maxima"),
        ("log(x)", "log-density", "lighter tail"),
        ("-x**2 + log(sin(3*x) - 2)", "log-density", "NaN"),
        ("exp(-x**2)", "pdf", "kind='pdf'"),
    ],
)
def test_what_is_no_density_is_refused_kindly(expression: str, kind: str, reason: str) -> None:
    with pytest.raises(UnicrError, match=reason) as caught:
        answer("density", {**BUMP, "expression": expression, "kind": kind})
    assert "logpdf" not in str(caught.value)


def test_infinite_variance_asks_for_a_scale() -> None:
    with pytest.raises(NoiseError, match="scale="):
        answer("density", {"family": "typed", "expression": "1/(1+x**2)", "sigma": "1"})


@pytest.mark.parametrize("family", answer("families", {})["families"], ids=lambda one: one["name"])
def test_every_family_can_be_drawn_as_the_page_asks_for_it(family: dict[str, Any]) -> None:
    """The page sends the dimension with the noise where the server says that the law is joint."""
    words = {one["name"]: str(one["start"]) for one in family["parameters"]}
    words |= {"family": family["name"], family["sizes"][0]: "1"}
    words |= {"dim": "784"} if family["joint"] else {}
    found = answer("density", words)
    assert len(found["x"]) == len(found["y"]) > 100
    assert max(y for y in found["y"] if y is not None) > 0


def test_the_page_names_no_family_and_opens_with_the_usual_one() -> None:
    script = resources.files("unicr.lab.explore").joinpath("explore.js").read_text("utf-8")
    named = {name for name in FAMILIES if re.search(rf"[\"\'`]{name}[\"\'`]", script)}
    assert not named
    told = answer("families", {})
    assert [name for name, family in FAMILIES.items() if family.usual] == [told["usual"]]
