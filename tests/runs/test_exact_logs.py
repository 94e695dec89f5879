"""Numbers of published logs on their way in: none is read larger than it was, none is lost."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from unicr import noise
from unicr.norms import Norm, l1, l2, linf
from unicr.radius import certified_radius
from unicr.runs import LogRow, paired, read_intervals, read_log, recertify, recertify_two

HEAD = "idx label predict radius correct time"


def log(path: Path, *lines: str, head: str = HEAD) -> list[LogRow]:
    path.write_text("".join(line.replace(" ", "\t") + "\n" for line in (head, *lines)))
    return read_log(path)


def row(**values: object) -> LogRow:
    given = {"idx": 0, "label": 1, "predict": 1, "radius": 0.0, "correct": True, "time": ""}
    return LogRow(**given | values)  # type: ignore[arg-type]


def test_half_of_the_last_printed_digit_is_taken_off(tmp_path: Path) -> None:
    rows = log(tmp_path / "a", "0 1 1 1.23 1 0", "1 1 1 0.7 1 0", "2 1 1 0 1 0", "3 1 1 2 1 0")
    assert [one.radius for one in rows] == pytest.approx([1.225, 0.695, 0.0, 1.995], abs=1e-15)
    assert [one.radius_most for one in rows] == pytest.approx([1.235, 0.705, 0.005, 2.005])
    for one, true in zip(rows, (1.2251, 0.6951, 0.0, 1.9951), strict=True):
        assert one.radius <= true
    rows = log(tmp_path / "b", "0 1 1 0.912 1 0", "1 1 1 12.3 1 0", "2 1 1 0.0456 1 0")
    # three digits or four decimals: the coarser reading of each number counts
    assert [one.radius for one in rows] == pytest.approx([0.9115, 12.25, 0.04555], abs=1e-12)
    head = f"{HEAD} p_A_bar"
    rows = log(tmp_path / "c", "0 1 1 1.2 1 0 0.987", "1 1 1 1.2 1 0 0.99", head=head)
    assert [one.p_a for one in rows] == pytest.approx([0.9865, 0.9895], abs=1e-15)


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, math.inf])
def test_a_gaussian_radius_is_carried_to_itself_and_to_the_closed_form(p: float) -> None:
    """σΦ⁻¹(p_A)·d^−(1/2 − 1/p)₊ in each norm: Φ⁻¹(p_A) cancels, so a radius tells every other."""
    law, dim, norm = noise.gaussian(sigma=0.25), 784, Norm(p)
    for r in (0.01, 0.3, 1.1 / math.sqrt(dim)):
        least = r * dim ** max(0.0, 0.5 - 1 / p)  # in ℓ2
        for other in (norm, l1, l2, linf):
            truth = least / dim ** max(0.0, 0.5 - 1 / other.p)
            if least / 0.25 > 6.5:  # more than any votes give: refused
                continue
            (moved,) = recertify([row(radius=r, radius_most=r)], law, other, dim, origin=norm)
            assert truth * (1 - 1e-9) <= moved.radius <= truth


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, math.inf])
def test_a_radius_of_other_noise_is_carried_by_the_one_coordinate_that_it_must_resist(
    p: float,
) -> None:
    """The half-space of one coordinate has p_A = F(r): so much at least was known, in any norm."""
    law, dim = noise.laplace(sigma=1), 50
    for r in (0.1, 0.7, 2.0):
        (moved,) = recertify([row(radius=r, radius_most=r)], law, l1, dim, origin=Norm(p))
        assert r * (1 - 5e-4) <= moved.radius <= r * (1 + 1e-12)


def test_votes_and_bounds_of_a_log_count_as_they_are() -> None:
    law, n, alpha = noise.gaussian(sigma=1), 1000, 0.001
    votes = row(radius=9.0, p_a=0.9, count=950)
    abstained = row(idx=1, predict=-1, radius=9.0, correct=False, count=950)
    first, second = recertify([votes, abstained], law, l2, 3, n=n, alpha=alpha)
    bound = float(special.betaincinv(950, 51, alpha))
    assert first.radius == pytest.approx(stats.norm.ppf(bound), rel=1e-9)
    assert (second.radius, second.predict) == (0.0, -1)
    (told,) = recertify([row(p_a=0.9)], law, l2, 3)
    assert told.radius == pytest.approx(stats.norm.ppf(0.9), rel=1e-12)
    (both,) = recertify([row(radius=0.5, p_a=0.6)], law, l2, 3)
    assert both.radius == pytest.approx(0.5, rel=1e-9)  # more than Φ⁻¹(.6) = .253
    (other,) = recertify([row(p_a=0.9, predict=-1)], noise.laplace(scale=1), l1, 3)
    assert other.radius == 0.0


def test_a_printed_radius_is_the_least_that_a_count_gives() -> None:
    """Φ⁻¹ of Clopper–Pearson's bounds of 96 … 100 of 100 votes: what lies between them is none."""
    law, n, alpha = noise.gaussian(sigma=1), 100, 0.001
    gives = [float(stats.norm.ppf(special.betaincinv(k, n - k + 1, alpha))) for k in range(96, 100)]
    low, high = gives[1] - 1e-3, gives[2] + 1e-3
    (found,) = recertify([row(radius=low, radius_most=high)], law, l2, 3, n=n, alpha=alpha)
    assert found.radius == pytest.approx(gives[1], rel=1e-9)


def intervals(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(("x disttype gaussian", "x std 0.5", *lines)) + "\n")
    return path


def test_of_two_samplings_the_smaller_bound_counts(tmp_path: Path) -> None:
    path = intervals(tmp_path / "a", "o 0 0.9 0.95", "o 1 0.4 0.6", "o 0 0.8 0.99", "o 2 0.5 0.7")
    rows = read_intervals(path)
    assert [(one.idx, one.p_a, one.predict) for one in rows] == [
        (0, 0.8, 0), (1, 0.4, -1), (2, 0.5, -1),
    ]  # fmt: skip
    other = read_intervals(intervals(tmp_path / "b", "o 0 0.7 0.9"))
    assert [one.q_a for one in paired(rows, other)] == [0.7, 0.0, 0.0]


def test_two_bounds_of_a_log_certify_no_abstention() -> None:
    law = noise.l1_exp(k=1, j=0, scale=1, dim=6)
    rows = [
        row(p_a=0.9, q_a=0.9),
        row(idx=1, predict=-1, correct=False, p_a=0.9, q_a=0.9),
        row(idx=2, p_a=0.5, q_a=1.0),
    ]
    found = recertify_two(rows, law, l1, 0.5)
    assert found[0].radius >= certified_radius(law, 1, 6, p_a=0.9).proved * (1 - 5e-4) > 0
    assert [(one.radius, one.predict) for one in found[1:]] == [(0.0, -1), (0.0, -1)]
    (wide,) = recertify_two(rows[:1], law, linf, 0.5)
    assert wide.radius == pytest.approx(found[0].radius / 6, rel=1e-12)


def test_float32_arrays_are_read_one_unit_lower(tmp_path: Path) -> None:
    """A double just below a float32 may have been stored as it."""
    np.save(tmp_path / "labels.npy", np.array([1]))
    np.save(tmp_path / "preds.npy", np.array([[0.1, 0.9]]))
    np.save(tmp_path / "prob_lb.npy", np.array([0.9], np.float32))
    np.save(tmp_path / "radius_l2.npy", np.array([0.7], np.float32))
    (one,) = read_log(tmp_path)
    for value, stored in ((one.p_a, np.float32(0.9)), (one.radius, np.float32(0.7))):
        assert value is not None
        assert value == float(np.nextafter(stored, np.float32(0)))
