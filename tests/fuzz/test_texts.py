"""Noises, norms, dimensions and probabilities as anybody may write them: an answer or one line."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from tests.cli.command import run
from tests.fuzz.work import at_length, check_answered, drawn, number, within, words
from unicr.errors import UnicrError
from unicr.lab.explore._answers import answer
from unicr.noise import parse

EXAMPLES = (
    *("gaussian(sigma=1)", "laplace(sigma=0.5)", "sech(sigma=1)", "gennorm(beta=1.5, sigma=1)"),
    *("cauchy(scale=0.3)", "pareto(beta=3, scale=0.5)", "lapgauss(beta=0.5, sigma=1)"),
    *("expmix(beta=0.5, sigma=1)", "uniform(sigma=1)", "spherical_gg(k=1, sigma=0.5, dim=5)"),
    *("spherical_exp(k=1, sigma=1, dim=10)", "ball(sigma=1, dim=10)", "scipy.logistic(0, 1)"),
)


@st.composite
def noise(draw: st.DrawFn) -> str:
    """A noise near one that exists: numbers changed, truncated, scaled, or letters wrong."""
    text = draw(st.sampled_from(EXAMPLES))
    head, _, rest = text.partition("(")
    parts = rest.rstrip(")").split(", ")
    for i, part in enumerate(parts):
        if draw(st.integers(0, 2)) == 0:
            parts[i] = f"{part.partition('=')[0]}={draw(number())}"
    text = f"{head}({', '.join(parts)})"
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2)))):
        text += draw(st.sampled_from((f".truncated({draw(number())})", f" * {draw(number())}")))
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(words(4)) + text[at + draw(st.integers(0, 3)) :]
    return text


def mostly(*good: str) -> st.SearchStrategy[str]:
    return st.sampled_from(good) | number()


def check_radius(law: str, norm: str, dim: str, pa: str) -> None:
    """The radius is refused in one line, or a bracket of radii in the right order."""
    with within():
        done = run(
            *("radius", f"--noise={law}", f"--norm={norm}", f"--dim={dim}", f"--pa={pa}", "--json")
        )
    if check_answered(done):
        answer = json.loads(done.out)
        proved, searched = float(answer["proved"]), float(answer["searched"])
        assert 0 <= proved <= searched * (1 + 1e-9), (law, norm, dim, pa, answer)


RADII = (noise(), mostly("1", "2", "inf"), mostly("1", "3", "10"), mostly("0.6", "0.9", "0.999"))
test_radius = drawn(100)(given(*RADII)(check_radius))
test_radius_at_length = at_length(2000)(given(*RADII)(check_radius))


def check_gaussian(sigma: str, norm: str, dim: str, pa: str) -> None:
    """Where the Gaussian radius is given at all, it is that of the closed form."""
    with within():
        done = run(
            *("radius", f"--noise=gaussian(sigma={sigma})", f"--norm={norm}"),
            *(f"--dim={dim}", f"--pa={pa}", "--json"),
        )
    if check_answered(done):
        p, d, spread = float(norm), int(float(dim)), parse(f"gaussian(sigma={sigma})").sigma
        true = spread * max(float(ndtri(float(pa))), 0.0) * d ** min(0.0, 1 / p - 0.5)
        answer = json.loads(done.out)
        proved = float(answer["proved"])
        assert proved <= true * (1 + 1e-9) or math.isclose(proved, true, abs_tol=1e-300)
        assert float(answer["searched"]) >= true * (1 - 1e-6)


GAUSSIANS = (mostly("1", "0.25"), mostly("1", "2", "inf"), mostly("1", "3072"), mostly("0.9"))
test_gaussian_radius = drawn(150)(given(*GAUSSIANS)(check_gaussian))
test_gaussian_radius_at_length = at_length(5000)(given(*GAUSSIANS)(check_gaussian))


def check_show(law: str) -> None:
    """`noise show` knows a noise exactly where it can be read."""
    with within():
        answered = check_answered(run("noise", "show", law))
    if answered:
        assert parse(law).text


test_show = drawn(100)(given(noise() | words(30))(check_show))
test_show_at_length = at_length(3000)(given(noise() | words(60))(check_show))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--samples", "--particles", "--iterations", "--alpha", "--seed"),
    ],
)
@drawn(40)
@given(data=st.data())
def test_montecarlo_settings(arguments: tuple[str, ...], data: st.DataObject) -> None:
    """Odd settings of the sampled engine."""
    given_ = [f"{name}={data.draw(mostly('10', '3'))}" for name in arguments]
    with within():
        done = run(
            *("radius", "--noise=gaussian(sigma=1)", "--norm=2", "--dim=3", "--pa=0.9", "--json"),
            *("--engine=montecarlo", *given_),
        )
    check_answered(done)


@drawn(40)
@given(log=st.binary(max_size=200) | words(100).map(str.encode), data=st.data())
def test_recertify(
    log: bytes, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A log of any content."""
    path = tmp_path_factory.getbasetemp() / "log.tsv"
    row = "\t".join(data.draw(mostly("1", "0")) for _ in range(6))
    head = "idx\tlabel\tpredict\tradius\tcorrect\ttime\n"
    path.write_bytes(data.draw(st.sampled_from((log, f"{head}{row}\n".encode()))))
    with within():
        done = run("recertify", path, "--noise=gaussian(sigma=1)", "--norm=1", "--dim=3")
    check_answered(done)


@pytest.mark.parametrize("beta", ["1e300", "1e-300", "nan", "inf", "-1", "0", "", "x"])
@pytest.mark.parametrize("question", ["radius", "curve"])
def test_the_explorer_refuses_in_one_line(beta: str, question: str) -> None:
    query = {"family": "gennorm", "beta": beta, "sigma": "1", "norm": "2", "dim": "10", "pa": "0.9"}
    with pytest.raises(UnicrError, match="beta") as caught:
        answer(question, query)
    assert "\n" not in str(caught.value)
