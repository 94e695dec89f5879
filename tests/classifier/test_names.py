"""Columns and labels are matched by their names, never by their position."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from unicr.classifier import SklearnClassifier, check_fit, load_classifier, match_data
from unicr.data import Dataset, load_dataset
from unicr.errors import DataError, ModelError

NAMES = ("width", "height", "depth")
Fitted = tuple[LogisticRegression, np.ndarray, list[str]]


def write_table(path: Path, order: tuple[str, ...], rows: np.ndarray, labels: list[str]) -> Path:
    """A CSV file whose columns stand in this order."""
    columns = [NAMES.index(name) for name in order]
    lines = [
        ",".join([*(repr(float(row[i])) for i in columns), label])
        for row, label in zip(rows, labels, strict=True)
    ]
    path.write_text("\n".join([",".join([*order, "label"]), *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    """An estimator that knows its columns; the first one alone decides."""
    rows = np.random.default_rng(5).normal(size=(60, 3)) * [4, 1, 1]
    labels = ["large" if row[0] > 0 else "small" for row in rows]
    estimator = LogisticRegression(C=1e6).fit(rows, labels)
    assert estimator.score(rows, labels) == 1
    estimator.feature_names_in_ = np.array(NAMES, dtype=object)  # as a fit on a frame leaves it
    return estimator, rows, labels


def accuracy(estimator: LogisticRegression, data: Dataset) -> float:
    """The share of inputs that the estimator labels as the data does."""
    classifier = SklearnClassifier(estimator)
    matched = match_data(classifier, data)
    pairs = [matched[i] for i in range(len(matched))]
    answers = classifier.predict(torch.stack([x for x, _ in pairs]))
    return float(np.mean([int(a) == label for a, (_, label) in zip(answers, pairs, strict=True)]))


@pytest.mark.parametrize("order", [NAMES, NAMES[::-1], ("height", "depth", "width")])
def test_columns_in_any_order_give_the_same_labels(
    tmp_path: Path, fitted: Fitted, order: tuple[str, ...]
) -> None:
    estimator, rows, labels = fitted
    data = load_dataset(write_table(tmp_path / "t.csv", order, rows, labels))
    assert data.features == order
    assert accuracy(estimator, data) == 1  # the labels are separable by the first column


def test_a_column_that_the_model_does_not_know_is_left_out(tmp_path: Path, fitted: Fitted) -> None:
    estimator, rows, labels = fitted
    path = write_table(tmp_path / "t.csv", NAMES, rows, labels)
    head, *lines = path.read_text().splitlines()
    path.write_text("\n".join([f"number,{head}", *(f"{i},{x}" for i, x in enumerate(lines))]))
    assert accuracy(estimator, load_dataset(path)) > 0.9


def test_a_missing_column_is_refused_by_its_name(tmp_path: Path, fitted: Fitted) -> None:
    estimator, rows, labels = fitted
    data = load_dataset(write_table(tmp_path / "t.csv", NAMES[:2], rows, labels))
    with pytest.raises(DataError, match="no column depth"):
        match_data(SklearnClassifier(estimator), data)


def test_rows_without_names_raise_no_warning(fitted: Fitted) -> None:
    estimator, rows, _ = fitted
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SklearnClassifier(estimator).predict(torch.from_numpy(rows).float())


def words(labels: list[str]) -> Dataset:
    """Inputs with labels that are words."""
    return load_dataset(np.zeros((len(labels), 2), np.float32)).labelled(labels)


def ten_outputs(batch: torch.Tensor) -> torch.Tensor:
    """A model whose ten outputs have no names."""
    return torch.eye(10)[torch.full((len(batch),), 7)]


def test_words_that_do_not_cover_the_outputs_need_class_names() -> None:
    model = load_classifier(ten_outputs)
    with pytest.raises(ModelError, match=r"--classes"):
        check_fit(model, words(["cat", "dog"]))
    names = [f"c{i}" for i in range(10)]
    named = load_classifier(ten_outputs, classes=names)
    data = match_data(named, words(["c7", "c2"]))
    check_fit(named, data)
    assert [data[i][1] for i in range(2)] == [7, 2]


def test_class_names_come_from_a_file_too(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("\n".join(f"c{i}" for i in range(10)) + "\n")
    assert load_classifier(ten_outputs, classes=file).classes == tuple(f"c{i}" for i in range(10))


@pytest.mark.parametrize(
    ("classes", "message"),
    [(["a", "a"], "all different"), ("no-such-file", "no such file"), (["one"], "no such file")],
)
def test_wrong_class_names_are_refused(classes: str | list[str], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_classifier(ten_outputs, classes=classes)


def test_a_model_with_names_of_its_own_keeps_them(fitted: Fitted) -> None:
    with pytest.raises(ModelError, match=r"has its own class names, .*: large, small"):
        load_classifier(fitted[0], classes=["small", "large"])
    with pytest.raises(ModelError, match="2 outputs, but classes= has 3 names"):
        load_classifier(fitted[0], classes=["a", "b", "c"])


def test_words_name_the_classes_of_a_model_that_was_fitted_on_numbers(
    tmp_path: Path, fitted: Fitted
) -> None:
    _, rows, labels = fitted
    words = ["small", "large"]
    counted = LogisticRegression(C=1e6).fit(rows, [words.index(label) for label in labels])
    data = load_dataset(write_table(tmp_path / "t.csv", NAMES, rows, labels))
    with pytest.raises(DataError, match=r"classes 0, 1: name them .*--classes"):
        match_data(load_classifier(counted), data)
    named = load_classifier(counted, classes=words)
    matched = match_data(named, data)
    assert [matched[i][1] for i in range(6)] == [words.index(label) for label in labels[:6]]
    assert named.classes == ("small", "large")
    counted.classes_ = np.array([1, 2])
    with pytest.raises(ModelError, match="has its own class names"):
        load_classifier(counted, classes=words)
