"""Every coordinate moves up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from unicr.lab.attack import Attack, Targets
from unicr.norms import Norm


@dataclass(frozen=True)
class Upwards(Attack):
    """Along (1, …, 1), which raises the first coordinate as well."""

    name: ClassVar[str] = "upwards"

    def _directions(self, targets: Targets, norm: Norm, bounds: Any, seed: int) -> torch.Tensor:
        return torch.ones_like(targets.x)
