"""Labelled inputs in memory: what a training learns from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from unicr.data import Dataset
from unicr.errors import DataError
from unicr.lab.train._settings import TrainError


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled inputs as two tensors; bytes stand for k/255 where that loses nothing."""

    inputs: torch.Tensor
    labels: torch.Tensor
    num_classes: int
    classes: tuple[str | int, ...] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.inputs.shape[1:])

    def batch(self, rows: torch.Tensor) -> torch.Tensor:
        """Some of the inputs, float32."""
        chosen = self.inputs[rows]
        return chosen.float().div_(255) if chosen.dtype == torch.uint8 else chosen

    @cached_property
    def digest(self) -> str:
        """SHA-256 of inputs and labels."""
        total = hashlib.sha256(f"{self.shape}:{self.inputs.dtype}:".encode())
        total.update(self.inputs.contiguous().numpy().data)
        total.update(self.labels.contiguous().numpy().data)
        return total.hexdigest()


def examples_of(data: Dataset, limit: int | None = None) -> Examples:
    """The first `limit` inputs of a dataset in memory; each needs a label."""
    if limit is not None and limit < 1:
        raise TrainError(f"max={limit} must be at least 1")
    size = len(data) if limit is None else min(limit, len(data))
    inputs, labels = (torch.from_numpy(array) for array in arrays_of(data, size))
    missing = int((labels < 0).sum())
    if missing:
        raise DataError(
            f"{missing} of {size} inputs of {data.name} have no label, but training needs one for "
            "each (--labels FILE if they are in a separate file)"
        )
    if bool((labels == labels[0]).all()):
        raise DataError(
            f"all {size} inputs of {data.name} have the same label, but at least two classes are "
            "needed"
        )
    if not bool(torch.isfinite(inputs).all()):
        raise DataError(
            f"some inputs of {data.name} have values that are not finite (NaN or infinity)"
        )
    whole = inputs.mul(255).round_()
    if bool(((whole >= 0) & (whole <= 255)).all()):
        packed = whole.to(torch.uint8)
        if torch.equal(packed.float().div_(255), inputs):
            inputs = packed
    count = data.num_classes or int(labels.max()) + 1
    return Examples(inputs, labels, count, data.classes)


def arrays_of(data: Dataset, size: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The first `size` inputs and labels of a dataset."""
    inputs = np.empty((size, *data.shape), dtype=np.float32)
    labels = np.empty(size, dtype=np.int64)
    for i in range(size):
        x, labels[i] = data[i]
        inputs[i] = x.numpy()
    return inputs, labels
