"""The residual networks for CIFAR-10 of He et al. 2015, section 4.2: depth 6n + 2.

Shortcuts are option A: where the size changes, every second pixel is taken and new channels are
zero, so that shortcuts have no weights.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

from unicr.errors import ModelError

WIDTHS = (16, 32, 64)


class Block(nn.Module):
    """Two 3×3 convolutions and a shortcut."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride = stride
        self.new_channels = channels - channels_in

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x
        if self.stride != 1 or self.new_channels:
            before = self.new_channels // 2
            after = self.new_channels - before
            shortcut = functional.pad(
                x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, before, after)
            )
        hidden = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        return functional.relu(self.bn2(self.conv2(hidden)) + shortcut, inplace=True)


class ResNet(nn.Module):
    """A CIFAR-10 residual network: three stages of n blocks with 16, 32 and 64 channels.

    `channels` are those of the input: 3 for colour images, 1 for grey ones.
    """

    def __init__(self, depth: int = 20, num_classes: int = 10, channels: int = 3) -> None:
        super().__init__()
        if depth < 8 or (depth - 2) % 6:
            raise ModelError(f"depth={depth} is not 6n + 2: 20, 32, 44, 56 and 110 are usual")
        blocks = (depth - 2) // 6
        self.conv1 = nn.Conv2d(channels, WIDTHS[0], 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(WIDTHS[0])
        self.layer1 = _stage(WIDTHS[0], WIDTHS[0], blocks, 1)
        self.layer2 = _stage(WIDTHS[0], WIDTHS[1], blocks, 2)
        self.layer3 = _stage(WIDTHS[1], WIDTHS[2], blocks, 2)
        self.linear = nn.Linear(WIDTHS[2], num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        hidden = self.layer3(self.layer2(self.layer1(hidden)))
        scores: torch.Tensor = self.linear(hidden.mean((2, 3)))
        return scores


def sized_as(depth: int, weights: Mapping[str, torch.Tensor]) -> ResNet:
    """A network whose input channels and classes are those of a state dict; 3 and 10 without."""
    first, last = weights.get("conv1.weight"), weights.get("linear.weight")
    channels = 3 if first is None or first.ndim != 4 else first.shape[1]
    return ResNet(depth, 10 if last is None else len(last), channels)


def _stage(channels_in: int, channels: int, blocks: int, stride: int) -> nn.Sequential:
    first = Block(channels_in, channels, stride)
    return nn.Sequential(first, *(Block(channels, channels, 1) for _ in range(blocks - 1)))
