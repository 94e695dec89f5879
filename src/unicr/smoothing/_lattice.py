"""The grid that inputs are moved to and noise is drawn on, chosen from both."""

from __future__ import annotations

import math
from collections.abc import Iterable

from unicr.extras import torch
from unicr.noise import IID, Lattice, Noise
from unicr.noise.internal import choose_lattice, find_own_grid
from unicr.norms import Norm


def lattice_for(
    inputs: Iterable[torch.Tensor], noise: Noise, norms: Iterable[Norm], *, own: bool = False
) -> Lattice:
    """A grid so fine that radii hold for every change (see `unicr.noise.internal.choose_lattice`).

    With `own`, the grid that 8-bit and 16-bit images have by themselves, where they have one.
    """
    values = [x.cpu().numpy() for x in inputs]
    if own and (grid := find_own_grid(values)) is not None:
        return grid
    return choose_lattice(values, size_of(noise), values[0].size, [norm.p for norm in norms])


def size_of(noise: Noise) -> float:
    """Sigma, or the scale where there is none."""
    if math.isfinite(noise.sigma):
        return noise.sigma
    return noise.scale if isinstance(noise, IID) else 1.0
