"""Votes by class, of noisy copies or of the input itself."""

from __future__ import annotations

from dataclasses import dataclass

from unicr.classifier import Classifier
from unicr.extras import torch
from unicr.smoothing._measure import Measure


@dataclass(frozen=True)
class ClassVotes(Measure):
    """Every noisy copy votes for the class that f gives it."""

    name = "classes"

    def labels(self, model: Classifier, batch: torch.Tensor) -> torch.Tensor:
        """The classes of the copies."""
        return model.predict_unchecked(batch)


@dataclass(frozen=True)
class CleanVote(ClassVotes):
    """The class that f gives the input itself, without noise: one vote."""

    name = "clean"
    noisy = False
