"""Wasserstein attack (Wong, Schmidt and Kolter, 2019): mass of the image is moved to other pixels.

The adversarial-robustness-toolbox takes sign steps and projects on the Wasserstein ball, which
grows until the class changes; the direction found is rescaled to the wanted norm.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from unicr.lab.attack._base import Attack, Bounds, Targets, library, quiet
from unicr.lab.attack._settings import AttackError
from unicr.norms import Norm


@dataclass(frozen=True)
class Wasserstein(Attack):
    """`steps` of size `step`; the ball starts at `ball` and grows by `growth` with each of them."""

    name: ClassVar[str] = "wasserstein"
    differentiates: ClassVar[bool] = True
    images_only: ClassVar[bool] = True
    EFFORT: ClassVar[tuple[str, ...]] = ("steps",)
    steps: int = 12
    step: float = 0.05
    ball: float = 0.3
    growth: float = 3.0
    regularization: float = 100.0
    sinkhorn: int = 10

    def _key(self, norm: Norm, bounds: Bounds) -> Hashable:
        return self.name

    def _directions(self, targets: Targets, norm: Norm, bounds: Bounds, seed: int) -> torch.Tensor:
        images = targets.x.view(len(targets), -1, *targets.x.shape[-2:]).cpu().numpy()
        if float(images.min()) < 0 or not bool((images.sum((1, 2, 3)) > 0).all()):
            raise AttackError(
                "wasserstein moves the mass of images, so every pixel must be at least 0 and one "
                "of them above 0"
            )
        top = max(1.0, float(images.max()))
        classification = library("art.estimators.classification")
        model = _Floats(targets)
        classifier = classification.PyTorchClassifier(
            model,
            loss=nn.CrossEntropyLoss(reduction="sum"),
            input_shape=images.shape[1:],
            nb_classes=targets.model.num_classes,
            clip_values=(0.0, top),
            device_type="gpu" if targets.x.device.type == "cuda" else "cpu",
        )
        move = library("art.attacks.evasion.wasserstein").Wasserstein(
            classifier,
            regularization=self.regularization,
            eps_step=self.step,
            norm="inf",
            eps=self.ball,
            eps_iter=1,
            eps_factor=self.growth,
            max_iter=self.steps,
            projected_sinkhorn_max_iter=self.sinkhorn,
            batch_size=len(targets),
            verbose=False,
        )
        with quiet():
            move.generate(images, y=targets.classes.cpu().numpy())
        return model.worst - targets.x


class _Floats(nn.Module):
    """The smoothed model for the toolbox, which hands over float64 and images with channels.

    It remembers the point that hurt each input most: the toolbox gives back only what it counts as
    a success.
    """

    def __init__(self, targets: Targets) -> None:
        super().__init__()
        self._targets = targets
        self.worst = targets.x.clone()
        self._least = torch.full((len(targets),), torch.inf, device=targets.x.device)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        moved = x.float().view(self._targets.x.shape)
        log_probabilities: torch.Tensor = self._targets.model(moved)
        claimed = log_probabilities.detach().gather(1, self._targets.classes[:, None])[:, 0]
        better = claimed < self._least
        self._least[better], self.worst[better] = claimed[better], moved.detach()[better]
        return log_probabilities
