"""Datasets in NumPy's own files: `.npz` with named arrays, `.npy` with labels beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unicr.data._dataset import Dataset, from_arrays
from unicr.data._labels import array_of, read_labels
from unicr.data._reader import DataAsked, Reader, with_ending
from unicr.errors import DataError, listed
from unicr.files import check_unpacked

INPUT_NAMES = ("images", "x", "inputs", "data", "features", "x_test", "test_images", "arr_0")
LABEL_NAMES = ("labels", "label", "y", "targets", "target", "y_test", "test_labels", "arr_1")
TRAIN_INPUTS = ("x_train", "train_images")
TRAIN_LABELS = ("y_train", "train_labels")


def read_npz(asked: DataAsked) -> Dataset:
    """A `.npz` file; names such as images/labels, x/y, x_test/y_test are recognised."""
    path, train = asked.path, asked.split == "train"
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        names = {name.lower(): name for name in archive.files}
        if len(names) < len(archive.files):
            raise DataError(f"{path} has two arrays with the same name ({listed(archive.files)})")
        key = _find_first(names, (*TRAIN_INPUTS, *INPUT_NAMES) if train else INPUT_NAMES)
        label_key = _find_first(names, (*TRAIN_LABELS, *LABEL_NAMES) if train else LABEL_NAMES)
        if key is None and len(names) == 1:
            key = next(iter(names.values()))
        if key is None:
            raise DataError(
                f"{path} contains {listed(archive.files) or 'nothing'}, but an array with one of "
                f"these names is needed: {listed(INPUT_NAMES)}"
            )
        check_unpacked(path, archive.zip.infolist(), DataError)
        inputs = archive[key]
        labels = archive[label_key] if label_key is not None and not asked.labels else None
    return from_arrays(inputs, labels, name=path.name, source=f"{path}, array {key!r}")


def read_npy(asked: DataAsked) -> Dataset:
    """A `.npy` file of inputs, with the labels in a file beside it where there is one.

    Beside `x.npy` that is `x_labels.npy`, or the same name with images/inputs/x said as
    labels/labels/y.
    """
    path = asked.path
    beside = [] if asked.labels else [p for p in _beside(path) if p != path and p.is_file()]
    labels = read_labels(beside[0]) if beside else None
    return from_arrays(array_of(path), labels, name=path.name, source=str(path))


def _find_first(names: dict[str, str], among: tuple[str, ...]) -> str | None:
    return next((names[name] for name in among if name in names), None)


def _beside(path: Path) -> list[Path]:
    stem = path.stem
    swaps = [("images", "labels"), ("inputs", "labels"), ("data", "labels"), ("x_", "y_")]
    near = [path.with_name(f"{stem}_labels.npy"), path.with_name(f"{stem}.labels.npy")]
    near += [path.with_name(stem.replace(a, b) + ".npy") for a, b in swaps if a in stem]
    if stem.lower() == "x":
        near += [path.with_name("y.npy"), path.with_name("labels.npy")]
    return near


READERS = (
    Reader(".npz", with_ending(".npz"), read_npz),
    Reader(".npy", with_ending(".npy"), read_npy),
)
