"""Numbers on their way out and in: no radius is printed larger, none is read larger than it was."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from unicr import noise
from unicr.metrics import Scores, accuracy_curve, best_of, robustness_score
from unicr.norms import Norm, l1, l2, linf
from unicr.radius import certified_radius, round_down
from unicr.runs import (
    LogRow,
    floor_decimal,
    paired,
    read_intervals,
    read_log,
    recertify,
    recertify_two,
)
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


def test_tables_round_lower_bounds_down() -> None:
    for name in ("radius", "radius_l2", "proved_linf", "p_a"):
        assert cell(name, 0.12345678) == "0.123456"
        assert cell(name, 0.99999999) == "0.999999"
    assert cell("seconds", 0.12345678) == "0.123457"


def log(
    path: Path, *lines: str, head: str = "idx label predict radius correct time"
) -> list[LogRow]:
    rows = [head, *lines]
    path.write_text("".join(line.replace(" ", "\t") + "\n" for line in rows))
    return read_log(path)


def test_half_of_the_last_printed_digit_is_taken_off(tmp_path: Path) -> None:
    rows = log(tmp_path / "a", "0 1 1 1.23 1 0", "1 1 1 0.7 1 0", "2 1 1 0 1 0", "3 1 1 2 1 0")
    assert [row.radius for row in rows] == pytest.approx([1.225, 0.695, 0.0, 1.995], abs=1e-15)
    for row, true in zip(rows, (1.2251, 0.6951, 0.0, 1.9951), strict=True):
        assert row.radius <= true
    rows = log(tmp_path / "b", "0 1 1 0.912 1 0", "1 1 1 12.3 1 0", "2 1 1 0.0456 1 0")
    # three digits or four decimals: the coarser reading of each number counts
    assert [row.radius for row in rows] == pytest.approx([0.9115, 12.25, 0.04555], abs=1e-12)
    head = "idx label predict radius correct time p_A_bar"
    rows = log(tmp_path / "c", "0 1 1 1.2 1 0 0.987", "1 1 1 1.2 1 0 0.99", head=head)
    assert [row.p_a for row in rows] == pytest.approx([0.9865, 0.9895], abs=1e-15)


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, math.inf])
def test_a_gaussian_radius_is_carried_to_itself_and_to_the_closed_form(p: float) -> None:
    """Φ⁻¹(p_A) is known from the radius in any norm, so every other radius is: no more, no less."""
    law, dim, norm = noise.gaussian(sigma=0.25), 784, Norm(p)
    for p_a in (0.6, 0.99, 0.99999):
        r = certified_radius(law, norm, dim, p_a=p_a).proved
        row = LogRow(0, 1, 1, r, True, "")
        (same,) = recertify([row], law, norm, dim, origin=norm)
        assert r * (1 - 5e-4) <= same.radius <= r * (1 + 1e-12)
        for other in (l1, l2, linf):
            truth = certified_radius(law, other, dim, p_a=p_a).proved
            (moved,) = recertify([row], law, other, dim, origin=norm)
            assert truth * (1 - 5e-4) <= moved.radius <= truth * (1 + 1e-12)


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, math.inf])
def test_a_radius_of_other_noise_is_carried_by_the_one_coordinate_that_it_must_resist(
    p: float,
) -> None:
    """The half-space of one coordinate has p_A = F(r): so much at least was known, in any norm."""
    law, dim = noise.laplace(sigma=1), 50
    for r in (0.1, 0.7, 2.0):
        row = LogRow(0, 1, 1, r, True, "")
        (moved,) = recertify([row], law, l1, dim, origin=Norm(p))
        assert r * (1 - 5e-4) <= moved.radius <= r * (1 + 1e-12)


def test_votes_and_bounds_of_a_log_count_as_they_are() -> None:
    law, n, alpha = noise.gaussian(sigma=1), 1000, 0.001
    rows = [
        LogRow(0, 1, 1, 9.0, True, "", p_a=0.9, count=950),
        LogRow(1, 1, -1, 9.0, False, "", count=950),
    ]
    first, abstained = recertify(rows, law, l2, 3, n=n, alpha=alpha)
    bound = float(special.betaincinv(950, 51, alpha))
    assert stats.norm.ppf(bound) * (1 - 5e-4) <= first.radius <= stats.norm.ppf(bound)
    assert abstained.radius == 0.0
    told = LogRow(0, 1, 1, 0.5, True, "", p_a=0.9)
    (best,) = recertify([told], law, l2, 3)
    assert stats.norm.ppf(0.9) * (1 - 5e-4) <= best.radius <= stats.norm.ppf(0.9)
    (low,) = recertify([LogRow(0, 1, 1, 0.5, True, "", p_a=0.6)], law, l2, 3)
    assert 0.5 * (1 - 5e-4) <= low.radius <= 0.5


def intervals(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(("x disttype gaussian", "x std 0.5", *lines)) + "\n")
    return path


def test_of_two_samplings_the_smaller_bound_counts(tmp_path: Path) -> None:
    path = intervals(tmp_path / "a", "o 0 0.9 0.95", "o 1 0.4 0.6", "o 0 0.8 0.99", "o 2 0.5 0.7")
    rows = read_intervals(path)
    assert [(row.idx, row.p_a, row.predict) for row in rows] == [
        (0, 0.8, 0), (1, 0.4, -1), (2, 0.5, -1),
    ]  # fmt: skip
    other = read_intervals(intervals(tmp_path / "b", "o 0 0.7 0.9"))
    assert [row.q_a for row in paired(rows, other)] == [0.7, 0.0, 0.0]


def test_two_bounds_of_a_log_certify_no_abstention() -> None:
    law = noise.l1_exp(k=1, j=0, scale=1, dim=6)
    rows = [
        LogRow(0, 1, 1, 0.0, True, "", p_a=0.9, q_a=0.9),
        LogRow(1, 1, -1, 0.0, False, "", p_a=0.9, q_a=0.9),
        LogRow(2, 1, 1, 0.0, True, "", p_a=0.5, q_a=1.0),
    ]
    found = recertify_two(rows, law, l1, 0.5)
    assert found[0].radius >= certified_radius(law, 1, 6, p_a=0.9).proved * (1 - 5e-4) > 0
    assert [row.radius for row in found[1:]] == [0.0, 0.0]
    (wide,) = recertify_two(rows[:1], law, linf, 0.5)
    assert wide.radius == pytest.approx(found[0].radius / 6, rel=1e-12)


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
