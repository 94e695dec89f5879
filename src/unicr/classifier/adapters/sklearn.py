"""scikit-learn estimators, or any object with `.predict`; labels are places in `classes_`."""

from __future__ import annotations

import hashlib
import pickle
import warnings
from typing import Any

import numpy as np

from unicr.classifier._base import Classifier
from unicr.classifier._load import Adapter, ModelAsked, check_trusted, with_ending
from unicr.errors import ModelError, foreign
from unicr.extras import require, torch
from unicr.files import file_digest


class SklearnClassifier(Classifier):
    """Labels from an estimator that takes rows of features; inputs are flattened."""

    def __init__(self, estimator: Any, *, name: str | None = None, digest: str | None = None):
        known = getattr(estimator, "classes_", None)
        values = None if known is None else np.asarray(known)
        super().__init__(
            name=type(estimator).__name__ if name is None else name,
            digest=_digest(estimator) if digest is None else digest,
            num_classes=None if values is None else len(values),
            classes=None if values is None else tuple(values.tolist()),
        )
        self.estimator = estimator
        names = getattr(estimator, "feature_names_in_", None)
        self.features = None if names is None else tuple(map(str, names))
        self._values = values
        self._order = np.argsort(np.zeros(0) if values is None else values)

    def predict(self, batch: torch.Tensor) -> torch.Tensor:
        rows = batch.detach().cpu().flatten(1).numpy()
        with foreign(ModelError, f"{self.name} failed"), warnings.catch_warnings():
            # columns were matched by name before (`match_data`), so that rows need none here
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            given = np.asarray(self.estimator.predict(self._table(rows)))
        if self._values is None:
            if given.dtype.kind not in "biu":
                raise ModelError(
                    f"{self.name} has no classes_ and predicts {given.dtype} values: use a "
                    "classifier, or a function that turns the values into labels"
                )
            return self._labels(torch.from_numpy(given), len(rows))
        found = np.searchsorted(self._values, given, sorter=self._order)
        places = self._order[np.minimum(found, len(self._values) - 1)]
        if given.shape != (len(rows),) or not np.array_equal(self._values[places], given):
            raise ModelError(f"{self.name} returned labels that are not in its classes_")
        return torch.from_numpy(places.astype(np.int64))

    def _table(self, rows: Any) -> Any:
        """The rows as the estimator was fitted: a frame with its columns where it knows names."""
        if self.features is None or rows.shape[1] != len(self.features):
            return rows
        try:
            import pandas
        except ModuleNotFoundError:
            return rows
        return pandas.DataFrame(rows, columns=list(self.features), copy=False)


def _digest(estimator: Any) -> str:
    try:
        return hashlib.sha256(pickle.dumps(estimator, protocol=4)).hexdigest()
    except Exception:
        return f"unhashable:{type(estimator).__name__}"


def load_file(asked: ModelAsked) -> Classifier:
    """The estimator of a joblib or pickle file, which can run code of its author."""
    path = asked.path
    check_trusted(path, asked.trust, "a pickle", ".onnx")
    estimator = require("joblib", "sklearn").load(path)
    if not hasattr(estimator, "predict"):
        raise ModelError(f"{path} contains {type(estimator).__name__}, which has no method predict")
    return SklearnClassifier(estimator, name=asked.name, digest=file_digest(path))


ADAPTERS = (
    Adapter(".joblib/.pkl (with trust)", with_ending(".joblib", ".pkl", ".pickle"), load_file),
    Adapter(
        "",
        lambda asked: hasattr(asked.thing, "predict"),
        lambda asked: SklearnClassifier(asked.thing, name=asked.spec),
        rank=1,
    ),
)
