"""Votes by class at the offsets of splitting noise, one copy for each offset.

On the lattice, x in steps, W = 2λ is whole. Copy number s puts the ends of the intervals of
coordinate i at s + place_i + ½ (mod W); the places are fixed for the whole of g.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from unicr.errors import CertifyError
from unicr.extras import torch
from unicr.noise import Lattice, Noise, Splitting
from unicr.smoothing.measures.classes import ClassVotes

CLOSE = 1e-12  # how far from a whole number of steps 2λ may be written


def count_offsets(noise: Noise, lattice: Lattice | None) -> int:
    """How many offsets there are, W; refused where not all of them can be counted."""
    if not isinstance(noise, Splitting) or lattice is None:
        raise CertifyError(
            f"every offset is counted of splitting noise on a lattice, not of {noise.text}"
            f"{'' if lattice else ' on real numbers'}: take --noise 'splitting(scale=0.5)' and "
            "--lattice 1/255"
        )
    width = 2 * Fraction(noise.scale) / lattice.step
    whole = max(round(width), 1)
    if abs(width - whole) > CLOSE * whole:
        raise CertifyError(
            f"{noise.text} on the lattice {lattice.text}: an interval has {float(width):.6g} "
            f"steps, not a whole number: take scale={float(whole * lattice.step / 2)!r} for {whole}"
        )
    return whole


@dataclass(frozen=True)
class OffsetVotes(ClassVotes):
    """Copies number s, s + 1, … have the offsets s, s + 1, … (mod W); W of them are all."""

    name = "offsets"

    def copies(
        self, noise: Noise, lattice: Lattice | None, x: torch.Tensor, key: bytes
    ) -> Callable[[torch.Tensor, int], object]:
        """What fills a batch from number `start` on; the places follow from the key of g."""
        width = count_offsets(noise, lattice)
        assert lattice is not None
        if not lattice.holds(x.cpu().numpy()):
            raise CertifyError(
                f"the input is not on the grid {lattice.text}, and counting every offset speaks of "
                "inputs on the grid only: leave --rule every out"
            )
        base = lattice.integers(x.cpu().numpy()).ravel()
        digest = hashlib.shake_256(b"offsets" + key).digest(8 * base.size)
        places = (np.frombuffer(digest, "<u8") % np.uint64(width)).astype(np.int64)
        half = float(lattice.step) / 2

        def fill(out: torch.Tensor, start: int) -> None:
            number = np.arange(start, start + len(out), dtype=np.int64)[:, None]
            end = (number + places) % width  # the interval begins at end + ½ + W·(whole number)
            begin = end + width * ((base - end - 1) // width)
            middle = (2 * begin + 1 + width) * half
            seen = noise.seen(torch.from_numpy(middle))
            out.copy_(seen.to(torch.float32).reshape(out.shape))

        return fill
