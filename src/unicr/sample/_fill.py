"""Draws written into an array: a row of numbers plus integers of the law, times the step."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unicr.errors import NoiseError
from unicr.sample._law import EXACT, IntegerLaw, Integers
from unicr.sample._stream import kernel
from unicr.sample._torch import CHUNK, Tables, draw, tables_on

if TYPE_CHECKING:
    import torch

PIECE = 1 << 14  # draws; fewer are not worth a thread
_TILE = 1024  # a row is repeated to this length, at which the kernel's inner loops are long enough
MOST_DRAWS = 1 << 62  # of one key
NO_DOUBLES = ("mps",)


def draw_integers(law: IntegerLaw, key: bytes, first: int, count: int) -> Integers:
    """Draws number first, …, first + count − 1 under a key, in plain numpy."""
    parts = [
        law.evaluate(key, np.arange(a, min(a + PIECE, first + count), dtype=np.uint64))
        for a in range(first, first + count, PIECE)
    ]
    return np.concatenate([np.empty(0, np.int64), *parts])


@functools.cache
def has_triton() -> bool:
    """Whether triton is installed; torch for GPUs brings it."""
    return importlib.util.find_spec("triton") is not None


class Fill:
    """Writes x + ε for many samples of one x: sample s, coordinate j has draw number s·d + j.

    With `integers` the row holds whole numbers and (row + e)·step is written: the sum is exact, the
    product is rounded once, then once to the type of the output. Else row + e·step is written,
    product and sum rounded as doubles, then to the type of the output.
    """

    def __init__(
        self,
        law: IntegerLaw,
        row: ArrayLike,
        *,
        key: bytes,
        step: float,
        integers: bool,
        threads: int | None = None,
    ) -> None:
        self._law, self._key, self._step, self._integers = law, key, step, integers
        self._row = np.asarray(row, dtype=np.float64)
        if integers and not np.all(np.abs(self._row) < EXACT):
            raise NoiseError("the integers of an input must be below 2^52: take a coarser lattice")
        self._tile = np.tile(self._row, -(-_TILE // max(self._row.size, 1)))
        self._threads = threads
        self._kernel = kernel("fill_draws")
        self._tables: dict[str, Tables] = {}
        self._words = np.frombuffer(key, "<u4").astype(np.uint32)

    def __call__(self, flat: NDArray[Any], start: int) -> None:
        """Write samples number start, … into a one-dimensional float array."""
        law, guide = self._law, self._law.guide
        down = np.uint32(32 - (guide.cells.size.bit_length() - 1))
        first = self._first_draw(start, flat.size)
        left: list[Integers] = []

        def work(low: int, high: int) -> None:
            undone = np.empty((high - low, 2), np.int64)
            count = self._kernel(
                flat[low:high], undone, np.uint64(first + low), self._words, self._tile,
                low % self._tile.size, self._integers, self._step, guide.cells, down, guide.first,
                guide.origin, guide.wide, guide.starts, guide.masks, law.ends, law.starts,
                law.widths, law.kinds,
            )  # fmt: skip
            if count:
                left.append(undone[:count] + np.array([low, 0]))

        def work_in_numpy(low: int, high: int) -> None:
            e = draw_integers(law, self._key, first + low, high - low)
            self._put(flat, np.arange(low, high), e)

        in_pieces(work if self._kernel else work_in_numpy, flat.size, self._threads)
        if left:
            at, k = np.concatenate(left).T
            inside = law.inside(self._key, (at + first).astype(np.uint64), k)
            self._put(flat, at, law.starts[k] + inside)

    def fill_tensor(self, out: torch.Tensor, start: int) -> None:
        """Write samples number start, … into a contiguous tensor, on its device: the same values.

        A device without double precision gets what the processor draws.
        """
        import torch

        if out.device.type == "cpu":
            self(out.detach().view(-1).numpy(), start)
        elif out.device.type in NO_DOUBLES:
            here = torch.empty(out.shape, dtype=out.dtype)
            self(here.view(-1).numpy(), start)
            out.copy_(here)
        elif out.device.type == "cuda" and has_triton():
            self.fill_by_triton(out, start)
        else:
            self.fill_by_torch(out, start)

    def fill_by_torch(self, out: torch.Tensor, start: int) -> None:
        """`fill_tensor` in plain torch operations, whatever the device."""
        import torch

        flat = out.detach().view(-1)
        first = self._first_draw(start, flat.numel())
        tables = self._tables_on(flat.device)
        for low in range(0, flat.numel(), CHUNK):
            high = min(low + CHUNK, flat.numel())
            e, on_host = draw(tables, self._key, first + low, high - low)
            flat[low:high] = self._sum(torch.arange(low, high, device=flat.device), e)
            self._draw_on_host(flat, on_host.nonzero().view(-1) + low, first)

    def fill_by_triton(self, out: torch.Tensor, start: int, lanes: int | None = None) -> None:
        """`fill_tensor` by one kernel of the GPU; `lanes` blocks are made by each program."""
        import torch

        from unicr.sample._triton import LANES, launch

        flat = out.detach().view(-1)
        first = self._first_draw(start, flat.numel())
        tables = self._tables_on(flat.device)
        # eight times the share that `host_share` allows, and room for few draws
        left = torch.empty(4096 + flat.numel() // 25, dtype=torch.int64, device=flat.device)
        count = torch.zeros(1, dtype=torch.int64, device=flat.device)
        key = torch.from_numpy(self._words.astype(np.int64)).to(flat.device)
        row = self._row_on(flat.device)
        launch(
            flat, left, count, key, row, tables, first, self._step, self._integers, lanes or LANES
        )
        listed = int(count)
        if listed > left.numel():
            self.fill_by_torch(out, start)
        else:
            self._draw_on_host(flat, left[:listed], first)

    def _tables_on(self, device: torch.device) -> Tables:
        if str(device) not in self._tables:
            self._tables[str(device)] = tables_on(self._law, device)
        return self._tables[str(device)]

    def _row_on(self, device: torch.device) -> torch.Tensor:
        import torch

        row = torch.from_numpy(self._row).to(device)
        return row.to(torch.int64) if self._integers else row

    def _sum(self, at: torch.Tensor, e: torch.Tensor) -> torch.Tensor:
        """The numbers to write at these places, as doubles."""
        import torch

        beside = self._row_on(at.device)[at % self._row.size]
        if self._integers:
            return (beside + e).to(torch.float64).mul_(self._step)
        return beside + e.to(torch.float64).mul_(self._step)

    def _draw_on_host(self, flat: torch.Tensor, at: torch.Tensor, first: int) -> None:
        """Fill in the draws that a device left to the processor."""
        import torch

        if at.numel():
            positions = (at.cpu().numpy() + first).astype(np.uint64)
            e = torch.from_numpy(self._law.evaluate(self._key, positions)).to(flat.device)
            flat[at] = self._sum(at, e).to(flat.dtype)

    def _first_draw(self, start: int, count: int) -> int:
        first = start * self._row.size
        if start < 0 or first + count >= MOST_DRAWS:
            raise NoiseError(f"start={start}, dim={self._row.size}: too many draws for one stream")
        return first

    def _put(self, flat: NDArray[Any], at: Integers, e: Integers) -> None:
        row = self._row[at % self._row.size]
        if self._integers:
            flat[at] = (row.astype(np.int64) + e).astype(np.float64) * self._step
        else:
            flat[at] = row + e.astype(np.float64) * self._step


def in_pieces(work: Callable[[int, int], None], size: int, threads: int | None) -> None:
    """Call work(low, high) for pieces of 0 … size, side by side in as many threads (None: all)."""
    if threads is None:
        threads = _default_threads()
    elif threads < 1:
        raise NoiseError(f"threads must be at least 1 (or None for all), got {threads!r}")
    pieces = max(1, min(threads, size // PIECE))
    cuts = [size * i // pieces for i in range(pieces + 1)]
    pending = [_pool().submit(work, cuts[i], cuts[i + 1]) for i in range(1, pieces)]
    try:
        work(cuts[0], cuts[1])
    finally:
        for future in pending:
            future.result()


def _default_threads() -> int:
    torch = sys.modules.get("torch")
    return int(torch.get_num_threads()) if torch is not None else os.cpu_count() or 1


_pool_lock = threading.Lock()
_pools: list[ThreadPoolExecutor] = []


def _pool() -> ThreadPoolExecutor:
    with _pool_lock:
        if not _pools:
            _pools.append(ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="unicr-fill"))
        return _pools[0]


def _after_fork() -> None:
    """Threads do not survive a fork: a child (a data loader's worker) starts its own pool."""
    global _pool_lock
    _pool_lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
