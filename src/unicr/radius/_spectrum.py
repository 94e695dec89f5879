"""A direction of i.i.d. noise, up to what matters: how many coordinates move by how much."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unicr.errors import RadiusError
from unicr.norms import Norm
from unicr.values import Array

MOST_LEVELS = 4  # levels that a direction is described by; one with more is told as a vector


@dataclass(frozen=True)
class Spectrum:
    """`count` coordinates of relative size `size`, for each (size, count); the rest are zero."""

    levels: tuple[tuple[float, int], ...]

    def __post_init__(self) -> None:
        if not any(size != 0 and count > 0 for size, count in self.levels):
            raise RadiusError(f"the direction {self.levels} moves no coordinate")

    @property
    def coordinates(self) -> int:
        """How many coordinates move."""
        return sum(count for _, count in self.levels)

    def unit(self, norm: Norm) -> Spectrum:
        """The same direction with ‖δ‖_p = 1."""
        top = max(abs(size) for size, _ in self.levels)
        if math.isinf(norm.p):
            length = top
        else:
            total = sum(count * (abs(size) / top) ** norm.p for size, count in self.levels)
            length = top * total ** (1 / norm.p)
        return Spectrum(tuple((size / length, count) for size, count in self.levels))

    def shifts(self, factor: float) -> list[tuple[float, int]]:
        """The moves of the perturbation that is `factor` times this direction."""
        return [(size * factor, count) for size, count in self.levels]

    @property
    def text(self) -> str:
        """For people: '1 coordinate', '3072 equal coordinates', '1 of size 1 + 3071 of 0.004'."""
        if len(self.levels) == 1:
            size, count = self.levels[0]
            sign = " (negative)" if size < 0 else ""
            return f"{count} equal coordinates{sign}" if count > 1 else f"1 coordinate{sign}"
        top = max(abs(size) for size, _ in self.levels)
        return " + ".join(f"{count} of size {size / top:.3g}" for size, count in self.levels)


def equal_spectrum(count: int, sign: float = 1.0) -> Spectrum:
    """`count` equal coordinates."""
    return Spectrum(((sign, count),))


def dusty_spectrum(big: int, dust: int, share: float, norm: Norm) -> Spectrum:
    """`big` large coordinates and `dust` small ones that carry `share` of Σ|δ_i|^p."""
    p = norm.p
    return Spectrum(((((1 - share) / big) ** (1 / p), big), ((share / dust) ** (1 / p), dust)))


def pair_spectrum(ratio: float) -> Spectrum:
    """Two coordinates, the second `ratio` times the first."""
    return Spectrum(((1.0, 1), (ratio, 1)))


def read_spectrum(direction: Array) -> Spectrum | None:
    """The levels of a vector, or None if it has more than a few."""
    values = direction[direction != 0]
    sizes, counts = np.unique(np.round(values / np.abs(values).max(), 12), return_counts=True)
    if len(sizes) > MOST_LEVELS:
        return None
    pairs = sorted(
        zip(sizes.tolist(), counts.tolist(), strict=True), key=lambda pair: -abs(pair[0])
    )
    top = float(np.abs(values).max())
    return Spectrum(tuple((size * top, int(count)) for size, count in pairs))
