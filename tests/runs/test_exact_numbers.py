"""Numbers on their way out: no radius is printed larger than it is, no score counts too much."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unicr.metrics import Scores, accuracy_curve, best_of, robustness_score
from unicr.radius import round_down
from unicr.runs import floor_decimal
from unicr.tables import cell

RNG = np.random.default_rng(5)
NUMBERS = [
    *RNG.random(200), *(10.0 ** RNG.uniform(-12, 12, 200)), 1.0, 0.5, 0.1, 0.3, 1e-300, 0.0,
    0.9999999, 9.9999995, 0.99999949999, 123456.5, 1.0000005, math.nextafter(1, 0), 2 / 3, 5e-7,
]  # fmt: skip


@pytest.mark.parametrize("digits", [1, 3, 6])
def test_a_radius_is_never_written_larger_and_hardly_smaller(digits: int) -> None:
    for value in map(float, NUMBERS):
        for text in (round_down(value, digits), floor_decimal(value, digits)):
            assert float(text) <= value
            assert float(text) >= value * (1 - 1.1 * 10.0 ** (1 - digits)) - 1e-300
    assert round_down(math.inf) == floor_decimal(math.inf) == "inf"


@pytest.mark.parametrize("digits", [1, 3, 6])
def test_negative_numbers_are_rounded_down_too(digits: int) -> None:
    """A difference of two scores may be negative: down is away from zero."""
    for value in (-float(one) for one in NUMBERS):
        for text in (round_down(value, digits), floor_decimal(value, digits)):
            assert float(text) <= value
            assert float(text) >= value * (1 + 1.1 * 10.0 ** (1 - digits)) - 1e-300
    assert round_down(-0.1234567, 3) == "-0.124"
    assert round_down(-9.9999999) == "-10"
    assert floor_decimal(-1.25, 1) == "-1.3"
    assert round_down(-math.inf) == floor_decimal(-math.inf) == "-inf"
    assert round_down(math.nan) == floor_decimal(math.nan) == "nan"


def test_tables_round_lower_bounds_down() -> None:
    for name in ("radius", "radius_l2", "proved_linf", "p_a"):
        assert cell(name, 0.12345678) == "0.123456"
        assert cell(name, 0.99999999) == "0.999999"
    assert cell("seconds", 0.12345678) == "0.123457"


def scores(radius: list[float], correct: list[int], alpha: float | None = None) -> Scores:
    n = len(radius)
    return Scores("run", "2", np.array(radius), np.array(correct), np.zeros(n), alpha)


def test_scores_count_correct_inputs_with_at_least_the_radius() -> None:
    one = scores([0.0, 0.5, 1.0, 2.0], [1, 1, 0, 1], alpha=0.25)
    assert [one.certified_accuracy(r) for r in (0.0, 0.5, 0.51, 2.0, 2.1)] == [
        0.75, 0.5, 0.25, 0.25, 0.0,
    ]  # fmt: skip
    assert accuracy_curve(one, np.array([0.0, 0.5, 0.51, 2.0, 2.1])).tolist() == [
        0.75, 0.5, 0.25, 0.25, 0.0,
    ]  # fmt: skip
    assert one.average_radius == 0.625
    # P(Binomial(4, ¼) > 2) = 13/256 > .05 ≥ P(> 3) = 1/256: three of four may be wrong
    assert one.accuracy_bound(0.0, failure=0.05) == 0.0
    assert one.accuracy_bound(0.0, failure=0.06) == 0.25
    other = scores([1.5, 0.1, 0.0, 0.0], [1, 1, 1, 0])
    assert robustness_score([one, other]) == pytest.approx(0.1 * 0.5 + 0.4 * 0.5 + 1.5 * 0.25)
    assert best_of([one, other]).average_radius == pytest.approx(robustness_score([one, other]))
