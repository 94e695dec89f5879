"""The text form of a noise: every documented form reads, nothing is ever evaluated."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from unicr import noise
from unicr.errors import NoiseError, SpecError, UnicrError
from unicr.lab.report.noise import describe
from unicr.noise._spec import check_parses

OWN = """
import numpy as np
from unicr import noise

touched = True

def tent(x):
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(1 - np.abs(x), 0))

mine = noise.from_density(tent, scale=2)
plain = noise.laplace(sigma=0.25)
cut = noise.from_density(tent).truncated(0.5)
shell = noise.from_radial_density(lambda r: -(r - 3) ** 2, dim=5)
number = 3.5
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own noises") / "own.py"
    path.write_text(OWN)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gaussian(sigma=0.5)", noise.gaussian(sigma=0.5)),
        ("laplace(scale=2)", noise.laplace(scale=2)),
        ("gennorm(beta=1.5, sigma=1)", noise.gennorm(beta=1.5, sigma=1)),
        ("pareto(beta=3, scale=0.5)", noise.pareto(beta=3, scale=0.5)),
        ("lapgauss(beta=0.5, sigma=1)", noise.lapgauss(beta=0.5, sigma=1)),
        ("expmix(beta=0.5, sigma=1)", noise.expmix(beta=0.5, sigma=1)),
        ("sech(sigma=1)", noise.sech(sigma=1)),
        ("cauchy(scale=0.3)", noise.cauchy(scale=0.3)),
        ("uniform(sigma=1)", noise.uniform(sigma=1)),
        (
            "spherical_gg(k=1530, sigma=0.5, dim=3072)",
            noise.spherical_gg(k=1530, sigma=0.5, dim=3072),
        ),
        ("spherical_exp(k=1, sigma=1, dim=784)", noise.spherical_exp(k=1, sigma=1, dim=784)),
        ("ball(sigma=1, dim=784)", noise.ball(sigma=1, dim=784)),
        ("  gaussian( sigma = 5e-1 )\n", noise.gaussian(sigma=0.5)),
        ("gaussian(sigma=+0.5)", noise.gaussian(sigma=0.5)),
        ("cauchy(scale=0.3).truncated(5)", noise.cauchy(scale=0.3).truncated(5)),
        ("cauchy(scale=0.3).truncated(-1, 5)", noise.cauchy(scale=0.3).truncated(-1, 5)),
        ("cauchy(scale=0.3).truncated(at=-1, upper=5)", noise.cauchy(scale=0.3).truncated(-1, 5)),
        ("gaussian(sigma=0.5) * 2", noise.gaussian(sigma=1)),
        ("(gaussian(sigma=0.5) * 2).truncated(3)", noise.gaussian(sigma=1).truncated(3)),
    ],
)
def test_documented_forms(text: str, expected: noise.Noise) -> None:
    assert noise.parse(text) == expected
    assert check_parses(expected) == expected.text
    assert noise.parse(expected.text) == expected


def test_numbers_in_the_text_are_short_and_exact() -> None:
    assert noise.gaussian(sigma=1.0).text == "gaussian(sigma=1)"
    assert repr(noise.gennorm(beta=1.5, sigma=0.1)) == "gennorm(beta=1.5, sigma=0.1)"
    assert noise.gaussian(sigma=1 / 3).text == f"gaussian(sigma={1 / 3!r})"
    assert str(noise.ball(sigma=1, dim=784)) == "ball(sigma=1, dim=784)"
    assert noise.gaussian(sigma=1e-30).text == "gaussian(sigma=1e-30)"


def test_scipy_distributions() -> None:
    one = noise.parse("scipy.gumbel_r(0, 2)")
    assert isinstance(one, noise.IID)
    assert one.mean == pytest.approx(2 * 0.5772156649015329, rel=1e-7)
    assert one.text == "scipy.gumbel_r(0, 2)"
    named = noise.parse("scipy.gamma(a=2.5, scale=0.3)")
    assert named.text == "scipy.gamma(a=2.5, scale=0.3)"
    assert noise.parse(named.text) == named


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("scipy.nothing(1)", "no continuous distribution called 'nothing'"),
        ("scipy.poisson(3)", "no continuous distribution called 'poisson'"),
        ("scipy.__class__(3)", "no continuous distribution"),
        ("scipy.gamma()", "scipy.gamma"),
        ("scipy.gamma(bad=1)", "bad"),
        ("scipy.norm(0, -1)", "invalid parameters"),
    ],
)
def test_bad_scipy_distributions(text: str, reason: str) -> None:
    with pytest.raises(UnicrError, match=reason):
        noise.parse(text)


def test_a_noise_in_a_file(own: Path) -> None:
    one = noise.parse(f"{own}:mine")
    assert isinstance(one, noise.IID)
    assert one.support == pytest.approx((-2, 2))
    assert one.text == f"{own}:mine"
    assert check_parses(one) == one.text
    assert noise.parse(f"{own}:plain").text == "laplace(sigma=0.25)"


def test_a_log_density_in_a_file(own: Path) -> None:
    one = noise.parse(f"{own}:tent")
    assert isinstance(one, noise.IID)
    assert one.sigma == pytest.approx(math.sqrt(1 / 6), rel=1e-7)
    assert check_parses(one) == f"{own}:tent"


def test_a_relative_path(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own.parent)
    assert noise.parse("own.py:tent").text == "own.py:tent"
    assert noise.parse("./own.py:tent").sigma == noise.parse("own.py:tent").sigma


@pytest.mark.parametrize("name", ["mine", "tent", "cut", "shell"])
def test_a_users_noise_keeps_its_name_when_changed(own: Path, name: str) -> None:
    one = noise.parse(f"{own}:{name}")
    for changed in (one * 0.3 * 0.7, one.with_sigma(0.123)):
        assert changed.text.startswith(f"{own}:{name} * ")
        again = noise.parse(changed.text)
        assert again == changed
        assert again.sigma == changed.sigma
    if isinstance(one, noise.IID):
        cut = (one * 0.3).truncated(-0.1, 0.2)
        assert noise.parse(cut.text) == cut
        np.testing.assert_array_equal(noise.parse(cut.text).sample(2, 3), cut.sample(2, 3))


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    path.write_text("from unicr.noise import gaussian\nmine = gaussian(sigma=1)\n")
    assert noise.parse(f"{path}:mine").sigma == 1
    path.write_text("from unicr.noise import gaussian\nmine = gaussian(sigma=2.5)\n")
    assert noise.parse(f"{path}:mine").sigma == 2.5


@pytest.mark.parametrize(
    ("content", "name", "reason"),
    [
        (None, "x", "no file"),
        ("a = 1", "b", "has no 'b'; it has a"),
        ("a = 1", "a", "is a int, not a noise or a log-density"),
        ("class A: pass", "A", "is a type, not a noise"),
        ("1/0", "a", "failed to load: ZeroDivisionError"),
        ("a = (", "a", "failed to load: SyntaxError"),
        ("def a(x): return x", "a", "integrable"),
    ],
)
def test_bad_files(tmp_path: Path, content: str | None, name: str, reason: str) -> None:
    path = tmp_path / "bad.py"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UnicrError, match=reason):
        noise.parse(f"{path}:{name}")


def test_a_file_beside_is_found_by_pythonpath(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text("steep = 3\n")
    path = tmp_path / "mine.py"
    path.write_text("from shapes import steep\ndef law(x): return -abs(x) ** steep\n")
    with pytest.raises(SpecError, match=r"imports shapes, which lies beside it.*PYTHONPATH"):
        noise.parse(f"{path}:law")
    path.write_text("import nobody_wrote_this\n")
    with pytest.raises(SpecError, match="failed to load: ModuleNotFoundError"):
        noise.parse(f"{path}:law")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch {mark}')",
        "open('{mark}', 'w')",
        "(lambda: open('{mark}', 'w'))()",
        "gaussian(sigma=open('{mark}', 'w'))",
        "gaussian(sigma=(lambda: 1)())",
        "gaussian(sigma=__import__('os').system('touch {mark}'))",
        "gaussian.__init__(sigma=1)",
        "gaussian(sigma=1).__class__(sigma=2)",
        "gaussian(sigma=1).sample(3)",
        "gaussian(sigma=1).truncated(5)._base",
        "gaussian(sigma=1)[0]",
        "gaussian(**dict(sigma=1))",
        "gaussian(*[1])",
        "gaussian(sigma=x)",
        "gaussian(sigma='1')",
        "gaussian(sigma=True)",
        "gaussian(sigma=1j)",
        "gaussian(sigma=2**9)",
        "gaussian(sigma=1 if 1 else 2)",
        "gaussian(sigma=[1 for _ in range(10**9)])",
        "gaussian(sigma=1) + gaussian(sigma=1)",
        "gaussian(sigma=1) * gaussian(sigma=1)",
        "gaussian(sigma=1) / 2",
        "2 * gaussian(sigma=1)",
        "gaussian(sigma=1); laplace(sigma=1)",
        "(gaussian(sigma=1), laplace(sigma=1))",
        "[gaussian(sigma=1)]",
        "_file_",
        "_file_ * 2",
        "ball(sigma=1, dim=3).truncated(1, 2, 3)",
        "scipy.norm",
        "scipy.norm(0, 1).rvs(3)",
        "unicr.noise.gaussian(sigma=1)",
        "import os",
        "sigma=1",
        "1",
        "'gaussian(sigma=1)'",
        "",
        "   ",
        "gaussian(sigma=1",
        "gaussian(sigma=\0)",
        "(" * 100_000,
        "(" * 3000 + ")" * 1000,
        "gaussian(sigma=" + "-" * 4000 + "1)",
        "gaussian(sigma=1)" + "*1" * 2400 + "*x",
        "gaussian(sigma=1)" + ".truncated(9)" * 380 + ".x",
        "gaussian(sigma=" + "9" * 4900 + ")",
    ],
)
def test_nothing_is_evaluated(text: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(SpecError):
        noise.parse(text.replace("{mark}", str(mark)))
    assert not mark.exists()


@given(st.text(alphabet="gausin(=1.5,sma)*-_ py:[]{}'\"\\\n", max_size=60))
def test_any_text_is_a_noise_or_a_spec_error(text: str) -> None:
    try:
        noise.parse(text)
    except (SpecError, NoiseError):
        return


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("gausian(sigma=1)", "unknown noise 'gausian': did you mean gaussian"),
        ("normal(sigma=1)", "known noises: cauchy, gaussian"),
        ("genorm(beta=1, sigma=1)", "did you mean gennorm"),
        ("gaussian", "has no parameters"),
        ("gaussian(sigma=1)" + ".truncated(3)" * 300, "truncated at most 4 times"),
        ("gaussian(0.5)", "have no names"),
        ("gennorm(sigma=1)", "gennorm.*beta"),
        ("gaussian(sigma=1, beta=2)", "beta"),
        ("gaussian(sigma=1, sigma=2)", "sigma is given twice"),
        ("spherical_gg(k=2, sigma=1)", "dim"),
        ("gaussian(sigma=abc)", "'abc' is not a number"),
        ("gaussian(sigma=1).cut(3)", "cannot read"),
        ("gaussian(sigma=1).truncated()", "at"),
        ("gaussian(sigma=1).truncated(1, 2, 3)", "cannot read"),
    ],
)
def test_spec_errors_help(text: str, reason: str) -> None:
    with pytest.raises(SpecError, match=reason) as caught:
        noise.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("gaussian(sigma=-1)", "sigma=-1"),
        ("gaussian(sigma=inf)", "sigma=inf"),
        ("gaussian()", "exactly one"),
        ("gaussian(sigma=1, scale=1)", "exactly one"),
        ("cauchy(sigma=1)", "scale="),
        ("gaussian(sigma=1) * -1", "factor=-1"),
        ("ball(sigma=1, dim=inf)", "dim=inf"),
        ("gaussian(sigma=1" + "0" * 400 + ")", "sigma"),
        ("gaussian(sigma=1).truncated(-3)", "cannot truncate"),
    ],
)
def test_bad_values_keep_their_own_error(text: str, reason: str) -> None:
    with pytest.raises(NoiseError, match=reason):
        noise.parse(text)


def test_a_noise_without_a_text_cannot_be_saved() -> None:
    for one in (
        noise.from_density(lambda x: -(x**2)),
        noise.from_radial_density(lambda r: -r * r, dim=3),
        noise.from_density(lambda x: -(x**2), name="gaussian(sigma=1)"),
    ):
        with pytest.raises(SpecError, match=r"define it in a Python file .* path/to/file\.py:name"):
            check_parses(one)


def test_a_function_of_a_file_makes_a_noise_from_numbers(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from unicr import noise\n"
        "def law(*, sigma):\n    return noise.laplace(sigma=sigma).truncated(9 * sigma)\n"
        "def bad(*, sigma):\n    return sigma\n"
        "one = noise.gaussian(sigma=1)\n"
    )
    made = noise.parse(f"{file}:law(sigma=0.25)")
    assert made.text == f"{file}:law(sigma=0.25)"
    assert noise.parse(made.text) == made
    assert made.sigma == noise.laplace(sigma=0.25).truncated(2.25).sigma
    assert noise.parse(f"{file}:law(sigma=0.25) * 2").sigma == pytest.approx(2 * made.sigma)
    for text, message in (
        (f"{file}:law", "sigma=…"),
        (f"{file}:law(beta=1)", "beta"),
        (f"{file}:bad(sigma=1)", "a noise is needed"),
        (f"{file}:one(sigma=1)", "not a function"),
        (f"{file}:law(0.5)", "have no names"),
    ):
        with pytest.raises(SpecError, match=message):
            noise.parse(text)
    again = noise.from_data(noise.to_data(made))
    assert again.text == made.text
    assert again.sigma == pytest.approx(made.sigma)


def test_a_users_sigma_is_shown_as_sigma() -> None:
    """Whoever asked for a sigma reads it, not the factor that it took; the text stays exact."""
    law = noise.from_density(lambda x: -(abs(x) ** 3), name="cubic")
    assert repr(law.with_sigma(0.3)) == "cubic.with_sigma(0.3)"
    assert repr(law * 0.3) == "cubic * 0.3"
    heavy = noise.parse("scipy.t(5).with_sigma(0.5)")
    assert heavy.sigma == pytest.approx(0.5, rel=1e-12)
    assert repr(heavy) == "scipy.t(5).with_sigma(0.5)"
    assert noise.parse(heavy.text) == heavy == noise.parse(repr(heavy))
    assert repr(noise.from_scipy(stats.cauchy()) * 2).endswith(" * 2")  # has none


def test_what_a_notebook_shows_of_a_noise(tmp_path: Path) -> None:
    page = noise.gennorm(beta=1.5, sigma=0.5)._repr_html_()
    assert "<th>sigma</th><td>0.5</td>" in page
    assert "<th>log_concave</th><td>True</td>" in page
    (tmp_path / "a&b.py").write_text(
        "from unicr import noise\n"
        "def law(sigma):\n"
        "    return noise.from_density(lambda x: -x**4, name='quartic', sigma=sigma)\n"
    )
    own = noise.parse(f"{tmp_path}/a&b.py:law(sigma=0.25)")
    assert "a&amp;b.py:law(sigma=0.25)</td>" in own._repr_html_()
    assert "dim=784" in noise.ball(sigma=1, dim=784)._repr_html_()
    assert describe(own)["called"] == "quartic.with_sigma(0.25)"
