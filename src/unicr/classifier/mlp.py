"""The small fully connected network of the demo: 784-512-256-10 with ReLU between.

Three of them, trained with Gaussian noise by `tools/train_builtin.py`, come with the package.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

MNIST_SIZES = (784, 512, 256, 10)


class MLP(nn.Module):
    """Linear layers of the given sizes with ReLU between them; inputs are flattened first."""

    def __init__(self, sizes: tuple[int, ...] = MNIST_SIZES) -> None:
        super().__init__()
        self.linear = nn.ModuleList(
            nn.Linear(fan_in, fan_out) for fan_in, fan_out in pairwise(sizes)
        )

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        hidden = batch.flatten(1)
        for layer in self.linear[:-1]:
            hidden = layer(hidden).relu_()
        scores: torch.Tensor = self.linear[-1](hidden)
        return scores
