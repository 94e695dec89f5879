"""MNIST's own file format: idx files, plain or gzipped, with images and labels apart."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unicr.data._dataset import Dataset, from_arrays
from unicr.errors import DataError

TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
SPLITS = {"test": ("t10k", "test"), "train": ("train",)}
IMAGE_FILE = re.compile(r"images[-.]idx3")


def is_idx(path: Path) -> bool:
    """Whether a file's name says that it holds idx images."""
    return IMAGE_FILE.search(path.name) is not None


def read_idx(path: Path, labels: Path | None) -> Dataset:
    """An idx file of images with the labels file beside it, or the one given."""
    if labels is None:
        labels = _labels_beside(path)
    return from_arrays(
        idx_array(path),
        None if labels is None else idx_array(labels),
        name=path.name.removesuffix(".gz"),
        source=str(path),
    )


def find_idx(folder: Path, split: str) -> Path | None:
    """The images file of a split in a folder with idx files."""
    files = sorted((p for p in folder.iterdir() if is_idx(p)), key=lambda p: (p.suffix, p.name))
    return next((p for p in files if p.name.startswith(SPLITS[split])), None)


def idx_array(path: Path) -> NDArray[Any]:
    """The array of one idx file."""
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in TYPES:
        raise DataError(f"{path} is not an idx file")
    kind, axes = np.dtype(TYPES[raw[2]]), raw[3]
    shape = struct.unpack_from(f">{axes}I", raw, 4) if len(raw) >= 4 + 4 * axes else ()
    expected = 4 + 4 * axes + kind.itemsize * int(np.prod(shape, dtype=object))
    if not shape or len(raw) != expected:
        raise DataError(f"{path} has {len(raw)} bytes where its header says {expected}: cut short?")
    values = np.frombuffer(raw, kind, offset=4 + 4 * axes).reshape(shape)
    return values.astype(kind.newbyteorder("="))


def _labels_beside(path: Path) -> Path | None:
    plain = path.name.removesuffix(".gz").replace("images", "labels").replace("idx3", "idx1")
    near = (path.with_name(plain), path.with_name(plain + ".gz"))
    return next((file for file in near if file.is_file()), None)
