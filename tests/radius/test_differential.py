"""Theorem (g) against the published integrals and, for log-concave noise, the quantile."""

import math

import numpy as np
import pytest
from scipy import integrate, special

from tests.radius.test_falsify import random_density
from unicr import noise
from unicr.radius._differential import differential_l1


def yang_integral(beta: float, p_a: float) -> float:
    c0 = special.gammaincinv(1 / beta, 1 - 2 * (1 - p_a)) ** (1 / beta)
    return float(integrate.quad(lambda c: 1 / math.expm1(c**beta), c0, math.inf, limit=500)[0])


@pytest.mark.parametrize("beta", [0.5, 0.75, 0.9])
def test_general_normal_is_yangs_integral(beta: float) -> None:
    """R = λ∫ dc/(e^{c^s} − 1), minus its value at p = 1/2 where the radius starts."""
    one = noise.gennorm(beta=beta, scale=1)
    for p_a in (0.6, 0.9, 0.99):
        c0 = float(one.isf(1 - p_a))
        truth = integrate.quad(lambda q: 1 / (_score_mean(one, q)), 1 - p_a, 0.5, limit=200)[0]
        got = differential_l1(one, p_a, 1 - p_a)
        assert c0 > 0
        assert truth * (1 - 3e-3) <= got <= truth * (1 + 1e-9)


def _score_mean(one: noise.Family, q: float) -> float:
    """Largest mean score over a set of mass q: scores are largest just above zero."""
    edge = float(one.ppf(0.5 + q))
    return float(one.pdf(0.0) - one.pdf(edge))


@pytest.mark.parametrize(("p_a", "value"), [(0.6, 0.0977), (0.9, 0.569), (0.99, 1.047)])
def test_published_anchors(p_a: float, value: float) -> None:
    got = differential_l1(noise.gennorm(beta=0.75, sigma=1), p_a, 1 - p_a)
    assert got == pytest.approx(value, rel=2e-3)


@pytest.mark.parametrize(
    "spec", ["gaussian(sigma=1)", "laplace(sigma=1)", "sech(sigma=1)", "uniform(sigma=1)"]
)
def test_log_concave_gives_the_quantile(spec: str) -> None:
    one = noise.parse(spec)
    assert isinstance(one, noise.IID)
    for p_a, p_b in ((0.6, 0.4), (0.9, 0.1), (0.999, 0.001), (0.7, 0.1), (0.4, 0.2)):
        truth = 0.5 * float(one.ppf(p_a) - one.ppf(p_b))
        got = differential_l1(one, p_a, p_b)
        assert truth * (1 - 6e-3) <= got <= truth * (1 + 1e-9)


def test_pareto_closed_form() -> None:
    a, p_a = 3.0, 0.9
    b = a / (a + 1)
    x = 2 * p_a - 1
    truth = x / a * float(special.hyp2f1(1, b, b + 1, x ** (1 + 1 / a)))
    got = differential_l1(noise.pareto(beta=a, scale=1), p_a, 1 - p_a)
    assert truth * (1 - 3e-3) <= got <= truth * (1 + 1e-9)


def test_the_edges_of_a_hole_are_jumps() -> None:
    """exp(−|x|) outside (−1, 1): the score is 1 on x > 1, and p falls by 1/2 at −1, so that
    Φ(q) = 1/2 + q and R = ∫ dq/Φ = −log(3/2 − p_A). Without the jump it was 3.749 at p_A = .99.
    """
    one = noise.from_density(lambda x: np.where(np.abs(x) < 1, -np.inf, -np.abs(x)))
    for p_a in (0.6, 0.9, 0.99):
        truth = -math.log(1.5 - p_a)
        got = differential_l1(one, p_a, 1 - p_a)
        assert truth * (1 - 5e-3) <= got <= truth * (1 + 1e-6)


def test_gumbel_takes_the_worse_sign() -> None:
    one = noise.parse("scipy.gumbel_r(0, 1)")
    assert isinstance(one, noise.IID)

    def rate(q: float) -> float:
        return max(float(one.pdf(one.ppf(q))), float(one.pdf(one.isf(q))))

    truth = integrate.quad(lambda q: 1 / rate(q), 0.1, 0.5)[0]
    got = differential_l1(one, 0.9, 0.1)
    assert truth * (1 - 5e-3) <= got <= truth * (1 + 1e-6)


def test_a_density_without_a_top_proves_nothing() -> None:
    """It is infinite at its end, and moves mass there at any rate; warnings are errors here."""
    pole = random_density(np.random.default_rng(124)).noise()
    assert np.isinf(pole.pdf(np.asarray(pole.support[0])))
    assert differential_l1(pole, 0.9, 0.1) == 0.0
