"""A small convolutional network for digits, a million multiplications for 28×28 pixels.

Two 5×5 convolutions that halve the size, then two linear layers, ReLU between. A deeper one adds
3×3 convolutions with shortcuts after each of the first two. Three, trained by
`tools/train_builtin.py`, come with the package; `unicr train --arch lenet` and `--arch deep-lenet`
make others. Weights say how wide each layer is, how large the kernels are, how many convolutions
there are, and how many networks vote as a team.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import nn
from torch.nn import functional

from unicr.errors import ModelError

WIDTHS, HIDDEN = (16, 32), 128


class LeNet(nn.Module):
    """For images of shape (channels, height, width); `shape` is that of one input.

    `kernels` are the odd sizes of the convolutions, `widths` their channels, `extra` how many 3×3
    convolutions follow each. These add to what they are given, and begin by adding nothing.
    """

    def __init__(
        self,
        shape: tuple[int, ...] = (1, 28, 28),
        num_classes: int = 10,
        kernels: tuple[int, int] = (5, 5),
        widths: tuple[int, int] = WIDTHS,
        hidden: int = HIDDEN,
        extra: tuple[int, int] = (0, 0),
    ) -> None:
        super().__init__()
        channels, *size = shape
        area = 1
        for length in size:
            area *= -(-length // 4)
        self.conv1 = nn.Conv2d(channels, widths[0], kernels[0], 2, padding=kernels[0] // 2)
        self.conv2 = nn.Conv2d(*widths, kernels[1], 2, padding=kernels[1] // 2)
        self.hidden = nn.Linear(widths[1] * area, hidden)
        self.linear = nn.Linear(hidden, num_classes)
        self.extra1, self.extra2 = (
            nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(number))
            for width, number in zip(widths, extra, strict=True)
        )
        for added in (*self.extra1, *self.extra2):
            for parameter in added.parameters():
                nn.init.zeros_(parameter)
        # twice as fast on a CPU with channels last
        for layer in (self.conv1, self.conv2, *self.extra1, *self.extra2):
            weight = layer.weight.detach().contiguous(memory_format=torch.channels_last)
            layer.weight = nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.conv1(x), inplace=True)
        for added in self.extra1:
            x = functional.relu(x + added(x), inplace=True)
        x = functional.relu(self.conv2(x), inplace=True)
        for added in self.extra2:
            x = functional.relu(x + added(x), inplace=True)
        scores: torch.Tensor = self.linear(functional.relu(self.hidden(x.flatten(1)), inplace=True))
        return scores


def deep(shape: tuple[int, ...] = (1, 28, 28), num_classes: int = 10) -> LeNet:
    """Six times the work of the usual LeNet: four convolutions, two of them with shortcuts."""
    return LeNet(shape, num_classes, (7, 3), (32, 64), HIDDEN, (1, 1))


class Team(nn.Module):
    """Several LeNets that add their scores: where they err under different noise, p_A rises."""

    def __init__(self, members: Iterable[LeNet]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    @property
    def linear(self) -> nn.Module:
        """The last layer of one of them, which tells the number of classes."""
        return self.get_submodule("members.0.linear")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([member(x) for member in self.members]).sum(0)


def sized_as(weights: Mapping[str, torch.Tensor]) -> LeNet | Team:
    """A network, or a team, with the sizes of a state dict."""
    members: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in weights.items():
        if name.startswith("members."):
            number, _, own = name.removeprefix("members.").partition(".")
            members.setdefault(number, {})[own] = tensor
    if members:
        return Team(_sized_as(members[n]) for n in sorted(members, key=lambda n: (len(n), n)))
    return _sized_as(weights)


def _sized_as(weights: Mapping[str, torch.Tensor]) -> LeNet:
    try:
        first, second = weights["conv1.weight"].shape, weights["conv2.weight"].shape
        hidden, area = weights["hidden.weight"].shape
        sizes = (first[3], second[3]), (first[0], second[0]), hidden, _extra(weights)
        return LeNet((first[1], 4 * (area // second[0]), 1), len(weights["linear.weight"]), *sizes)
    except (KeyError, IndexError, ValueError):
        raise ModelError(
            "the weights do not belong to a lenet: it has conv1, conv2, hidden and linear, but "
            f"these are {', '.join(list(weights)[:5])}"
        ) from None


def _extra(weights: Mapping[str, torch.Tensor]) -> tuple[int, int]:
    """How many further convolutions each stage has."""
    named = [name.split(".")[0] for name in weights if name.endswith(".weight")]
    return named.count("extra1"), named.count("extra2")
