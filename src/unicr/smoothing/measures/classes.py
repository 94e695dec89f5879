"""Votes by class: the class of g at x, and how far it reaches (Cohen et al.)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unicr.classifier import Classifier
from unicr.extras import torch
from unicr.smoothing._measure import Counts, Measure, as_tuple, at
from unicr.smoothing._rule import Votes


@dataclass(frozen=True)
class ClassVotes(Measure):
    """Every noisy copy votes for the class that f gives it; the class with most votes is tested."""

    name = "classes"

    def count(self, model: Classifier, batch: torch.Tensor, classes: int | None) -> Counts:
        """Votes by class."""
        return model.votes(batch, classes).numpy()

    def chosen(self, selection: Counts) -> int:
        """The class with the most votes, the first of equals."""
        return int(np.argmax(selection))

    def votes(self, selection: Counts, counts: Counts) -> Votes:
        """Votes for the chosen class and for its runner-up on the selection."""
        order = np.argsort(-selection, kind="stable")
        second = at(counts, int(order[1])) if len(order) > 1 else None
        top = at(counts, int(order[0]))
        return Votes(top, second, int(counts.sum()), as_tuple(selection))
