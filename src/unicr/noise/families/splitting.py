"""Splitting noise (Levine & Feizi 2021) for inputs in [0, 1]: uniform noise, seen through the box.

Every coordinate falls into an interval of length 2λ whose place is uniform, and the model sees the
middle of that interval, cut to [0, 1]. The middle of the uncut interval is x + U(−λ, λ), and the
cut is a function of that middle alone: f∘cut under uniform noise, with all of its radii.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unicr.errors import NoiseError
from unicr.noise.families.uniform import Uniform

if TYPE_CHECKING:
    import torch


class Splitting(Uniform):
    """`scale` is λ, half of an interval; an interval that holds the whole box is seen as ½."""

    name = "splitting"
    formula = "middle of the interval [m - a, m + a], m = x + uniform, cut to [0, 1]"
    example = "splitting(scale=0.5)"

    def seen(self, noisy: torch.Tensor) -> torch.Tensor:
        """The middle of [m − λ, m + λ] ∩ [0, 1] for every value m."""
        low, high = (noisy - self.scale).clamp(0.0, 1.0), (noisy + self.scale).clamp(0.0, 1.0)
        return (low + high) / 2

    def check_input(self, x: torch.Tensor) -> None:
        """Inputs lie in the box."""
        outside = x[~((x >= 0) & (x <= 1))]
        if outside.numel():
            raise NoiseError(
                f"the input holds {float(outside[0]):.6g}: splitting noise needs inputs in the "
                "box [0, 1] (a model's own normalisation goes into --mean and --std)"
            )
