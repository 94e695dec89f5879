"""Votes of one member of a selective model: its selector, or a classifier that it may choose.

The certificate joins the votes of several members (`unicr.select` makes it): `talk` holds every
question that was asked and its answer, from which all else follows again.
"""

from __future__ import annotations

from dataclasses import dataclass

from unicr.classifier import Classifier, Selective
from unicr.errors import CertifyError
from unicr.extras import torch
from unicr.smoothing._certificate import Certificate
from unicr.smoothing._measure import Counts
from unicr.smoothing.measures.classes import ClassVotes


@dataclass(frozen=True)
class SelectiveCertificate(Certificate):
    """A certificate of the whole predictor: x goes to the selector, then to the chosen classifier.

    `talk` is (member, counts) for each question in order, `among` the choices (first and last)
    that the selector is certified to stay within: all of them have this class in the radius.
    `n` counts all fresh votes, `p_a`, `p_b`, `selection` and `counts` are those of the classifier
    under `noise`.
    """

    talk: tuple[tuple[int, tuple[int, ...]], ...] = ()
    among: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        talk = tuple((int(member), tuple(map(int, counts))) for member, counts in self.talk)
        object.__setattr__(self, "talk", talk)
        object.__setattr__(self, "among", tuple(self.among))


@dataclass(frozen=True)
class MemberVotes(ClassVotes):
    """Every noisy copy votes for what member number `index` says; 0 is the selector."""

    name = "member"
    certificate = SelectiveCertificate
    index: int = 0

    def count(self, model: Classifier, batch: torch.Tensor, classes: int | None) -> Counts:
        """Votes by choice for the selector, by class for the others."""
        if not isinstance(model, Selective) or not 0 <= self.index < len(model.members):
            raise CertifyError(f"{model.name} has no member {self.index}: it is no such selector")
        size = classes if self.index else len(model.members) - 1
        return model.members[self.index].votes(batch, size).numpy()
