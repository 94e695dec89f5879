"""The residual networks for CIFAR-10 of He et al. 2015, section 4.2: depth 6n + 2.

Shortcuts are option A: where the size changes, every second pixel is taken and new channels are
zero, so that shortcuts have no weights; or, where weights have them, option B: 1×1 convolutions.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

from unicr.errors import ModelError

WIDTHS = (16, 32, 64)


class Block(nn.Module):
    """Two 3×3 convolutions and a shortcut, `projected` by a convolution where the size changes."""

    def __init__(self, channels_in: int, channels: int, stride: int, projected: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride = stride
        self.new_channels = channels - channels_in
        if projected and (stride != 1 or self.new_channels):
            step = nn.Conv2d(channels_in, channels, 1, stride, bias=False)
            self.downsample = nn.Sequential(step, nn.BatchNorm2d(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x
        if hasattr(self, "downsample"):
            shortcut = self.downsample(x)
        elif self.stride != 1 or self.new_channels:
            before = self.new_channels // 2
            after = self.new_channels - before
            shortcut = functional.pad(
                x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, before, after)
            )
        hidden = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        return functional.relu(self.bn2(self.conv2(hidden)) + shortcut, inplace=True)


class ResNet(nn.Module):
    """A CIFAR-10 residual network: three stages of n blocks with 16, 32 and 64 channels.

    `channels` are those of the input: 3 for colour images, 1 for grey ones; `projected` asks for
    shortcuts by 1×1 convolutions.
    """

    def __init__(
        self, depth: int = 20, num_classes: int = 10, channels: int = 3, projected: bool = False
    ) -> None:
        super().__init__()
        if depth < 8 or (depth - 2) % 6:
            raise ModelError(f"depth={depth} must be 6n + 2, for example 20, 32, 44, 56 or 110")
        blocks = (depth - 2) // 6
        self.conv1 = nn.Conv2d(channels, WIDTHS[0], 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(WIDTHS[0])
        self.layer1 = _stage(WIDTHS[0], WIDTHS[0], blocks, 1, projected)
        self.layer2 = _stage(WIDTHS[0], WIDTHS[1], blocks, 2, projected)
        self.layer3 = _stage(WIDTHS[1], WIDTHS[2], blocks, 2, projected)
        self.linear = nn.Linear(WIDTHS[2], num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        hidden = self.layer3(self.layer2(self.layer1(hidden)))
        scores: torch.Tensor = self.linear(hidden.mean((2, 3)))
        return scores


def sized_as(depth: int, weights: Mapping[str, torch.Tensor]) -> ResNet:
    """A network with the channels, classes and shortcuts of a state dict; 3, 10 and A without."""
    first, last = weights.get("conv1.weight"), weights.get("linear.weight")
    channels = 3 if first is None or first.ndim != 4 else first.shape[1]
    projected = "layer2.0.downsample.0.weight" in weights
    return ResNet(depth, 10 if last is None else len(last), channels, projected)


def _stage(
    channels_in: int, channels: int, blocks: int, stride: int, projected: bool
) -> nn.Sequential:
    first = Block(channels_in, channels, stride, projected)
    others = (Block(channels, channels, 1, projected) for _ in range(blocks - 1))
    return nn.Sequential(first, *others)
