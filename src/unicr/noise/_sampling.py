"""How is a 1-D noise drawn: by inverting its CDF, x = F^-1(u), with u from a counter.

`fill` (compiled, or numpy) and `fill_torch` (any device) write the same values; `_inverse` holds
the quantile function, `_streams` makes the bits.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unicr.errors import NoiseError
from unicr.noise._inverse import FIRST_EXPONENT, MANTISSA, InverseTable
from unicr.noise._streams import (
    ALMOST_ONE,
    MASK64,
    MIX1,
    MIX2,
    ONE,
    compiled,
    draw_bits,
    stream_keys,
)
from unicr.values import Array

if TYPE_CHECKING:
    import torch

_TILE = 512
PIECE = 1 << 14
_TORCH_CHUNK = 1 << 18


def fill(
    table: InverseTable,
    out: NDArray[Any] | torch.Tensor,
    *,
    scale: float,
    seed: int,
    input_index: int,
    start_sample: int,
    dim: int,
    base: ArrayLike | torch.Tensor | None = None,
    substream: int = 0,
    threads: int | None = None,
) -> None:
    """Write out[i, j] = base[j] + scale * x(start_sample + i, j) into a (n, dim) CPU array.

    The sum is made in double and rounded once to the type of `out`. In float32 a tail so heavy that
    it passes 3e38 gives inf, as any float32 arithmetic would. Without numba the same values come
    from numpy, more slowly. Safe to call from several Python threads at once.
    """
    array = _checked_array(out, dim)
    if not array.flags.writeable:
        raise NoiseError("out is read-only: pass an array that can be written to, such as a copy")
    _check_numbers(scale, start_sample, array.shape[0], dim)
    start, gamma = stream_keys(seed, input_index, substream)
    tile = _tile(base, dim)
    flat = array.reshape(-1)
    first = start_sample * dim

    def run(low: int, high: int) -> None:
        z0 = (start + (first + low) * gamma) & MASK64
        kernel(
            flat[low:high], np.uint64(z0), np.uint64(gamma), table.cells, table.m, float(scale),
            tile, low % tile.size, table.sub_lo, table.sub_inv, table.sub_coef,
        )  # fmt: skip

    def run_numpy(low: int, high: int) -> None:
        for a in range(low, high, PIECE):
            b = min(a + PIECE, high)
            x = table.evaluate(draw_bits(start, gamma, first + a, b - a))
            flat[a:b] = tile[np.arange(a, b) % tile.size] + scale * x

    kernel = compiled("_kernels", "fill_run")
    work = run_numpy if kernel is None else run
    in_pieces(work, flat.size, threads)


def fill_torch(
    table: InverseTable,
    out: torch.Tensor,
    *,
    scale: float,
    seed: int,
    input_index: int,
    start_sample: int,
    dim: int,
    base: ArrayLike | torch.Tensor | None = None,
    substream: int = 0,
) -> None:
    """`fill` by torch operations on the device of `out`, in chunks of less than 64 MB.

    The values are those of `fill`. The device needs float64 (CPU and CUDA have it, MPS does not:
    fill a CPU tensor and move it there).
    """
    import torch

    _check_out(tuple(out.shape), str(out.dtype), dim, out.is_contiguous())
    _check_numbers(scale, start_sample, out.shape[0], dim)
    start, gamma = stream_keys(seed, input_index, substream)
    device = out.device
    key = str(device)
    if key not in table._on_device:
        arrays = (table.cells, table.sub_lo, table.sub_inv, table.sub_coef)
        table._on_device[key] = tuple(torch.tensor(a, device=device) for a in arrays)
    cells, sub_lo, sub_inv, sub_coef = table._on_device[key]
    base_row = None if base is None else torch.tensor(_base_row(base, dim), device=device)
    flat = out.detach().view(-1)
    m = table.m

    for low in range(0, flat.numel(), _TORCH_CHUNK):
        high = min(low + _TORCH_CHUNK, flat.numel())
        z = torch.arange(high - low, dtype=torch.int64, device=device)
        z.mul_(_signed(gamma)).add_(_signed(start + (start_sample * dim + low) * gamma))
        z.bitwise_xor_(_shift_right(z, 30)).mul_(_signed(MIX1))
        z.bitwise_xor_(_shift_right(z, 27)).mul_(_signed(MIX2))
        z.bitwise_xor_(_shift_right(z, 31))
        d = _shift_right(z, 12).bitwise_or_(ONE).view(torch.float64).sub_(ALMOST_ONE)
        b = d.view(torch.int64)
        rows = (b >> (52 - m)).mul_(4).bitwise_or_(z.bitwise_and_(3))
        c = cells[rows.sub_(FIRST_EXPONENT << (m + 2))]
        s = (b << m).bitwise_and_(MANTISSA).bitwise_or_(ONE).view(torch.float64).sub_(1.5)
        x = _horner(c, s)
        if sub_lo.numel():
            hard = torch.isnan(x).nonzero().squeeze(1)
            if hard.numel():
                dh, first = d[hard], c[hard, 1].long()
                last = first + c[hard, 2].long()
                while bool((last - first > 1).any()):
                    middle = (first + last) // 2
                    right = sub_lo[middle] <= dh
                    first, last = (
                        torch.where(right, middle, first),
                        torch.where(right, last, middle),
                    )
                x[hard] = _horner(sub_coef[first], (dh - sub_lo[first]) * sub_inv[first] - 0.5)
        x.mul_(scale)
        if base_row is not None:
            x.add_(base_row[torch.arange(low, high, device=device) % dim])
        flat[low:high] = x


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


def _horner(c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    return (c[:, 3] * s).add_(c[:, 2]).mul_(s).add_(c[:, 1]).mul_(s).add_(c[:, 0])


def _shift_right(z: torch.Tensor, count: int) -> torch.Tensor:
    return (z >> count).bitwise_and_((1 << (64 - count)) - 1)


def _signed(value: int) -> int:
    value &= MASK64
    return value - (1 << 64) if value >> 63 else value


def _checked_array(out: Any, dim: int) -> NDArray[Any]:
    """`out` as a numpy array on the same memory, after checking it."""
    if isinstance(out, np.ndarray):
        _check_out(out.shape, str(out.dtype), dim, out.flags.c_contiguous)
        return out
    if "torch" in sys.modules:
        import torch

        if isinstance(out, torch.Tensor):
            if out.device.type != "cpu":
                raise NoiseError(f"fill needs a CPU tensor, got {out.device}; use fill_torch")
            _check_out(tuple(out.shape), str(out.dtype), dim, out.is_contiguous())
            return out.detach().numpy()
    raise NoiseError(f"out must be a numpy array or a torch tensor, got {type(out).__name__}")


def _check_out(shape: tuple[int, ...], dtype: str, dim: int, contiguous: bool) -> None:
    if dtype.removeprefix("torch.") not in ("float32", "float64"):
        raise NoiseError(f"out must be float32 or float64, got {dtype}")
    if len(shape) != 2 or shape[1] != dim or dim < 1:
        raise NoiseError(f"out must have shape (n, dim) with dim = {dim!r}, got {tuple(shape)}")
    if not contiguous:
        raise NoiseError("out must be contiguous in memory; pass a fresh array, not a strided view")


def _check_numbers(scale: float, start_sample: int, n: int, dim: int) -> None:
    if not math.isfinite(scale):
        raise NoiseError(f"scale must be a finite number, got {scale!r}")
    if start_sample < 0 or (start_sample + n) * dim >= 1 << 63:
        raise NoiseError(
            f"start_sample must be at least 0 and (start_sample + n) * dim below 2^63, got "
            f"start_sample = {start_sample!r}, n = {n}, dim = {dim}"
        )


def _base_row(base: Any, dim: int) -> Array:
    if hasattr(base, "detach"):
        base = base.detach().cpu().numpy()
    row = np.asarray(base, dtype=np.float64)
    if row.shape != (dim,):
        raise NoiseError(f"base must have shape ({dim},), got {row.shape}; flatten the input")
    return row


def _tile(base: Any, dim: int) -> Array:
    """The base repeated to a length at which the kernel's inner loops are long enough."""
    if base is None:
        return np.zeros(_TILE)
    return np.tile(_base_row(base, dim), -(-_TILE // dim))


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
