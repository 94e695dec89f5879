"""A folder of PNG or JPEG images: every sub-folder is a class, in sorted order.

A folder without sub-folders is a set of images without labels.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np

from unicr.data._dataset import NO_LABEL, Dataset, Floats, as_input
from unicr.data._reader import DataAsked, Reader
from unicr.errors import DataError, foreign
from unicr.files import check_size

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
FLOAT = 4  # bytes of a value of an input
# Whatever a file is called, Pillow looks at its content, and for some contents it starts programs
# (PostScript is a program, and is run by Ghostscript): only these are tried.
FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "TIFF", "PPM")


def _files(folder: Path) -> list[tuple[Path, str | None]]:
    """(file, class) of every image, sorted by class and name."""
    classes = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    labelled: list[tuple[Path, str | None]] = [
        (file, sub.name) for sub in classes for file in sorted(sub.rglob("*")) if _is_image(file)
    ]
    return labelled or [(file, None) for file in sorted(folder.iterdir()) if _is_image(file)]


def read(asked: DataAsked) -> Dataset:
    """The images of a folder, decoded when asked for; grey or RGB as the first readable one is."""
    files = _files(asked.path)
    if not files:
        raise DataError(
            f"{asked.path} contains no images, idx files or CIFAR-10 batches of the {asked.split} "
            "split"
        )
    words = sorted({word for _, word in files if word is not None})
    places: dict[str | None, int] = {None: NO_LABEL} | {word: i for i, word in enumerate(words)}
    first = _first_readable([file for file, _ in files])
    grey = _pixels(first, rgb=False).shape[0] == 1

    def one(index: int) -> tuple[Floats, int]:
        file, word = files[index]
        return _pixels(file, rgb=not grey), places[word]

    return Dataset(
        name=asked.path.name,
        source=str(asked.path),
        size=len(files),
        shape=_pixels(first, rgb=not grey).shape,
        read=one,
        num_classes=len(words) or None,
        classes=tuple(words) or None,
    )


def _is_image(path: Path) -> bool:
    named = path.suffix.lower() in ENDINGS and not path.name.startswith(".")
    return named and path.is_file()


def _first_readable(files: list[Path]) -> Path:
    trouble: DataError | None = None
    for file in files:
        try:
            _pixels(file, rgb=False)
            return file
        except DataError as error:
            trouble = trouble or error
    raise trouble or DataError("there are no images")


def _pixels(path: Path, rgb: bool) -> Floats:
    from PIL import Image

    with foreign(DataError, f"{path} is not a readable image"), warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(path, formats=FORMATS) as image:
            values = math.prod(image.size) * (3 if rgb else len(image.getbands()))
            check_size(path, FLOAT * values, path.stat().st_size, DataError)
            if image.mode.startswith("I") and not rgb:
                return as_input(np.asarray(image).astype(np.uint16))
            keep = "RGB" if rgb or image.mode not in ("L", "1") else "L"
            return as_input(np.asarray(image.convert(keep)))


READER = Reader("a folder of images", lambda asked: asked.path.is_dir(), read, rank=2)
