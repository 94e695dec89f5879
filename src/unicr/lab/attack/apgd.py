"""Auto-PGD (Croce and Hein, 2020) on the smoothed classifier: the strongest attack here.

pyautoattack keeps images in [0, 1] and takes one eps for all. Here it walks in coordinates where
every input is the middle of the unit cube and its ball touches the sides: each input has its own
radius, and nothing is clipped unless the user wants it. Without the limits of an image, the worst
point of an ℓ1 ball is often a corner, which the library's steps (made for images) do not reach: the
corners where the gradient is steepest compete with what it found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from unicr.lab.attack._base import Attack, Bounds, Cube, Targets, best_of, library, quiet
from unicr.norms import Norm

CORNERS = 8


@dataclass(frozen=True)
class Apgd(Attack):
    """Cross-entropy of the averaged probabilities, with pyautoattack's adaptive steps."""

    name: ClassVar[str] = "apgd"
    differentiates: ClassVar[bool] = True
    EFFORT: ClassVar[tuple[str, ...]] = ("iterations",)
    iterations: int = 30
    restarts: int = 1

    def _directions(self, targets: Targets, norm: Norm, bounds: Bounds, seed: int) -> torch.Tensor:
        cube = Cube(targets, norm, bounds)
        walk = library("pyautoattack.autopgd_base").APGDAttack(
            cube,
            n_iter=self.iterations,
            norm=cube.shape,
            n_restarts=self.restarts,
            eps=0.5,
            seed=seed,
            loss="ce",
            device=targets.x.device,
        )
        middle = torch.full_like(targets.x, 0.5)
        with quiet():
            z: torch.Tensor = walk.perturb(middle, targets.classes, best_loss=True)
        delta = cube.delta(z).detach()
        if cube.shape != "L1":
            return delta
        corners = (*_corners(targets, torch.zeros_like(delta)), *_corners(targets, delta))
        return best_of(targets, norm, bounds, (delta, *corners))


def _corners(targets: Targets, delta: torch.Tensor) -> Iterator[torch.Tensor]:
    """Directions of one coordinate: those along which the probability at x + δ falls fastest."""
    delta = delta.clone().requires_grad_()
    with torch.enable_grad():
        claimed = targets.model(targets.moved(delta)).gather(1, targets.classes[:, None])
        (gradient,) = torch.autograd.grad(claimed.sum(), delta)
    slope = gradient.flatten(1)
    for places in slope.abs().topk(min(CORNERS, targets.dim), dim=1).indices.T:
        corner = torch.zeros_like(slope)
        corner.scatter_(1, places[:, None], -slope.gather(1, places[:, None]).sign())
        yield corner.view(delta.shape)
