"""Noise on a lattice under a key: integers of the exact law for i.i.d. noise, added to integers.

`_chacha` makes the bits, `_integers` the law; the compiled kernel and numpy give the same values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unicr.errors import NoiseError
from unicr.noise._base import IID, Noise
from unicr.noise._integers import IntegerLaw, Integers, integer_law
from unicr.noise._lattice import Lattice
from unicr.noise._sampling import PIECE, in_pieces
from unicr.noise._streams import compiled

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
        return self.copies(base, key=key, threads=threads)(out, start)

    def copies(
        self, base: Integers, *, key: bytes, threads: int | None = None
    ) -> Callable[[torch.Tensor, int], torch.Tensor]:
        """`add` for many batches of one point: what they have in common is made ready once."""
        import torch

        row = np.array(base, dtype=np.int64).reshape(-1)
        dim, law = row.size, self._law
        draw = (
            partial(self._rounded, row, key)
            if law is None
            else _Fill(law, self.lattice, row, key, threads)
        )

        def add(out: torch.Tensor, start: int = 0) -> torch.Tensor:
            n = out.shape[0]
            if out.dtype != torch.float32 or not out.is_contiguous() or n * dim != out.numel():
                raise NoiseError(f"{dim} integers cannot go into {out.dtype} {tuple(out.shape)}")
            if start < 0 or (start + n) * dim >= 1 << 62:
                raise NoiseError(f"start={start}, n={n}, dim={dim}: too many draws for one stream")
            here = out if out.device.type == "cpu" else torch.empty(out.shape)
            if out.numel():
                draw(here.detach().view(-1).numpy(), start)
            return out.copy_(self.noise.seen(here))

        return add

    def _rounded(self, row: Integers, key: bytes, flat: NDArray[Any], start: int) -> None:
        """Real-valued noise, rounded: its stream is seeded with all bits of the key."""
        import torch

        seed, n = int.from_bytes(key, "little"), flat.size // row.size
        drawn = self.noise.sample(n, (row.size,), seed=seed, start=start, dtype=torch.float64)
        integers = np.floor(drawn.numpy() / float(self.lattice.step) + 0.5)
        flat[:] = self.lattice.floats((integers + row).ravel())


class _Fill:
    """Writes points + integers of the law, times the step, into float32."""

    def __init__(
        self, law: IntegerLaw, lattice: Lattice, row: Integers, key: bytes, threads: int | None
    ) -> None:
        self.law, self.lattice, self.row, self.key, self.threads = law, lattice, row, key, threads
        self.kernel = compiled("_lattice_kernels", "fill_integers")
        tile = np.tile(row.astype(np.int32), -(-_TILE // max(row.size, 1)))
        secret, origin = np.frombuffer(key, "<u4").astype(np.uint32), law.origin & 0xFFFFFFFF
        self.head = secret, tile
        self.tail = (
            float(lattice.step), law.guide, law.rows, law.first, np.uint32(origin), law.wide,
            law.ends, law.starts, law.widths, law.kinds,
        )  # fmt: skip

    def __call__(self, flat: NDArray[np.float32], start: int) -> None:
        law, dim = self.law, self.row.size
        first = start * dim

        def work(low: int, high: int) -> None:
            if self.kernel is None:
                for a in range(low, high, PIECE):
                    at = np.arange(a, min(a + PIECE, high))
                    put(at, law.evaluate(self.key, (at + first).astype(np.uint64)))
                return
            undone = np.empty((high - low, 2), np.int64)
            offset, begin = low % self.head[1].size, np.uint64(first + low)
            count = self.kernel(flat[low:high], undone, begin, *self.head, offset, *self.tail)
            if count:
                left.append(undone[:count] + np.array([low, 0]))

        def put(at: Integers, integers: Integers) -> None:
            flat[at] = self.lattice.floats(integers + self.row[at % dim])

        left: list[Integers] = []
        in_pieces(work, flat.size, self.threads)
        if left:
            at, k = np.concatenate(left).T
            put(at, law.starts[k] + law.inside(self.key, (at + first).astype(np.uint64), k))
