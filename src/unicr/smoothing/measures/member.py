"""Votes of one member of a selective model: its selector, or a classifier that it may choose."""

from __future__ import annotations

from dataclasses import dataclass

from unicr.classifier import Classifier, Selective
from unicr.errors import CertifyError
from unicr.extras import torch
from unicr.smoothing._measure import Measure


@dataclass(frozen=True)
class MemberVotes(Measure):
    """Every noisy copy votes for what member number `index` says; 0 is the selector."""

    name = "member"
    index: int = 0

    def labels(self, model: Classifier, batch: torch.Tensor) -> torch.Tensor:
        """Choices of the selector, classes of the others."""
        return self._member(model).predict_unchecked(batch)

    def size(self, model: Classifier, classes: int | None) -> int | None:
        """The number of choices for the selector, of classes for the others."""
        member = self._member(model)
        if self.index == 0:
            assert isinstance(model, Selective)
            return len(model.members) - 1
        return member.num_classes if classes is None else classes

    def _member(self, model: Classifier) -> Classifier:
        if not isinstance(model, Selective) or not 0 <= self.index < len(model.members):
            raise CertifyError(f"{model.name} has no member {self.index}: it is no such selector")
        return model.members[self.index]
