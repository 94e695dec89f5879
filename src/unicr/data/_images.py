"""A folder of PNG or JPEG images: every sub-folder is a class, in sorted order.

A folder without sub-folders is a set of images without labels.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unicr.data._dataset import NO_LABEL, Dataset, Floats, as_input
from unicr.errors import DataError

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


def find_images(folder: Path) -> list[tuple[Path, str | None]]:
    """(file, class) of every image, sorted by class and name."""
    classes = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    labelled: list[tuple[Path, str | None]] = [
        (file, sub.name) for sub in classes for file in sorted(sub.rglob("*")) if _is_image(file)
    ]
    if labelled:
        return labelled
    return [(file, None) for file in sorted(folder.iterdir()) if _is_image(file)]


def read_images(folder: Path, files: list[tuple[Path, str | None]]) -> Dataset:
    """The images of a folder, decoded when asked for; grey or RGB as the first one is."""
    words = sorted({word for _, word in files if word is not None})
    places: dict[str | None, int] = {None: NO_LABEL} | {word: i for i, word in enumerate(words)}
    grey = _pixels(files[0][0], rgb=False).shape[0] == 1

    def read(index: int) -> tuple[Floats, int]:
        file, word = files[index]
        return _pixels(file, rgb=not grey), places[word]

    return Dataset(
        name=folder.name,
        source=str(folder),
        size=len(files),
        shape=read(0)[0].shape,
        read=read,
        num_classes=len(words) or None,
        classes=tuple(words) or None,
    )


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS and not path.name.startswith(".")


def _pixels(path: Path, rgb: bool) -> Floats:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            if image.mode.startswith("I") and not rgb:
                return as_input(np.asarray(image).astype(np.uint16))
            keep = "RGB" if rgb or image.mode not in ("L", "1") else "L"
            return as_input(np.asarray(image.convert(keep)))
    except (OSError, UnidentifiedImageError) as error:
        raise DataError(f"{path} is not a readable image: {error}") from None
