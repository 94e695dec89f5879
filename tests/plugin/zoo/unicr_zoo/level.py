"""Models that are one number in a file: the first coordinate above it is class 1."""

from __future__ import annotations

import torch

from unicr.classifier import Adapter, CallableClassifier, Classifier, ModelAsked, with_ending
from unicr.files import file_digest


def load(asked: ModelAsked) -> Classifier:
    """The classifier of a file."""
    level = float(asked.path.read_text())

    def above(batch: torch.Tensor) -> torch.Tensor:
        return (batch.flatten(1)[:, 0] > level).long()

    digest = file_digest(asked.path)
    return CallableClassifier(above, name=asked.name, digest=digest, num_classes=2)


ADAPTER = Adapter(".level (one number)", with_ending(".level"), load)
