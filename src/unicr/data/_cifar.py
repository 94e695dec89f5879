"""CIFAR-10 as its authors publish it: python batches (pickles) and binary batches.

The pickles are read by an unpickler that can build numpy arrays and plain values, nothing else.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unicr.data._dataset import Dataset, from_arrays
from unicr.errors import DataError

SHAPE = (3, 32, 32)
RECORD = 1 + 3072
CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
ALLOWED = {
    *((f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        if name == "_reconstruct":
            return _reconstruct
        return super().find_class(module, name)


def _reconstruct(kind: Any, shape: Any, code: Any) -> NDArray[Any]:
    """What numpy's own function of this name does for a plain array."""
    if kind is not np.ndarray:
        raise pickle.UnpicklingError("it asks for an array of another class")
    return np.ndarray.__new__(np.ndarray, shape, code)


def is_python_batch(path: Path) -> bool:
    """Whether a file is named like a CIFAR-10 python batch."""
    return path.name == "test_batch" or (
        path.name.startswith("data_batch_") and path.suffix == "" and path.name[-1:].isdigit()
    )


def find_batches(folder: Path, split: str) -> list[Path]:
    """The python or binary batch files of a split, also when they lie one folder deeper."""
    for inside in ("", "cifar-10-batches-py", "cifar-10-batches-bin"):
        for ending in ("", ".bin"):
            pattern = ("test_batch" if split == "test" else "data_batch_[1-9]") + ending
            found = sorted((folder / inside).glob(pattern))
            if found:
                return found
    return []


def read_batches(paths: list[Path], name: str) -> Dataset:
    """CIFAR-10 images of one or several batch files, in file order."""
    parts = [_binary(path) if path.suffix == ".bin" else _python(path) for path in paths]
    images = np.concatenate([part[0] for part in parts])
    labels = np.concatenate([part[1] for part in parts])
    source = ", ".join(map(str, paths))
    dataset = from_arrays(images, labels, name=name, source=source)
    if dataset.num_classes is not None and dataset.num_classes > len(CLASSES):
        raise DataError(f"{source}: a label is {dataset.num_classes - 1}, CIFAR-10 has 0 … 9")
    return replace(dataset, classes=CLASSES, num_classes=len(CLASSES))


def _binary(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    raw = np.fromfile(path, np.uint8)
    if not raw.size or raw.size % RECORD:
        raise DataError(f"{path} has {raw.size} bytes: not whole records of {RECORD}")
    rows = raw.reshape(-1, RECORD)
    return rows[:, 1:].reshape(-1, *SHAPE), rows[:, 0]


def _python(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        batch = _ArraysOnly(io.BytesIO(path.read_bytes()), encoding="bytes").load()
        named = {k.decode() if isinstance(k, bytes) else k: v for k, v in batch.items()}
        images = np.asarray(named["data"], np.uint8).reshape(-1, *SHAPE)
        labels = np.asarray(named["labels"], np.int64)
    except KeyError as error:
        raise DataError(f"{path} is no CIFAR-10 batch: it has no {error}") from None
    except Exception as error:
        raise DataError(f"{path} is no CIFAR-10 batch: {error}") from None
    return images, labels
