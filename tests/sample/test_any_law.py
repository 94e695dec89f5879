"""Laws that are no noise of this package: four functions and a density, with kinks, jumps and gaps.

Statistical tests have fixed keys; were the key drawn afresh, each would fail by chance with a
probability of at most 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from unicr.errors import NoiseError
from unicr.sample import Fill, choose_step, derive, integer_law

Function = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Law:
    pdf: Function
    cdf: Function
    sf: Function
    ppf: Function
    isf: Function
    breakpoints: tuple[float, ...] = ()
    text: str = "mine"

    def masses(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        """Only `cdf` knows."""


GAUSSIAN = Law(
    pdf=stats.norm.pdf,
    cdf=special.ndtr,
    sf=lambda x: special.ndtr(-np.asarray(x)),
    ppf=special.ndtri,
    isf=lambda u: -special.ndtri(u),
)


def skewed(left: float, breaks: tuple[float, ...] = ()) -> Law:
    """Two exponentials of different rate and mass `left` below 0: the density jumps there."""
    right = 1 - left

    def below(x: Any) -> Any:
        return left * np.exp(np.minimum(x, 0))

    def above(x: Any) -> Any:
        return right * np.exp(-np.maximum(x, 0) / 3)

    def ppf(u: Any) -> Any:
        return np.where(u < left, np.log(u / left), -3 * np.log1p((left - u) / right))

    def isf(v: Any) -> Any:
        return np.where(v < right, -3 * np.log(v / right), np.log1p((right - v) / left))

    return Law(
        pdf=lambda x: np.where(np.asarray(x) < 0, below(x), above(x) / 3),
        cdf=lambda x: np.where(np.asarray(x) < 0, below(x), 1 - above(x)),
        sf=lambda x: np.where(np.asarray(x) < 0, 1 - below(x), above(x)),
        ppf=ppf,
        isf=isf,
        breakpoints=breaks,
    )


def two_intervals(left: float) -> Law:
    """Uniform on [−2, −1] with mass `left`, on [1, 3] with the rest: a gap in the support."""
    right = 1 - left

    def low(x: Any) -> Any:
        return left * (np.clip(x, -2, -1) + 2)

    def high(x: Any) -> Any:
        return right * (3 - np.clip(x, 1, 3)) / 2

    def pdf(x: Any) -> Any:
        x = np.asarray(x)
        return left * ((x >= -2) & (x < -1)) + right / 2 * ((x >= 1) & (x < 3))

    return Law(
        pdf=pdf,
        cdf=lambda x: np.where(np.asarray(x) < 0, low(x), 1 - high(x)),
        sf=lambda x: np.where(np.asarray(x) < 0, 1 - low(x), high(x)),
        ppf=lambda u: np.where(u < left, -2 + u / left, 1 + 2 * (u - left) / right),
        isf=lambda v: np.where(v < right, 3 - 2 * v / right, -1 - (v - right) / left),
        breakpoints=(-2.0, -1.0, 1.0, 3.0),
    )


LAWS = {
    "Gaussian": GAUSSIAN,
    "listed jump": skewed(0.3, (0.0,)),
    "unlisted jump": skewed(0.3),
    "unlisted jump, upper half": skewed(0.61803),
    "gap": two_intervals(0.3),
    "gap, upper half": two_intervals(0.9),
    "gap at the median": two_intervals(0.5),
}


def draw(law: Law, n: int) -> NDArray[np.float64]:
    integers = integer_law(law, choose_step(law))
    out = np.empty(n)
    Fill(integers, [0.0], key=derive("any law"), step=integers.step, integers=False)(out, 0)
    return out


@pytest.mark.parametrize("name", LAWS)
def test_millions_of_draws_follow_the_law(name: str) -> None:
    """Kolmogorov, Anderson–Darling and tail counts; false alarm below 1e-6 altogether."""
    law, n = LAWS[name], 10**7 if name == "unlisted jump" else 10**6
    x = np.sort(draw(law, n))
    u, v = (np.maximum(tail(x), 1e-12) for tail in (law.cdf, law.sf))
    i = np.arange(1, n + 1)
    distance = max(np.max(i / n - u), np.max(u - (i - 1) / n))
    assert np.sqrt(n) * distance < 2.8, "Kolmogorov: P = 2 exp(-2 * 2.8^2) = 3e-7"
    anderson = -n - np.mean((2 * i - 1) * (np.log(u) + np.log(v[::-1])))
    assert anderson < 15, "P is about sqrt(3) P(chi2_1 > 30) = 8e-8"
    for k in range(1, 16):
        p = 2.0**-k
        for count in ((u < p).sum(), (v < p).sum()):
            two_sided = 2 * min(stats.binom.cdf(count, n, p), stats.binom.sf(count - 1, n, p))
            assert two_sided > 1e-8


@pytest.mark.parametrize("left", [0.3, 0.9, 0.5, 0.25, 1e-7])
def test_no_draw_falls_into_a_gap(left: float) -> None:
    x = draw(two_intervals(left), 10**6)
    assert np.all((x <= -1) | (x >= 1))
    assert x.min() >= -2
    assert x.max() <= 3


def shifted(x: Any) -> Any:
    return special.ndtr(np.asarray(x) + 2e-3)


@pytest.mark.parametrize(
    ("law", "reason"),
    [
        (replace(GAUSSIAN, cdf=shifted), "do not match"),
        (replace(GAUSSIAN, pdf=lambda x: 1.001 * stats.norm.pdf(x)), "do not match"),
        (replace(GAUSSIAN, pdf=lambda x: stats.norm.pdf(x, 0, 1.001)), "do not match"),
        (replace(GAUSSIAN, pdf=stats.laplace.pdf), "do not match"),
        (replace(GAUSSIAN, ppf=lambda u: 0 * u, isf=lambda u: 0 * u), "68 %"),
    ],
)
def test_functions_of_different_laws_are_refused(law: Law, reason: str) -> None:
    with pytest.raises(NoiseError, match=f"mine.*{reason}"):
        draw(law, 10)


def test_a_tail_that_cannot_be_reached_is_charged() -> None:
    """Quantiles that never go beyond −6, where a mass of 1e-9 lies, and a tail of power 1/4."""
    cut = replace(GAUSSIAN, ppf=lambda u: np.maximum(special.ndtri(u), -6.0))
    tau = integer_law(cut, 2.0**-24).tau
    assert tau >= special.ndtr(-6.0)
    assert tau == pytest.approx(special.ndtr(-6.0), rel=1e-4)
    heavy = Law(
        pdf=lambda x: 0.125 * (1 + np.abs(x)) ** -1.25,
        cdf=lambda x: (
            np.where(np.asarray(x) < 0, 0.5, 1 - 0.5 * (1 + np.abs(x)) ** -0.25)
            * np.where(np.asarray(x) < 0, (1 + np.abs(x)) ** -0.25, 1.0)
        ),
        sf=lambda x: (
            np.where(np.asarray(x) > 0, 0.5, 1 - 0.5 * (1 + np.abs(x)) ** -0.25)
            * np.where(np.asarray(x) > 0, (1 + np.abs(x)) ** -0.25, 1.0)
        ),
        ppf=lambda u: -np.expm1(-4 * np.log(2 * np.minimum(u, 1 - u))) * np.sign(0.5 - u),
        isf=lambda u: np.expm1(-4 * np.log(2 * np.minimum(u, 1 - u))) * np.sign(0.5 - u),
        breakpoints=(0.0,),
    )
    step = choose_step(heavy)
    beyond = 2 * float(heavy.sf(2.0**61 * step))
    assert integer_law(heavy, step).tau == pytest.approx(beyond, rel=1e-3)
    assert math.isclose(beyond, (2.0**61 * step) ** -0.25, rel_tol=1e-6)
