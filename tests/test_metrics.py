"""Metrics against hand counts and numerical integration."""

import math

import numpy as np
import pytest
from scipy import stats

from unicr.errors import UnicrError
from unicr.metrics import Scores, accuracy_curve, best_of, envelope, robustness_score


def scores(radius: list[float], correct: list[int], **more: object) -> Scores:
    arrays = [np.array(v, dtype=float) for v in (radius, correct)]
    abstained = np.array([float(r == 0 and not c) for r, c in zip(radius, correct, strict=True)])
    settings = {"name": "run", "norm": "2", "alpha": 0.001, **more}
    return Scores(radius=arrays[0], counted=arrays[1], abstained=abstained, **settings)  # type: ignore[arg-type]


def test_hand_counted() -> None:
    one = scores([0.5, 1.0, 2.0, 0.0], [1, 1, 0, 0])
    assert one.certified_accuracy(0) == 0.5
    assert one.certified_accuracy(0.5) == 0.5
    assert one.certified_accuracy(0.51) == 0.25
    assert one.certified_accuracy(3) == 0
    assert one.average_radius == pytest.approx(1.5 / 4)
    assert one.abstention == 0.25


def test_score_of_one_run_is_its_average_radius() -> None:
    rng = np.random.default_rng(0)
    one = scores(rng.exponential(size=200).tolist(), (rng.random(200) < 0.8).astype(int).tolist())
    assert robustness_score([one]) == pytest.approx(one.average_radius)


def test_score_is_the_area_under_the_envelope() -> None:
    rng = np.random.default_rng(1)
    runs = [
        scores((s * rng.exponential(size=300)).tolist(), (rng.random(300) < a).astype(int).tolist())
        for s, a in ((0.3, 0.95), (0.7, 0.8), (1.5, 0.5))
    ]
    grid = np.linspace(0, 30, 600_001)
    heights = envelope(runs, grid)
    area = np.sum((heights[1:] + heights[:-1]) / 2 * np.diff(grid))
    assert robustness_score(runs) == pytest.approx(area, rel=1e-3)
    best = best_of(runs)
    assert best.average_radius == pytest.approx(robustness_score(runs), rel=1e-12)
    radii = np.linspace(0, 5, 1001)
    assert accuracy_curve(best, radii) == pytest.approx(envelope(runs, radii), abs=1e-12)
    with pytest.raises(UnicrError, match="same number of inputs"):
        best_of([*runs, scores([1.0], [1])])
    assert robustness_score(runs) >= max(run.average_radius for run in runs)


def test_curve_matches_single_values() -> None:
    one = scores([0.5, 1.0, 2.0, 0.0, 1.0], [1, 1, 0, 0, 1])
    radii = np.array([0.0, 0.5, 0.75, 1.0, 1.5])
    expected = [one.certified_accuracy(float(r)) for r in radii]
    np.testing.assert_allclose(accuracy_curve(one, radii), expected)


def test_accuracy_bound_is_the_exact_binomial_quantile() -> None:
    one = scores([1.0] * 500, [1] * 500)
    lost = round((1 - one.accuracy_bound(0.5, failure=0.001)) * 500)
    assert stats.binom.sf(lost, 500, 0.001) <= 0.001
    assert stats.binom.sf(lost - 1, 500, 0.001) > 0.001
    with pytest.raises(UnicrError, match="alpha"):
        scores([1.0], [1], alpha=None).accuracy_bound(0.5)


def test_refusals() -> None:
    with pytest.raises(UnicrError, match="no results"):
        scores([], [])
    with pytest.raises(UnicrError, match="at least one"):
        robustness_score([])
    with pytest.raises(UnicrError, match="different norms"):
        robustness_score([scores([1.0], [1]), scores([1.0], [1], norm="inf")])


def test_infinite_and_empty_radii() -> None:
    assert robustness_score([scores([math.inf], [1])]) == math.inf
    assert robustness_score([scores([0.0, 0.0], [1, 0])]) == 0
