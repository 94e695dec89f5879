"""The same draws as one kernel for GPUs, written in Triton: integers, bit for bit those of a CPU.

A lane makes one block of ChaCha20 of each plane, and with it sixteen draws. Outcomes are found by
bisection in the upper halves of the thresholds. One kernel lists the draws that the processor must
make (rejection, ties of 32 bits), another writes all others as numbers. Importing this module
imports triton.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from unicr.sample._law import EVEN as _EVEN
from unicr.sample._law import RISING as _RISING
from unicr.sample._stream import FIRST as _FIRST
from unicr.sample._stream import OFFSET as _OFFSET
from unicr.sample._stream import OTHER_OFFSET as _OTHER_OFFSET

EVEN, RISING = tl.constexpr(_EVEN), tl.constexpr(_RISING)
FIRST, OFFSET = tl.constexpr(_FIRST), tl.constexpr(_OFFSET)
OTHER_OFFSET = tl.constexpr(_OTHER_OFFSET)


@triton.jit
def _turn(x, by: tl.constexpr):
    return (x << by) | (x >> (32 - by))


@triton.jit
def _quarter_round(a, b, c, d):
    a = a + b
    d = _turn(d ^ a, 16)
    c = c + d
    b = _turn(b ^ c, 12)
    a = a + b
    d = _turn(d ^ a, 8)
    c = c + d
    b = _turn(b ^ c, 7)
    return a, b, c, d


@triton.jit
def _block(key, counter, plane: tl.constexpr):
    """One block of ChaCha20 for each counter, as sixteen words; `key` begins with the constants."""
    low, high = counter.to(tl.uint32), (counter >> 32).to(tl.uint32)
    none = low * 0
    s0, s1 = none + tl.load(key).to(tl.uint32), none + tl.load(key + 1).to(tl.uint32)
    s2, s3 = none + tl.load(key + 2).to(tl.uint32), none + tl.load(key + 3).to(tl.uint32)
    s4, s5 = none + tl.load(key + 4).to(tl.uint32), none + tl.load(key + 5).to(tl.uint32)
    s6, s7 = none + tl.load(key + 6).to(tl.uint32), none + tl.load(key + 7).to(tl.uint32)
    s8, s9 = none + tl.load(key + 8).to(tl.uint32), none + tl.load(key + 9).to(tl.uint32)
    s10, s11 = none + tl.load(key + 10).to(tl.uint32), none + tl.load(key + 11).to(tl.uint32)
    s14 = none + plane
    x0, x1, x2, x3, x4, x5, x6, x7 = s0, s1, s2, s3, s4, s5, s6, s7
    x8, x9, x10, x11, x12, x13, x14, x15 = s8, s9, s10, s11, low, high, s14, none
    for _ in range(10):
        x0, x4, x8, x12 = _quarter_round(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter_round(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter_round(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter_round(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter_round(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter_round(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter_round(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter_round(x3, x4, x9, x14)
    return (
        x0 + s0, x1 + s1, x2 + s2, x3 + s3, x4 + s4, x5 + s5, x6 + s6, x7 + s7,
        x8 + s8, x9 + s9, x10 + s10, x11 + s11, x12 + low, x13 + high, x14 + s14, x15,
    )  # fmt: skip


@triton.jit
def _find_outcome(high_ends, w, outcomes, STEPS: tl.constexpr):
    """The outcome of each first word: how many thresholds have an upper half below it."""
    k = w * 0
    for s in range(STEPS):
        beyond = k + (1 << (STEPS - 1 - s))
        end = tl.load(high_ends + beyond - 1, mask=beyond <= outcomes - 1, other=1 << 62)
        k = tl.where(end < w, beyond, k)
    return k


@triton.jit
def list_kernel(
    listed, key, high_ends, on_host, first, count, outcomes, capacity,
    STEPS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Which of the draws number first, … first + count − 1 the processor must make.

    `listed` gets their number, then their places after `first`, as many as it can hold.
    """
    first = first.to(tl.int64)
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES).to(tl.int64)
    counter = (first >> 8 << 4) + lane
    word = _block(key, counter, FIRST)
    group = (counter >> 4 << 8) + (counter & 15) - first
    for i in tl.static_range(16):
        place = group + 16 * i
        w = word[i].to(tl.int64)
        k = _find_outcome(high_ends, w, outcomes, STEPS)
        tie = tl.load(high_ends + k, mask=k < outcomes - 1, other=-1) == w
        host = (tie | (tl.load(on_host + k) != 0)) & (place >= 0) & (place < count)
        at = tl.atomic_add(listed + lane * 0, 1, mask=host)
        tl.store(listed + 1 + at, place, mask=host & (at < capacity))


@triton.jit
def draw_kernel(
    out, key, row, high_ends, starts, widths, kinds, first, count, dim, outcomes, step,
    INTEGERS: tl.constexpr, TWO_OFFSETS: tl.constexpr, STEPS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Draws number first, … first + count − 1: (row + e)·step, or row + e·step.

    Those that the processor must make are wrong here, and written over.
    """
    first = first.to(tl.int64)
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES).to(tl.int64)
    counter = (first >> 8 << 4) + lane
    word = _block(key, counter, FIRST)
    offset = _block(key, counter, OFFSET)
    other = offset
    if TWO_OFFSETS:
        other = _block(key, counter, OTHER_OFFSET)
    group = (counter >> 4 << 8) + (counter & 15) - first
    for i in tl.static_range(16):
        place = group + 16 * i
        valid = (place >= 0) & (place < count)
        k = _find_outcome(high_ends, word[i].to(tl.int64), outcomes, STEPS)
        width, kind = tl.load(widths + k), tl.load(kinds + k)
        bits = offset[i].to(tl.int64)
        mask = (tl.full([LANES], 1, tl.int64) << tl.minimum(width, 31)) - 1
        f, other_bits = bits & mask, bits >> 16
        if TWO_OFFSETS:
            second = other[i].to(tl.int64)
            other_bits = tl.where(width <= 16, other_bits, second)
            wide = (bits << tl.maximum(width - 32, 0)) | (second >> tl.minimum(64 - width, 32))
            f = tl.where(width > 31, wide, f)
        other_bits = other_bits & mask
        linear = tl.where(kind == RISING, tl.maximum(f, other_bits), tl.minimum(f, other_bits))
        e = tl.load(starts + k) + tl.where(kind == EVEN, f, linear)
        if INTEGERS:
            beside = tl.load(row + (place + first) % dim, mask=valid, other=0)
            value = (beside + e).to(tl.float64) * step
        else:
            beside = tl.load(row + (place + first) % dim, mask=valid, other=0.0)
            value = beside + e.to(tl.float64) * step
        tl.store(out + place, value.to(out.dtype.element_ty), mask=valid)


LANES = 64  # blocks of one program


def launch_list(
    key: Any, tables: Any, first: int, count: int, capacity: int, lanes: int = LANES
) -> Any:
    """Run `list_kernel`; what it listed, on the device."""
    import torch

    outcomes = tables.starts.numel()
    listed = torch.zeros(capacity + 1, dtype=torch.int64, device=key.device)
    list_kernel[(_programs(first, count, lanes),)](
        listed, key, tables.high_ends, tables.on_host, first, count, outcomes, capacity,
        STEPS=max(1, (outcomes - 1).bit_length()), LANES=lanes,
    )  # fmt: skip
    return listed


def launch(
    out: Any, key: Any, row: Any, tables: Any, first: int, step: float, integers: bool,
    lanes: int = LANES,
) -> None:  # fmt: skip
    """Run `draw_kernel` on all of `out`, a flat tensor on its device.

    Fused multiply-adds are off: they round once where the other forms round twice.
    """
    outcomes = tables.starts.numel()
    draw_kernel[(_programs(first, out.numel(), lanes),)](
        out, key, row, tables.high_ends, tables.starts, tables.widths, tables.kinds, first,
        out.numel(), row.numel(), outcomes, step, INTEGERS=integers,
        TWO_OFFSETS=tables.two_offsets, STEPS=max(1, (outcomes - 1).bit_length()), LANES=lanes,
        enable_fp_fusion=False,
    )  # fmt: skip


def _programs(first: int, count: int, lanes: int) -> int:
    """How many programs make all blocks that these draws lie in; those come by sixteens."""
    blocks = -(-(first % 256 + count) // 256) * 16
    return -(-blocks // lanes)
