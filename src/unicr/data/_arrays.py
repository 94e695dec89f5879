"""Datasets in NumPy's own files: `.npz` with named arrays, `.npy` with labels beside it."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unicr.data._dataset import Dataset, from_arrays, listed
from unicr.errors import DataError

INPUT_NAMES = ("images", "x", "inputs", "data", "features", "x_test", "test_images", "arr_0")
LABEL_NAMES = ("labels", "label", "y", "targets", "target", "y_test", "test_labels", "arr_1")
TRAIN_INPUTS = ("x_train", "train_images")
TRAIN_LABELS = ("y_train", "train_labels")


def read_npz(path: Path, labels: Path | None, split: str) -> Dataset:
    """A `.npz` file; names such as images/labels, x/y, x_test/y_test are recognised."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = {name.lower(): name for name in archive.files}
            train = split == "train"
            key = _first(names, (*TRAIN_INPUTS, *INPUT_NAMES) if train else INPUT_NAMES)
            label_key = _first(names, (*TRAIN_LABELS, *LABEL_NAMES) if train else LABEL_NAMES)
            if key is None and len(names) == 1:
                key = next(iter(names.values()))
            if key is None:
                raise DataError(
                    f"{path} holds {listed(archive.files) or 'nothing'}: no array named "
                    f"{listed(INPUT_NAMES)}"
                )
            inputs = archive[key]
            own = archive[label_key] if label_key is not None else None
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} cannot be read: {error}") from None
    return from_arrays(
        inputs,
        own if labels is None else read_labels(labels),
        name=path.name,
        source=f"{path}, array {key!r}",
    )


def read_npy(path: Path, labels: Path | None) -> Dataset:
    """A `.npy` file of inputs; labels come from `labels` or from a file beside it.

    Beside `x.npy` that is `x_labels.npy`, or the same name with images/inputs/x said as
    labels/labels/y.
    """
    if labels is None:
        labels = next((near for near in _beside(path) if near != path and near.is_file()), None)
    return from_arrays(
        _load(path, mmap=True),
        None if labels is None else read_labels(labels),
        name=path.name,
        source=str(path),
    )


def read_labels(path: Path) -> NDArray[Any]:
    """The labels of a `.npy` file, or of a text file with one label per line."""
    if path.suffix == ".npy":
        return _load(path)
    return np.array([line.strip() for line in path.read_text().splitlines()])


def _load(path: Path, mmap: bool = False) -> NDArray[Any]:
    try:
        loaded = np.load(path, allow_pickle=False, mmap_mode="r" if mmap else None)
    except (ValueError, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    if not isinstance(loaded, np.ndarray):
        raise DataError(f"{path} is an archive, not one array: name it .npz")
    return loaded


def _first(names: dict[str, str], among: tuple[str, ...]) -> str | None:
    return next((names[name] for name in among if name in names), None)


def _beside(path: Path) -> list[Path]:
    stem = path.stem
    swaps = [("images", "labels"), ("inputs", "labels"), ("data", "labels"), ("x_", "y_")]
    near = [path.with_name(f"{stem}_labels.npy"), path.with_name(f"{stem}.labels.npy")]
    near += [path.with_name(stem.replace(a, b) + ".npy") for a, b in swaps if a in stem]
    if stem.lower() == "x":
        near += [path.with_name("y.npy"), path.with_name("labels.npy")]
    return near
