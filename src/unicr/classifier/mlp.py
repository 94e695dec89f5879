"""The small fully connected network of the demo: 784-512-256-10 with ReLU between.

Three of them, trained with Gaussian noise by `tools/train_builtin.py`, come with the package;
`unicr train --arch mlp` makes others, with sizes to fit the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count, pairwise, takewhile

import torch
from torch import nn

from unicr.errors import ModelError

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


def sized_as(weights: Mapping[str, torch.Tensor]) -> MLP:
    """A network with the layer sizes of a state dict: linear.0.weight, linear.1.weight, …"""
    names = takewhile(weights.__contains__, (f"linear.{i}.weight" for i in count()))
    layers = [weights[name] for name in names]
    if not layers or any(layer.ndim != 2 for layer in layers):
        raise ModelError(
            "the weights do not belong to an mlp: it has linear.0.weight, linear.1.weight, …, but "
            f"these are {', '.join(list(weights)[:5])}"
        )
    return MLP((layers[0].shape[1], *(len(layer) for layer in layers)))
