"""Square Attack (Andriushchenko et al., 2020): random squares, kept where they help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from unicr.lab.attack._base import Attack, Bounds, Cube, Targets, library, quiet
from unicr.norms import Norm


@dataclass(frozen=True)
class Square(Attack):
    """pyautoattack's search in the coordinates of `apgd`, over all queries.

    The library stops an input at its first success; here every input goes on, since a success on
    the samples of the attack is not yet one on fresh samples.
    """

    name: ClassVar[str] = "square"
    images_only: ClassVar[bool] = True
    EFFORT: ClassVar[tuple[str, ...]] = ("queries",)
    queries: int = 300

    def _directions(self, targets: Targets, norm: Norm, bounds: Bounds, seed: int) -> torch.Tensor:
        cube = Cube(targets, norm, bounds)
        images = targets.x.view(len(targets), -1, *targets.x.shape[-2:])

        def margin(z: torch.Tensor, _: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            value = targets.margin(cube.delta(z))
            return torch.ones_like(value), value

        search = library("pyautoattack.square").SquareAttack(
            None,
            norm=cube.shape,
            n_queries=self.queries,
            eps=0.5,
            seed=seed,
            device=targets.x.device,
        )
        search.margin_and_loss = margin
        middle = torch.full_like(images, 0.5)
        with quiet():
            search.init_hyperparam(middle)
            _, z = search.attack_single_run(middle, targets.classes)
        return cube.delta(z)
