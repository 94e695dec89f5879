"""Noise on a lattice under a key: integers of the exact law for i.i.d. noise, added to integers.

`_chacha` makes the bits, `_integers` the law; the compiled kernel and numpy give the same values.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unicr.errors import NoiseError
from unicr.noise._base import IID, Noise
from unicr.noise._chacha import ROUNDS
from unicr.noise._integers import IntegerLaw, Integers, integer_law
from unicr.noise._lattice import Lattice
from unicr.noise._sampling import PIECE, in_pieces

if TYPE_CHECKING:
    import torch

_TILE = 1024


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
        return integer_law(self.noise, float(self.lattice.step)) if self._iid else None

    @property
    def _iid(self) -> bool:
        return isinstance(self.noise, IID)

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
        import torch

        n, dim = out.shape[0], int(np.prod(out.shape[1:]))
        if base.size != dim or out.dtype != torch.float32 or not out.is_contiguous():
            raise NoiseError(f"{base.size} integers cannot go into {out.dtype} {tuple(out.shape)}")
        if start < 0 or (start + n) * dim >= 1 << 62:
            raise NoiseError(f"start={start}, n={n}, dim={dim}: too many draws for one stream")
        if out.device.type != "cpu":
            here = torch.empty(out.shape, dtype=torch.float32)
            return out.copy_(self.add(base, here, key=key, start=start, threads=threads))
        if n and dim:
            flat = out.detach().view(-1).numpy()
            row = np.ascontiguousarray(base, dtype=np.int64).reshape(-1)
            if self._law is None:
                self._rounded(row, flat, key, start, n)
            else:
                _fill(self._law, self.lattice, row, flat, key, start * dim, threads)
        return out

    def _rounded(self, row: Integers, flat: NDArray[Any], key: bytes, start: int, n: int) -> None:
        """Real-valued noise, rounded: its stream is seeded with all bits of the key."""
        import torch

        seed = int.from_bytes(key, "little")
        drawn = self.noise.sample(n, (row.size,), seed=seed, start=start, dtype=torch.float64)
        integers = np.floor(drawn.numpy() / float(self.lattice.step) + 0.5)
        flat[:] = self.lattice.floats((integers + row).ravel())


def _fill(
    law: IntegerLaw,
    lattice: Lattice,
    row: Integers,
    flat: NDArray[np.float32],
    key: bytes,
    first: int,
    threads: int | None,
) -> None:
    dim, step = row.size, float(lattice.step)
    tile = np.tile(row.astype(np.int32), -(-_TILE // dim))
    secret = np.frombuffer(key, "<u4").astype(np.uint32)
    kernel = _kernel()

    def put(at: Integers, integers: Integers) -> None:
        flat[at] = lattice.floats(integers + row[at % dim])

    def work(low: int, high: int) -> None:
        if kernel is None:
            for a in range(low, high, PIECE):
                at = np.arange(a, min(a + PIECE, high))
                put(at, law.evaluate(key, (at + first).astype(np.uint64)))
            return
        left = np.empty((high - low, 2), np.int64)
        count = kernel(
            flat[low:high], left, np.uint64(first + low), secret, ROUNDS, tile, low % tile.size,
            step, law.guide, law.shift, law.bits, law.wide, law.ends, law.starts, law.widths,
        )  # fmt: skip
        if count:
            at, k = left[:count, 0] + low, left[:count, 1]
            put(at, law.starts[k] + law.inside(key, (at + first).astype(np.uint64), k))

    in_pieces(work, flat.size, threads)


@functools.cache
def _kernel() -> Any:
    try:
        from unicr.noise import _lattice_kernels
    except ImportError:
        return None
    return _lattice_kernels.fill_integers
