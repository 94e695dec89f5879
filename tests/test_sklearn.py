"""The estimator against scikit-learn's own checks, and against the classifier that it wraps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

pytest.importorskip("sklearn")

from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from unicr.sklearn import SmoothedClassifier


def test_the_checks_of_scikit_learn() -> None:
    """All that apply to every estimator."""
    check_estimator(SmoothedClassifier(samples=100, seed=0), on_skip=None)


def test_shares_of_votes_are_the_probabilities_of_a_linear_model() -> None:
    """Under Gaussian noise a linear model's vote has a closed form, Φ(margin / (σ‖w‖))."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 3))
    labels = np.where(rows @ [1.0, -2.0, 0.5] > 0, "yes", "no")
    samples = 4000
    model = SmoothedClassifier(noise="gaussian(sigma=0.5)", samples=samples, seed=0).fit(
        rows, labels
    )
    weight, bias = model.estimator_.coef_[0], model.estimator_.intercept_[0]
    wanted = special.ndtr((rows @ weight + bias) / (0.5 * np.linalg.norm(weight)))
    given = model.predict_proba(rows)[:, 1]
    # false alarm: 200 rows beyond 6 standard deviations of a share of votes, below 1e-6
    assert np.all(np.abs(given - wanted) <= 6 * np.sqrt(0.25 / samples))
    found = model.certify(rows[:5], n0=100, n=2000)
    assert set(found.to_dict()["class"]) <= {"yes", "no", None}
    margin = np.abs(rows[:5] @ weight + bias) / np.linalg.norm(weight)
    assert np.all(found.radius() <= margin)


def test_a_pipeline_a_search_and_cross_validation() -> None:
    rows, labels = load_iris(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), SmoothedClassifier(samples=60, seed=0))
    assert cross_val_score(pipe, rows, labels, cv=3).mean() > 0.85
    grid: dict[str, Any] = {
        "smoothedclassifier__noise": ["gaussian(sigma=0.1)", "gaussian(sigma=3)"]
    }
    search = GridSearchCV(pipe, grid, cv=3).fit(rows, labels)
    assert search.best_params_ == {"smoothedclassifier__noise": "gaussian(sigma=0.1)"}
