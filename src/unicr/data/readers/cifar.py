"""CIFAR-10 as its authors publish it: python batches (pickles) and binary batches.

The pickles are read by an unpickler that can build plain values and arrays of numbers only.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Callable
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
STORED = re.compile(r"[<>|=]?[uif][1248]")  # numpy's names of plain numbers


class _Maker:
    """Stands for a function or class that a pickle names: it can be called, and nothing else."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *given: Any) -> Any:
        return self._make(*given)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("it would change a function")


class _Kind:
    """What a pickle says of a numpy type; numpy's own reader of that is not asked."""

    __slots__ = ("type",)

    def __init__(self, name: Any, *_: Any) -> None:
        text = name.decode("latin-1") if isinstance(name, bytes) else str(name)
        if not STORED.fullmatch(text):
            raise pickle.UnpicklingError(f"it has values of type {text:.40}")
        self.type = np.dtype(text)

    def __setstate__(self, state: Any) -> None:
        order: Any = state[1].decode("latin-1") if isinstance(state[1], bytes) else state[1]
        self.type = self.type.newbyteorder(order)


class _Array:
    """What a pickle says of a numpy array: all of its values stand there."""

    __slots__ = ("values",)

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, by_columns, content = state
        found = np.frombuffer(content, kind.type)
        self.values = found.reshape(shape, order="F" if by_columns else "C")


def _begin_array(_: Any, shape: Any, code: Any) -> _Array:
    """What numpy begins an array with, before its values."""
    if shape != (0,):
        raise pickle.UnpicklingError("it asks for an array of another class or shape")
    return _Array()


def _encode(text: str, code: Any) -> bytes:
    """How pickles that Python 2 can read hold bytes."""
    if code not in ("latin1", b"latin1"):
        raise pickle.UnpicklingError(f"it asks for the encoding {code!r:.40}")
    return text.encode("latin-1")


ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _Maker(_begin_array),
    ("numpy._core.multiarray", "_reconstruct"): _Maker(_begin_array),
    ("numpy", "ndarray"): _Maker(_Array),
    ("numpy", "dtype"): _Maker(_Kind),
    ("_codecs", "encode"): _Maker(_encode),
}


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return ALLOWED[module, name]


def _unpickle(content: bytes) -> Any:
    """The values of a pickle. One that numbers more values than it has bytes is refused: Python
    makes room for all numbers below.
    """
    for operation, number, _ in pickletools.genops(content):
        if operation.name.endswith("PUT") and int(number or 0) > len(content):
            raise pickle.UnpicklingError(f"it numbers a value {number}")
    return _ArraysOnly(io.BytesIO(content), encoding="bytes").load()


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
        raise DataError(f"{name} has the label {dataset.num_classes - 1}, but CIFAR-10 has 0 … 9")
    return replace(dataset, classes=CLASSES, num_classes=len(CLASSES))


def _binary(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    raw = np.fromfile(path, np.uint8)
    if not raw.size or raw.size % RECORD:
        raise DataError(
            f"{path} has {raw.size} bytes, which is not a multiple of the record size {RECORD}"
        )
    rows = raw.reshape(-1, RECORD)
    return rows[:, 1:].reshape(-1, *SHAPE), rows[:, 0]


def _python(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    with foreign(DataError, f"{path} is no CIFAR-10 batch"):
        batch = _unpickle(path.read_bytes())
        named = {k.decode() if isinstance(k, bytes) else k: v for k, v in batch.items()}
        for key in ("data", "labels"):
            if key not in named:
                raise DataError(f"{path} is not a CIFAR-10 batch: it has no {key!r}")
        images, labels = named["data"], named["labels"]
        if not isinstance(images, _Array) or images.values.dtype != np.uint8:
            raise DataError(f"{path} is not a CIFAR-10 batch: its data are not an array of bytes")
        if not isinstance(labels, list) or not all(type(label) is int for label in labels):
            raise DataError(
                f"{path} is not a CIFAR-10 batch: its labels are not a list of whole numbers"
            )
        return images.values.reshape(-1, *SHAPE), np.array(labels, np.int64)


READERS = (
    Reader(
        "CIFAR-10 batches (test_batch, test_batch.bin)", lambda a: bool(_batches(a)), read, rank=1
    ),
)
