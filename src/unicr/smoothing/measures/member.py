"""Votes of one member of a selective model: its selector, or a classifier that it may choose."""

from __future__ import annotations

from dataclasses import dataclass

from unicr.classifier import Classifier, Selective
from unicr.errors import CertifyError
from unicr.extras import torch
from unicr.smoothing._measure import Counts, Measure


@dataclass(frozen=True)
class MemberVotes(Measure):
    """Every noisy copy votes for what member number `index` says; 0 is the selector."""

    name = "member"
    index: int = 0

    def count(self, model: Classifier, batch: torch.Tensor, classes: int | None) -> Counts:
        """Votes by choice for the selector, by class for the others."""
        if not isinstance(model, Selective) or not 0 <= self.index < len(model.members):
            raise CertifyError(f"{model.name} has no member {self.index}: it is no such selector")
        size = classes if self.index else len(model.members) - 1
        return model.members[self.index].votes(batch, size).numpy()
