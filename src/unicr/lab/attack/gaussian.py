"""Random directions: the weakest attack, and a check that the study is not easily fooled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from unicr.lab.attack._base import Attack, Bounds, Targets, best_of
from unicr.norms import Norm


@dataclass(frozen=True)
class RandomDirections(Attack):
    """The best of `tries` Gaussian directions for every input."""

    name: ClassVar[str] = "gaussian"
    EFFORT: ClassVar[tuple[str, ...]] = ("tries",)
    tries: int = 16

    def _directions(self, targets: Targets, norm: Norm, bounds: Bounds, seed: int) -> torch.Tensor:
        candidates = (torch.randn(targets.x.shape) for _ in range(self.tries))
        return best_of(targets, norm, bounds, candidates)
