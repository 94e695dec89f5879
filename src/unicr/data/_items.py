"""Any `torch.utils.data.Dataset` (or list) whose items are inputs or (input, label) pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from unicr.data._dataset import NO_LABEL, Dataset, Floats, as_input
from unicr.errors import DataError


def from_items(items: Any, name: str) -> Dataset:
    """A dataset of numbered items; each is read when asked for, its transforms run then."""
    size = len(items)
    if not size:
        raise DataError(f"{name} is empty")

    def read(index: int) -> tuple[Floats, int]:
        item = items[index]
        value, label = item if isinstance(item, tuple | list) and len(item) == 2 else (item, None)
        if hasattr(value, "detach"):
            value = value.detach().cpu().numpy()
        array = np.asarray(value)
        if array.ndim == 0:
            raise DataError(f"item {index} of {name} is {type(value).__name__}, not an array")
        return as_input(array), NO_LABEL if label is None else int(label)

    words = getattr(items, "classes", None)
    classes = tuple(words) if isinstance(words, list | tuple) else None
    return Dataset(
        name=name,
        source=f"{type(items).__module__}.{type(items).__qualname__}",
        size=size,
        shape=read(0)[0].shape,
        read=read,
        num_classes=len(classes) if classes else None,
        classes=classes,
    )
