"""Projected gradient descent (Madry et al., 2018) by foolbox, in the coordinates of `apgd`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from unicr.lab.attack._base import Attack, Bounds, Cube, Targets, library, quiet
from unicr.norms import Norm


@dataclass(frozen=True)
class Pgd(Attack):
    """Steps of a fixed size (a share of the radius) on the cross-entropy, from a random start.

    In ℓ1 the steps are those of Tramèr and Boneh (2019), along the steepest coordinates only.
    """

    name: ClassVar[str] = "pgd"
    differentiates: ClassVar[bool] = True
    EFFORT: ClassVar[tuple[str, ...]] = ("iterations",)
    iterations: int = 20
    step: float = 0.1

    def _directions(self, targets: Targets, norm: Norm, bounds: Bounds, seed: int) -> torch.Tensor:
        cube = Cube(targets, norm, bounds).eval()
        fools = library("foolbox")
        model = fools.PyTorchModel(cube, bounds=(0, 1), device=targets.x.device)
        kind = {"L1": "SparseL1DescentAttack", "L2": "L2PGD", "Linf": "LinfPGD"}[cube.shape]
        descent = getattr(fools.attacks, kind)(rel_stepsize=self.step, steps=self.iterations)
        middle = torch.full_like(targets.x, 0.5)
        with quiet():
            z = descent.run(model, middle, targets.classes, epsilon=0.5)
        return cube.delta(z)
