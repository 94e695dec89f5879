"""Procedural noise (Co et al., 2019): Perlin and Gabor patterns, the best of several.

Perlin noise adds octaves of smooth gradient noise and folds the sum with a sine; Gabor noise is a
sum of randomly placed wave packets. Both are images without any knowledge of the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch.nn import functional

from unicr.lab.attack._base import Attack, Bounds, Targets, best_of
from unicr.norms import Norm, linf

PACKETS = 64


@dataclass(frozen=True)
class Procedural(Attack):
    """The best of `patterns` Perlin and as many Gabor patterns, each with both signs.

    In ℓ∞ only the sign of a pattern counts: every pixel moves as far as it may.
    """

    name: ClassVar[str] = "procedural"
    images_only: ClassVar[bool] = True
    EFFORT: ClassVar[tuple[str, ...]] = ("patterns",)
    patterns: int = 8

    def _directions(self, targets: Targets, norm: Norm, bounds: Bounds, seed: int) -> torch.Tensor:
        height, width = targets.x.shape[-2:]

        def candidates() -> Iterator[torch.Tensor]:
            for _ in range(self.patterns):
                for pattern in (perlin(height, width), gabor(height, width)):
                    shown = pattern.sign() if norm == linf else pattern
                    yield shown.expand(targets.x.shape)
                    yield -shown.expand(targets.x.shape)

        return best_of(targets, norm, bounds, candidates())


def perlin(height: int, width: int) -> torch.Tensor:
    """A Perlin pattern with values in [−1, 1]; its scale, octaves and folds are drawn at random."""
    size = max(height, width)
    period = size * _uniform(0.15, 1.0)
    octaves = int(torch.randint(1, 5, ()))
    total = torch.zeros(height, width)
    for octave in range(octaves):
        total += _gradient_noise(height, width, period / 2**octave) / 2**octave
    return torch.sin(2 * math.pi * _uniform(0.5, 4.0) * total)


def _gradient_noise(height: int, width: int, period: float) -> torch.Tensor:
    """Smooth noise that is 0 on a grid of the given period, where random gradients sit."""
    y = (torch.arange(height) + 0.5) / period
    x = (torch.arange(width) + 0.5) / period
    angle = 2 * math.pi * torch.rand(int(y[-1]) + 2, int(x[-1]) + 2)
    row, column = y.long()[:, None], x.long()[None, :]
    fy, fx = (y - y.floor())[:, None], (x - x.floor())[None, :]
    corners = []
    for dy in (0, 1):
        for dx in (0, 1):
            turned = angle[row + dy, column + dx]
            corners.append(torch.sin(turned) * (fy - dy) + torch.cos(turned) * (fx - dx))
    sy, sx = _fade(fy), _fade(fx)
    upper = corners[0] + sx * (corners[1] - corners[0])
    lower = corners[2] + sx * (corners[3] - corners[2])
    return upper + sy * (lower - upper)


def _fade(t: torch.Tensor) -> torch.Tensor:
    """6t⁵ − 15t⁴ + 10t³: 0 to 1 with two zero derivatives at both ends."""
    return t**3 * (t * (6 * t - 15) + 10)


def gabor(height: int, width: int) -> torch.Tensor:
    """Gabor noise with values in [−1, 1]: wave packets of one wavelength and direction."""
    size = max(height, width)
    spread, wavelength = size * _uniform(0.05, 0.25), size * _uniform(0.1, 0.7)
    angle = _uniform(0.0, math.pi)
    reach = math.ceil(2 * spread)
    steps = torch.arange(-reach, reach + 1, dtype=torch.float32)
    y, x = torch.meshgrid(steps, steps, indexing="ij")
    along = x * math.cos(angle) + y * math.sin(angle)
    packet = torch.exp(-(x**2 + y**2) / (2 * spread**2))
    packet *= torch.cos(2 * math.pi * along / wavelength)
    area = torch.zeros(height + 2 * reach, width + 2 * reach)
    places = torch.randint(area.numel(), (PACKETS,))
    area.view(-1)[places] = 2.0 * torch.randint(0, 2, (PACKETS,)) - 1.0
    pattern = functional.conv2d(area[None, None], packet[None, None])[0, 0]
    return pattern / pattern.abs().max().clamp_min(1e-12)


def _uniform(low: float, high: float) -> float:
    return low + (high - low) * float(torch.rand(()))
