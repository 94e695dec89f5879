"""Norms: spellings, values against numpy, refusals."""

import math

import numpy as np
import pytest

from unicr.errors import SpecError
from unicr.norms import Norm, l1, l2, linf, parse_norm


@pytest.mark.parametrize(
    ("text", "p"),
    [
        ("1", 1.0),
        ("2", 2.0),
        ("inf", math.inf),
        ("0.5", 0.5),
        ("L2", 2.0),
        ("Linf", math.inf),
        ("l1", 1.0),
        ("l_2", 2.0),
        ("∞", math.inf),
        (1.5, 1.5),
        (math.inf, math.inf),
        (l2, 2.0),
    ],
)
def test_spellings(text: str | float | Norm, p: float) -> None:
    assert parse_norm(text) == Norm(p)


@pytest.mark.parametrize("text", ["", "two", "0", "-1", "nan", "L", "1,2"])
def test_refused_spellings(text: str) -> None:
    with pytest.raises(SpecError, match=r"norm"):
        parse_norm(text)


def test_values_against_numpy() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    for p in (1, 1.5, 2, 3, 10):
        assert Norm(p)(x) == pytest.approx(np.linalg.norm(x.ravel(), p), rel=1e-12)
    assert linf(x) == np.abs(x).max()
    assert Norm(0.5)(x) == pytest.approx(np.sum(np.sqrt(np.abs(x))) ** 2, rel=1e-12)


def test_extreme_values_neither_overflow_nor_underflow() -> None:
    assert Norm(10)(np.full(4, 1e200)) == pytest.approx(4**0.1 * 1e200)
    assert l2(np.full(4, 1e-200)) == pytest.approx(2e-200)
    assert l1(np.zeros(3)) == 0
    assert l2(np.zeros(0)) == 0


def test_text_reads_back() -> None:
    for norm in (l1, l2, linf, Norm(0.5), Norm(1 / 3)):
        assert parse_norm(norm.text) == norm
        assert parse_norm(str(norm)) == norm
