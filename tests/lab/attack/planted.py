"""Classifiers whose smoothed probabilities and worst perturbations are known in closed form."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from unicr import noise
from unicr.classifier import load_classifier
from unicr.lab.attack import SmoothedModel, Targets


class Linear(nn.Module):
    """Two classes by the sign of w·x + b: scores (0, w·x + b)."""

    def __init__(self, weight: torch.Tensor, bias: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = bias

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        score = batch.flatten(1) @ self.weight + self.bias
        return torch.stack([torch.zeros_like(score), score], 1)


class Probit(nn.Module):
    """Class 1 with the probability Φ(w·x), so that Gaussian smoothing has a closed form."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        score = batch.flatten(1) @ self.weight
        return torch.stack([torch.special.log_ndtr(-score), torch.special.log_ndtr(score)], 1)


def weights(dim: int, seed: int = 0) -> torch.Tensor:
    """A fixed random direction."""
    values = np.random.default_rng(seed).normal(size=dim)
    return torch.from_numpy(values.astype(np.float32))


def linear_targets(
    side: int = 6, count: int = 3, *, samples: int = 64, clip: bool = False
) -> Targets:
    """Images around 0.5 on the side of class 1 of a linear classifier, with little noise."""
    weight = weights(side * side)
    shape = (1, side, side)
    values = 0.5 + 0.05 * np.random.default_rng(1).normal(size=(count, *shape))
    x = torch.from_numpy(values.astype(np.float32))
    bias = 0.5 - float((x.flatten(1) @ weight).min())
    classifier = load_classifier(Linear(weight, bias))
    model = SmoothedModel(
        classifier, [noise.gaussian(sigma=0.1)] * count, range(count), shape, samples=samples
    )
    return Targets(x, torch.ones(count, dtype=torch.int64), model, seed=5, clip=clip)
