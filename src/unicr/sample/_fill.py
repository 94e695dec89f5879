"""Draws written into an array: a row of numbers plus integers of the law, times the step."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unicr.errors import NoiseError
from unicr.sample._law import EXACT, IntegerLaw, Integers
from unicr.sample._stream import kernel
from unicr.sample._torch import CHUNK, draw, host_share, key_on, list_host_draws, tables_on

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
            raise NoiseError(
                "an input is too large for this lattice (its integers must be below 2^52): use a "
                "coarser lattice"
            )
        self._tile = np.tile(self._row, -(-_TILE // max(self._row.size, 1)))
        self._threads = threads
        self._kernel = kernel("fill_draws")
        self._sent: tuple[torch.Tensor, torch.Tensor] | None = None
        self._from_host: _HostDraws | None = None
        self._here: torch.Tensor | None = None
        self._words = np.frombuffer(key, "<u4").astype(np.uint32)

    def __call__(self, flat: NDArray[Any], start: int) -> None:
        """Write samples number start, … into a one-dimensional float array."""
        law, guide = self._law, self._law.guide
        down = np.uint32(32 - (guide.cells.size.bit_length() - 1))
        first = self._first_draw(start, flat.size)
        pending: list[Integers] = []

        def work(low: int, high: int) -> None:
            undone = np.empty((high - low, 2), np.int64)
            count = self._kernel(
                flat[low:high], undone, np.uint64(first + low), self._words, self._tile,
                low % self._tile.size, self._integers, self._step, guide.cells, down, guide.first,
                guide.origin, guide.width, guide.starts, guide.masks, law.ends, law.starts,
                law.widths, law.kinds,
            )  # fmt: skip
            if count:
                pending.append(undone[:count] + np.array([low, 0]))

        def work_in_numpy(low: int, high: int) -> None:
            e = draw_integers(law, self._key, first + low, high - low)
            self._put(flat, np.arange(low, high), e)

        in_pieces(work if self._kernel else work_in_numpy, flat.size, self._threads)
        if pending:
            at, k = np.concatenate(pending).T
            inside = law.inside(self._key, (at + first).astype(np.uint64), k)
            self._put(flat, at, law.starts[k] + inside)

    def fill_tensor(self, out: torch.Tensor, start: int) -> None:
        """Write samples number start, … into a contiguous tensor, on its device: the same values.

        A device without double precision gets what the processor draws, while the device still
        works on what it got before: all devices of torch but the processor work in the background.
        """
        if out.device.type == "cpu":
            self(out.detach().view(-1).numpy(), start)
        elif out.device.type in NO_DOUBLES:
            out.copy_(self._draw_here(out, start))
        elif out.device.type == "cuda" and has_triton():
            self.fill_by_triton(out, start)
        else:
            self.fill_by_torch(out, start)

    def prepare(self, device: torch.device, start: int, samples: int) -> None:
        """Draw at once what a device leaves to the processor in these samples.

        Passes over them then move nothing between device and processor. The draws are found again
        by the first words of the stream, which costs a device a third to a half of the noise.
        """
        if device.type != "cpu" and device.type not in NO_DOUBLES:
            triton = device.type == "cuda" and has_triton()
            count = samples * self._row.size
            self._from_host = self._draw_on_host(device, start, count, triton)

    def fill_by_torch(self, out: torch.Tensor, start: int) -> None:
        """`fill_tensor` in plain torch operations, whatever the device."""
        import torch

        flat = out.detach().view(-1)
        from_host = self._host_draws_of(flat, start, triton=False)
        first = self._first_draw(start, flat.numel())
        tables, (key, row) = tables_on(self._law, flat.device), self._on(flat.device)
        for low in range(0, flat.numel(), CHUNK):
            high = min(low + CHUNK, flat.numel())
            e = draw(tables, key, first + low, high - low)
            at = torch.arange(first + low, first + high, device=flat.device) % row.numel()
            if self._integers:
                flat[low:high] = (row[at] + e).to(torch.float64).mul_(self._step)
            else:
                flat[low:high] = row[at] + e.to(torch.float64).mul_(self._step)
        from_host.write(flat, first)

    def fill_by_triton(self, out: torch.Tensor, start: int, lanes: int | None = None) -> None:
        """`fill_tensor` by one kernel of the GPU; `lanes` blocks are made by each program."""
        from unicr.sample._triton import LANES, launch

        flat = out.detach().view(-1)
        from_host = self._host_draws_of(flat, start, triton=True, lanes=lanes)
        first = self._first_draw(start, flat.numel())
        tables, (key, row) = tables_on(self._law, flat.device), self._on(flat.device)
        launch(flat, key, row, tables, first, self._step, self._integers, lanes or LANES)
        from_host.write(flat, first)

    def _host_draws_of(
        self, flat: torch.Tensor, start: int, *, triton: bool, lanes: int | None = None
    ) -> _HostDraws:
        """What `prepare` drew where it holds these samples; else it is drawn now."""
        ready, first = self._from_host, self._first_draw(start, flat.numel())
        if ready is not None and ready.holds(flat.device, first, flat.numel()):
            return ready
        return self._draw_on_host(flat.device, start, flat.numel(), triton, lanes)

    def _draw_on_host(
        self, device: torch.device, start: int, count: int, triton: bool, lanes: int | None = None
    ) -> _HostDraws:
        """The draws that a device leaves to the processor: one transfer there, one back."""
        import torch

        first = self._first_draw(start, count)
        tables, (key, _) = tables_on(self._law, device), self._on(device)
        # twice the number that is expected, and room for few draws
        capacity = 1024 + 2 * int(host_share(self._law) * count)
        while True:
            if triton:
                from unicr.sample._triton import LANES, launch_list

                listed = launch_list(key, tables, first, count, capacity, lanes or LANES)
            else:
                listed = list_host_draws(tables, key, first, count, capacity)
            places = listed.cpu().numpy()
            if places[0] <= capacity:
                break
            capacity = int(places[0])
        places = np.sort(places[1 : 1 + places[0]]) + first
        values = np.empty(places.size)
        e = self._law.evaluate(self._key, places.astype(np.uint64))
        self._put(values, np.arange(places.size), e, places)
        both = torch.from_numpy(np.stack([places.view(np.float64), values]))
        if device.type == "cuda":
            both = both.pin_memory()
        both = both.to(device, non_blocking=True)
        return _HostDraws(first, count, places, both[0].view(torch.int64), both[1])

    def _on(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Key and row on a device, sent there once."""
        import torch

        if self._sent is None or self._sent[0].device != device:
            row = torch.from_numpy(self._row.astype(np.int64) if self._integers else self._row)
            self._sent = (key_on(self._key, device), row.to(device))
        return self._sent

    def _draw_here(self, out: torch.Tensor, start: int) -> torch.Tensor:
        """Samples in memory of the processor, which is kept from pass to pass."""
        import torch

        if self._here is None or self._here.shape != out.shape:
            self._here = torch.empty(out.shape, dtype=out.dtype)
        self(self._here.view(-1).numpy(), start)
        return self._here

    def _first_draw(self, start: int, count: int) -> int:
        first = start * self._row.size
        if start < 0 or first + count >= MOST_DRAWS:
            raise NoiseError(
                f"start={start}, dim={self._row.size}: one stream cannot hold so many draws"
            )
        return first

    def _put(
        self, flat: NDArray[Any], at: Integers, e: Integers, numbers: Integers | None = None
    ) -> None:
        """Write numbers at these places, which are those of the row unless `numbers` says so."""
        row = self._row[(at if numbers is None else numbers) % self._row.size]
        if self._integers:
            flat[at] = (row.astype(np.int64) + e).astype(np.float64) * self._step
        else:
            flat[at] = row + e.astype(np.float64) * self._step


@dataclass(frozen=True)
class _HostDraws:
    """Draws of the processor for a device: of number first, …, first + count − 1 these places."""

    first: int
    count: int
    places: Integers  # in order
    on_device: torch.Tensor  # the same
    values: torch.Tensor  # doubles, on the device

    def holds(self, device: torch.device, first: int, count: int) -> bool:
        """Whether all of these draws are among them."""
        inside = self.first <= first and first + count <= self.first + self.count
        return inside and self.values.device == device

    def write(self, flat: torch.Tensor, first: int) -> None:
        """Put them where they belong in draws number first, … without a wait for the device."""
        low, high = np.searchsorted(self.places, [first, first + flat.numel()]).tolist()
        if high > low:
            values = self.values[low:high].to(flat.dtype)
            flat.index_copy_(0, self.on_device[low:high] - first, values)


def in_pieces(work: Callable[[int, int], None], size: int, threads: int | None) -> None:
    """Call work(low, high) for pieces of 0 … size, side by side in as many threads (None: all)."""
    if threads is None:
        torch = sys.modules.get("torch")
        threads = int(torch.get_num_threads()) if torch is not None else os.cpu_count() or 1
    elif threads < 1:
        raise NoiseError(f"threads={threads!r} must be at least 1, or None for all")
    pieces = max(1, min(threads, size // PIECE))
    cuts = [size * i // pieces for i in range(pieces + 1)]
    pending = [_pool().submit(work, cuts[i], cuts[i + 1]) for i in range(1, pieces)]
    try:
        work(cuts[0], cuts[1])
    finally:
        for future in pending:
            future.result()


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
