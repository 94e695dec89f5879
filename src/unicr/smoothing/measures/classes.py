"""Votes by class, of noisy copies or of the input itself."""

from __future__ import annotations

from dataclasses import dataclass

from unicr.classifier import Classifier
from unicr.extras import torch
from unicr.smoothing._measure import Counts, Measure


@dataclass(frozen=True)
class ClassVotes(Measure):
    """Every noisy copy votes for the class that f gives it."""

    name = "classes"

    def count(self, model: Classifier, batch: torch.Tensor, classes: int | None) -> Counts:
        """Votes by class."""
        return model.votes(batch, classes).numpy()


@dataclass(frozen=True)
class CleanVote(ClassVotes):
    """The class that f gives the input itself, without noise: one vote."""

    name = "clean"
    noisy = False
