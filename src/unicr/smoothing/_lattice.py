"""The lattice that inputs are moved to and noise is drawn on, chosen from both."""

from __future__ import annotations

import math
from collections.abc import Iterable

from unicr.extras import torch
from unicr.noise import IID, Lattice, Noise
from unicr.noise.internal import lattice_for
from unicr.norms import Norm


def chosen_lattice(
    inputs: Iterable[torch.Tensor], noise: Noise, norms: Iterable[Norm], *, fine: bool = False
) -> Lattice:
    """The lattice that fits inputs and noise: see `unicr.noise.internal.lattice_for`."""
    values, size = [x.cpu().numpy() for x in inputs], size_of(noise)
    return lattice_for(values, size, values[0].size, [norm.p for norm in norms], fine=fine)


def size_of(noise: Noise) -> float:
    """Sigma, or the scale where there is none."""
    if math.isfinite(noise.sigma):
        return noise.sigma
    return noise.scale if isinstance(noise, IID) else 1.0
