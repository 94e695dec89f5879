"""Labels, and other single arrays, that stand in a file of their own: .npy, idx or text."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unicr.errors import DataError, foreign
from unicr.files import check_size

IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
GZIP, NPY, IDX = b"\x1f\x8b", b"\x93NUMPY", b"\0\0"


def read_labels(path: Path) -> NDArray[Any] | list[str]:
    """The labels of a `.npy` or idx file, or of a text file with one label per line."""
    with foreign(DataError, f"the labels {path} cannot be read"):
        with path.open("rb") as file:
            start = file.read(6)
        if start == NPY or path.suffix == ".npy":
            return array_of(path)
        if start[:2] in (GZIP, IDX):
            return idx_array(path)
        try:
            return [line.strip() for line in path.read_text("utf-8").splitlines()]
        except UnicodeDecodeError:
            raise DataError(
                f"cannot read the labels {path}: the file must be .npy, idx, or text with one "
                "label on each line"
            ) from None


def array_of(path: Path) -> NDArray[Any]:
    """The array of a `.npy` file, read from disk as it is used."""
    loaded = np.load(path, allow_pickle=False, mmap_mode="r")
    if not isinstance(loaded, np.ndarray):
        raise DataError(f"{path} is an archive of arrays, not one array: rename it to .npz")
    return loaded


def idx_array(path: Path) -> NDArray[Any]:
    """The array of one idx file, plain or gzipped."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    with gzip.open(path) if packed else path.open("rb") as file:
        head = file.read(4)
        if len(head) < 4 or head[:2] != IDX or head[2] not in IDX_TYPES:
            raise DataError(f"{path} is not an idx file")
        kind, axes = np.dtype(IDX_TYPES[head[2]]), head[3]
        sizes = file.read(4 * axes)
        if not 1 <= axes <= 8 or len(sizes) < 4 * axes:
            raise DataError(
                f"{path} has a header for {axes} axes, but less data: is the file cut short?"
            )
        shape = struct.unpack(f">{axes}I", sizes)
        size = kind.itemsize * int(np.prod(shape, dtype=object))
        stored = path.stat().st_size
        check_size(path, size, stored if packed else size, DataError)
        content = file.read(min(size, size if packed else stored) + 1)
    if len(content) != size:
        raise DataError(
            f"{path} does not have the {size} bytes that its header says: is the file cut short?"
        )
    return np.frombuffer(content, kind).reshape(shape).astype(kind.newbyteorder("="))
