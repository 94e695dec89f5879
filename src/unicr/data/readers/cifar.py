"""CIFAR-10 as its authors publish it: python batches (pickles) and binary batches.

The pickles are read by an unpickler that can build numpy arrays and plain values, nothing else.
"""

from __future__ import annotations

import io
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unicr.data._dataset import Dataset, from_arrays
from unicr.data._reader import DataAsked, Reader
from unicr.errors import DataError, foreign

SHAPE = (3, 32, 32)
RECORD = 1 + 3072  # bytes of an image in the binary form: its label, then 3·32·32 pixels
BATCH = re.compile(r"test_batch|data_batch_\d*\d")
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
    """What numpy's own function of this name does for a plain array: an empty one to be filled.

    numpy writes no other shape here; a larger one would take memory that no byte of the file backs.
    """
    if kind is not np.ndarray or shape != (0,):
        raise pickle.UnpicklingError("it asks for an array of another class or shape")
    return np.ndarray.__new__(np.ndarray, shape, code)


def _batches(asked: DataAsked) -> list[Path]:
    """The batch files that are asked for: the file itself, or those of the split in a folder.

    In a folder they may also lie one folder deeper, as the authors pack them.
    """
    path = asked.path
    if not path.is_dir():
        return [path] if path.suffix == ".bin" or BATCH.fullmatch(path.name) else []
    for inside in ("", "cifar-10-batches-py", "cifar-10-batches-bin"):
        for ending in ("", ".bin"):
            pattern = ("test_batch" if asked.split == "test" else "data_batch_[1-9]") + ending
            found = sorted(p for p in (path / inside).glob(pattern) if p.is_file())
            if found:
                return found
    return []


def read(asked: DataAsked) -> Dataset:
    """CIFAR-10 images of one or several batch files, in file order."""
    paths = _batches(asked)
    parts = [_binary(path) if path.suffix == ".bin" else _python(path) for path in paths]
    images = np.concatenate([part[0] for part in parts])
    labels = np.concatenate([part[1] for part in parts])
    name = f"cifar10-{asked.split}" if asked.path.is_dir() else asked.path.name
    dataset = from_arrays(images, labels, name=name, source=", ".join(map(str, paths)))
    if dataset.num_classes is not None and dataset.num_classes > len(CLASSES):
        raise DataError(f"{name}: a label is {dataset.num_classes - 1}, CIFAR-10 has 0 … 9")
    return replace(dataset, classes=CLASSES, num_classes=len(CLASSES))


def _binary(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    raw = np.fromfile(path, np.uint8)
    if not raw.size or raw.size % RECORD:
        raise DataError(f"{path} has {raw.size} bytes: not whole records of {RECORD}")
    rows = raw.reshape(-1, RECORD)
    return rows[:, 1:].reshape(-1, *SHAPE), rows[:, 0]


def _python(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    with foreign(DataError, f"{path} is no CIFAR-10 batch"):
        batch = _ArraysOnly(io.BytesIO(path.read_bytes()), encoding="bytes").load()
        named = {k.decode() if isinstance(k, bytes) else k: v for k, v in batch.items()}
        for key in ("data", "labels"):
            if key not in named:
                raise DataError(f"{path} is no CIFAR-10 batch: it has no {key!r}")
        images = np.asarray(named["data"], np.uint8).reshape(-1, *SHAPE)
        return images, np.asarray(named["labels"], np.int64)


READERS = (
    Reader(
        "CIFAR-10 batches (test_batch, test_batch.bin)", lambda a: bool(_batches(a)), read, rank=1
    ),
)
