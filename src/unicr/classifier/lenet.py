"""A small convolutional network for digits, half a million multiplications for 28×28 pixels.

Two convolutions (5×5, 3×3) that halve the size, then two linear layers, ReLU between. Three,
trained by `tools/train_builtin.py`, come with the package; `unicr train --arch lenet` makes others.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

from unicr.errors import ModelError

WIDTHS, HIDDEN = (16, 32), 128


class LeNet(nn.Module):
    """For images of shape (channels, height, width); `shape` is that of one input."""

    def __init__(self, shape: tuple[int, ...] = (1, 28, 28), num_classes: int = 10) -> None:
        super().__init__()
        channels, *size = shape
        area = 1
        for length in size:
            area *= -(-length // 4)
        self.conv1 = nn.Conv2d(channels, WIDTHS[0], 5, 2, padding=2)
        self.conv2 = nn.Conv2d(*WIDTHS, 3, 2, padding=1)
        self.hidden = nn.Linear(WIDTHS[1] * area, HIDDEN)
        self.linear = nn.Linear(HIDDEN, num_classes)
        for layer in (self.conv1, self.conv2):  # twice as fast on a CPU with channels last
            weight = layer.weight.detach().contiguous(memory_format=torch.channels_last)
            layer.weight = nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.conv1(x), inplace=True)
        x = functional.relu(self.conv2(x), inplace=True)
        scores: torch.Tensor = self.linear(functional.relu(self.hidden(x.flatten(1)), inplace=True))
        return scores


def sized_as(weights: Mapping[str, torch.Tensor]) -> LeNet:
    """A network with the input channels, the area and the classes of a state dict."""
    try:
        channels = weights["conv1.weight"].shape[1]
        area = weights["hidden.weight"].shape[1] // WIDTHS[1]
        return LeNet((channels, 4 * area, 1), len(weights["linear.weight"]))
    except (KeyError, IndexError):
        raise ModelError(
            "the weights are none of a lenet: it has conv1, conv2, hidden and linear, and these "
            f"are {', '.join(list(weights)[:5])}"
        ) from None
