"""The smoothed classifier as a scikit-learn estimator: in pipelines, searches, cross-validation.

`fit` trains any classifier of scikit-learn on noisy rows, `predict_proba` gives the shares of the
votes, `certify` the certificates. Needs the extra `sklearn`.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from unicr.classifier import SklearnClassifier
from unicr.extras import torch
from unicr.noise import Noise, parse
from unicr.norms import Norm
from unicr.smoothed import SmoothedClassifier as _Smoothed
from unicr.smoothing import Certificates

STREAM = 1 << 32  # the noise of training comes from another stream than that of the votes


class SmoothedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The class that `estimator` most often gives to a row plus noise.

    Parameters
    ----------
    estimator
        A classifier of scikit-learn; logistic regression where None.
    noise
        A noise of `unicr.noise`, or its text. Columns should be of one scale (StandardScaler).
    samples
        How many noisy copies vote in `predict` and `predict_proba`.
    augment
        How many noisy copies of each row `fit` learns from; 0 learns from the rows as they are.
    seed
        Fixes the noise of training and of the votes.
    """

    def __init__(
        self,
        estimator: Any = None,
        noise: Noise | str = "gaussian(sigma=0.25)",
        *,
        samples: int = 1000,
        augment: int = 1,
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.noise = noise
        self.samples = samples
        self.augment = augment
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike) -> SmoothedClassifier:
        """Learn from noisy copies of the rows."""
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        law = self._law()
        noisy = [
            rows
            + law.sample(len(rows), rows.shape[1], seed=self.seed, input_index=STREAM + i).numpy()
            for i in range(self.augment)
        ]
        base = LogisticRegression() if self.estimator is None else clone(self.estimator)
        self.estimator_ = base.fit(
            np.concatenate(noisy) if noisy else rows, np.tile(labels, max(self.augment, 1))
        )
        self.smoothed_ = _Smoothed(
            SklearnClassifier(self.estimator_), law, seed=self.seed, input_shape=(rows.shape[1],)
        )
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The share of the votes that each class gets (no bound: see `certify`).

        The noise depends on the row alone, so that its order among others changes nothing.
        """
        rows = self._rows(X)
        smoothed, n = self.smoothed_, self.samples
        counts = [smoothed.votes(x, n, start=0, input_index=_stream(x)) for x in rows]
        votes = np.zeros((len(counts), len(self.classes_)))
        for into, some in zip(votes, counts, strict=True):
            into[: len(some)] = some
        return votes / self.samples

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class with most votes."""
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(1)]

    def certify(
        self, X: ArrayLike, norm: Norm | float | str = 2, *, n: int = 100_000, **options: Any
    ) -> Certificates:
        """Certificates of the rows: a table, whose column `class` names the class.

        `options` are those of `unicr.SmoothedClassifier.certify`. Radii are in the units of X.
        """
        rows = self._rows(X)
        return self.smoothed_.certify(rows, norm, n=n, **options)

    def _rows(self, X: ArrayLike) -> torch.Tensor:
        check_is_fitted(self)
        return torch.from_numpy(validate_data(self, X, dtype=np.float32, reset=False))

    def _law(self) -> Noise:
        return self.noise if isinstance(self.noise, Noise) else parse(self.noise)


def _stream(row: torch.Tensor) -> int:
    """A number of a noise stream that belongs to the values of one row."""
    return int.from_bytes(hashlib.blake2b(row.numpy().tobytes(), digest_size=4).digest(), "big")
