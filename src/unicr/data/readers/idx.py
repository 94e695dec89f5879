"""MNIST's own file format: idx files, plain or gzipped, with images and labels apart."""

from __future__ import annotations

import re
from pathlib import Path

from unicr.data._dataset import Dataset, from_arrays
from unicr.data._labels import idx_array
from unicr.data._reader import DataAsked, Reader
from unicr.errors import DataError

STARTS = {"test": ("t10k", "test"), "train": ("train",)}
IMAGE_FILE = re.compile(r"images[-.]idx3")


def _images(asked: DataAsked) -> Path | None:
    """The images file that is asked for: the file itself, or that of the split in a folder."""
    if not asked.path.is_dir():
        return asked.path if IMAGE_FILE.search(asked.path.name) else None
    files = [p for p in asked.path.iterdir() if IMAGE_FILE.search(p.name) and p.is_file()]
    files.sort(key=lambda p: (p.suffix, p.name))
    return next((p for p in files if p.name.startswith(STARTS[asked.split])), None)


def read(asked: DataAsked) -> Dataset:
    """An idx file of images with the labels file beside it."""
    path = _images(asked)
    if path is None:
        raise DataError(f"{asked.path} contains no idx file of images")
    plain = path.name.removesuffix(".gz").replace("images", "labels").replace("idx3", "idx1")
    near = [path.with_name(plain), path.with_name(plain + ".gz")]
    beside = [] if asked.labels else [file for file in near if file.is_file()]
    return from_arrays(
        idx_array(path),
        idx_array(beside[0]) if beside else None,
        name=path.name.removesuffix(".gz"),
        source=str(path),
    )


READER = Reader("idx files (…images-idx3-ubyte[.gz])", lambda a: _images(a) is not None, read)
