"""Splitting noise (Levine & Feizi 2021) for inputs in [0, 1]: uniform noise, seen through the box.

Every coordinate falls into an interval of length 2λ whose place is uniform, and the model sees the
middle of that interval, cut to [0, 1]. The middle of the uncut interval is x + U(−λ, λ), and the
cut is a function of that middle alone: f∘cut under uniform noise, with all of its radii.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unicr.errors import NoiseError
from unicr.noise._base import View
from unicr.noise._family import IIDFamily
from unicr.noise.families.uniform import Uniform

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class IntervalView(View):
    """`scale` is λ, half of an interval; an interval that holds the whole box is seen as ½."""

    def see(self, noisy: torch.Tensor, scale: float) -> torch.Tensor:
        """The middle of [m − λ, m + λ] ∩ [0, 1] for every value m."""
        low, high = (noisy - scale).clamp(0.0, 1.0), (noisy + scale).clamp(0.0, 1.0)
        return (low + high) / 2

    def check_input(self, x: torch.Tensor) -> None:
        """Inputs lie in the box."""
        outside = x[~((x >= 0) & (x <= 1))]
        if outside.numel():
            raise NoiseError(
                f"the input has the value {float(outside[0]):.6g}, but splitting noise needs "
                "inputs between 0 and 1 (pass the normalisation of the model as --mean and --std)"
            )

    def interval(self, scale: float) -> float | None:
        return 2 * scale


splitting = IIDFamily(
    "splitting",
    Uniform,
    view=IntervalView(),
    formula="middle of the interval [m - a, m + a], m = x + uniform, cut to [0, 1]",
    example="splitting(scale=0.5)",
)
