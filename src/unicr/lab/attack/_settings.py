"""What attacks are told, without the attacks, which load torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from unicr.errors import UnicrError

FACTORS = (1.0, 1.5, 3.0)


class AttackError(UnicrError, ValueError):
    """An attack that cannot be run as asked: the model, the inputs or the settings do not fit."""


@dataclass(frozen=True)
class Settings:
    """What decides the outcomes of attacks, beside the attacks themselves.

    Parameters
    ----------
    samples
        Noisy copies that an attack averages over.
    votes
        Fresh samples that decide about the class of each perturbed input.
    alpha
        Significance level: the probability that a reported change of class is none.
    seed
        Random seed of the attacks and of the samples that judge them.
    clip
        Keep perturbed inputs within [0, 1]. (Certificates also cover changes that leave it.)
    searched
        Attack the searched radius instead of the proved one.
    """

    samples: int = 32
    votes: int = 1000
    alpha: float = 1e-3
    seed: int = 0
    clip: bool = False
    searched: bool = False

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise AttackError(f"samples={self.samples} must be at least 1")
        if not 0 < self.alpha < 1:
            raise AttackError(f"alpha={self.alpha!r} must lie strictly between 0 and 1")
        if self.votes < 1 or 0.5**self.votes > self.alpha:
            raise AttackError(
                f"votes={self.votes} prove nothing at alpha={self.alpha:g}, even if all agree: use "
                f"{math.ceil(-math.log2(self.alpha))} or more"
            )
