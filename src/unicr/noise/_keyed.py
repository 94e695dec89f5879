"""Noise on a lattice under a key: integers of the exact law for i.i.d. noise, added to integers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from unicr.errors import NoiseError
from unicr.noise._base import IID, Draws, Noise
from unicr.noise._lattice import Integers, Lattice
from unicr.sample import Fill, IntegerLaw, integer_law

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class LatticeNoise:
    """ε′ = h·round(ε/h): a noise on a lattice, drawn from a keyed stream."""

    noise: Noise
    lattice: Lattice

    @property
    def tau(self) -> float | None:
        """A bound of the total variation between one coordinate drawn and its law.

        None where there is no bound: spherical and joint noises are drawn as real numbers, then
        rounded, and nothing is known of the law of a float.
        """
        return None if self._law is None else self._law.tau

    @functools.cached_property
    def _law(self) -> IntegerLaw | None:
        if not isinstance(self.noise, IID):
            return None
        return integer_law(self.noise, float(self.lattice.step))

    def add(
        self,
        base: Integers,
        out: torch.Tensor,
        *,
        key: bytes,
        start: int = 0,
        threads: int | None = None,
    ) -> torch.Tensor:
        """Write noisy copies number start, start + 1, … of the lattice point `base` into `out`.

        Copy number s under a key is always the same. `out` has shape (n, *shape) and float32.
        """
        return self.copies(base, key=key, threads=threads)(out, start)

    def copies(
        self, base: Integers, *, key: bytes, threads: int | None = None
    ) -> Callable[[torch.Tensor, int], torch.Tensor]:
        """`add` for many batches of one point: what they have in common is made ready once."""
        import torch

        row = np.array(base, dtype=np.int64).reshape(-1)
        dim, law = row.size, self._law
        draw: Callable[[torch.Tensor, int], None]
        if law is None:
            draw = partial(self._round, row, key)
        else:
            step = float(self.lattice.step)
            fill = Fill(law, row, key=key, step=step, integers=True, threads=threads)
            draw = fill.fill_tensor

        def add(out: torch.Tensor, start: int = 0) -> torch.Tensor:
            n = out.shape[0]
            if out.dtype != torch.float32 or not out.is_contiguous() or n * dim != out.numel():
                raise NoiseError(f"{dim} integers cannot go into {out.dtype} {tuple(out.shape)}")
            if out.numel():
                draw(out, start)
            return out.copy_(self.noise.seen(out))

        return add

    def _round(self, row: Integers, key: bytes, out: torch.Tensor, start: int) -> None:
        """Real-valued noise under the key, rounded."""
        import torch

        drawn = torch.empty(out.shape[0], row.size, dtype=torch.float64)
        self.noise._fill(drawn, Draws(key, start), None)
        integers = np.floor(drawn.numpy() / float(self.lattice.step) + 0.5) + row
        out.copy_(torch.from_numpy(self.lattice.floats(integers)).view(out.shape))
