"""The same draws as plain torch operations, on any device that has 64-bit integers.

Every integer is the one that `_kernels` draws, bit for bit: ChaCha20 is made of sums, turns and
exclusive ors of 32-bit numbers, and an outcome is found by comparing whole numbers. What needs the
density (rejection) or more than 64 random bits is drawn on the processor and filled in; it is less
than 0.5 % of the draws (`host_share`). `list_host_draws` finds those of many passes at once from
the first words alone, so that a device waits for its processor once, not at every pass.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unicr.sample._law import EVEN, REST, RISING, IntegerLaw
from unicr.sample._stream import CONSTANTS, FIRST, OFFSET, OTHER_OFFSET, Words
from unicr.values import Array

if TYPE_CHECKING:
    import torch

CHUNK = 1 << 20  # draws at once: 16 words of state for each sixteen of them, and a few temporaries
SELDOM = 1e-3  # share of the draws that need the second offset: fewer are left to the processor


class Tables(NamedTuple):
    """A law on a device."""

    high_ends: torch.Tensor  # upper halves of the thresholds
    starts: torch.Tensor
    widths: torch.Tensor
    kinds: torch.Tensor
    on_host: torch.Tensor  # outcomes that the processor draws
    two_offsets: bool


@lru_cache(maxsize=64)  # a law is sent to a device once, not for every input
def tables_on(law: IntegerLaw, device: torch.device) -> Tables:
    """The tables of a law, sent to a device."""
    import torch

    on_host, two_offsets = _split(law)
    return Tables(
        high_ends=torch.from_numpy((law.ends >> np.uint64(32)).astype(np.int64)).to(device),
        starts=torch.from_numpy(law.starts).to(device),
        widths=torch.from_numpy(law.widths.astype(np.int64)).to(device),
        kinds=torch.from_numpy(law.kinds.astype(np.int64)).to(device),
        on_host=torch.from_numpy(on_host).to(device),
        two_offsets=two_offsets,
    )


def host_share(law: IntegerLaw) -> float:
    """The share of the draws that the processor fills in."""
    ties = law.ends.size * 2.0**-32  # words that are equal to the upper half of a threshold
    return float(_masses(law)[_split(law)[0]].sum()) + ties


def _split(law: IntegerLaw) -> tuple[NDArray[np.bool_], bool]:
    """Which outcomes the processor draws, and whether the device needs second offsets."""
    linear = law.kinds != EVEN
    needs_host = (law.kinds == REST) | (linear & (law.widths > 31))
    needs_second = (law.widths > 31) | (linear & (law.widths > 16))
    two_offsets = bool(_masses(law)[needs_second].sum() > SELDOM)
    return needs_host if two_offsets else needs_host | needs_second, two_offsets


def _masses(law: IntegerLaw) -> Array:
    ends = np.concatenate([[0.0], law.ends.astype(np.float64), [2.0**64]])
    return np.diff(ends) * 2.0**-64


def key_on(key: bytes, device: torch.device) -> torch.Tensor:
    """The constants and the key, the first twelve words of a block, sent to a device."""
    import torch

    start = [*_to_int32(CONSTANTS), *_to_int32(np.frombuffer(key, "<u4"))]
    return torch.tensor(start, dtype=torch.int32).to(device)


def list_host_draws(
    tables: Tables, key: torch.Tensor, first: int, count: int, capacity: int
) -> torch.Tensor:
    """Which of the draws number first, …, first + count − 1 the processor must make.

    The answer stays on the device: their number, then their places after `first`, as many as
    `capacity` holds.
    """
    import torch

    device = tables.starts.device
    listed = torch.zeros(capacity + 2, dtype=torch.int64, device=device)  # the last is a bin
    for low in range(0, count, CHUNK):
        high = min(low + CHUNK, count)
        word = words(key, FIRST, first + low, high - low)
        k = torch.searchsorted(tables.high_ends, word)
        tie = torch.searchsorted(tables.high_ends, word, right=True) != k
        wanted = tie | tables.on_host[k]
        # slot 0 is their number; those beyond the capacity, and all others, fall into the bin
        slot = (wanted.cumsum(0) + listed[0]).clamp_(max=capacity + 1)
        slot = torch.where(wanted, slot, capacity + 1)
        listed.scatter_(0, slot, torch.arange(low, high, device=device))
        listed[0] += wanted.sum()
    return listed[:-1]


def draw(tables: Tables, key: torch.Tensor, first: int, count: int) -> torch.Tensor:
    """The integers of draws number first, … on the device; those of the processor are wrong."""
    import torch

    word = words(key, FIRST, first, count)
    k = torch.searchsorted(tables.high_ends, word)
    width, kind = tables.widths[k], tables.kinds[k]
    bits = words(key, OFFSET, first, count)
    narrow = width.clamp(max=31)
    mask = (torch.ones_like(width) << narrow) - 1
    offset, other_bits = bits & mask, bits >> 16
    if tables.two_offsets:
        other = words(key, OTHER_OFFSET, first, count)
        other_bits = torch.where(width <= 16, other_bits, other)
        # the upper `width` of the 64 bits (bits, other)
        wide = (bits << (width - 32).clamp(min=0)) | (other >> (64 - width).clamp(max=32))
        offset = torch.where(width > 31, wide, offset)
    other_bits = other_bits & mask
    linear = torch.where(
        kind == RISING, torch.maximum(offset, other_bits), torch.minimum(offset, other_bits)
    )
    offset = torch.where(kind == EVEN, offset, linear)
    return tables.starts[k] + offset


def words(key: torch.Tensor, plane: int, first: int, count: int) -> torch.Tensor:
    """Words first, … of a plane under a key (`key_on`), as 64-bit integers from 0 to 2^32 − 1."""
    import torch

    device = key.device
    low, high = first // 256, -(-(first + count) // 256)
    counters = torch.arange(16 * low, 16 * high, dtype=torch.int64, device=device)
    state = torch.empty(16, counters.numel(), dtype=torch.int32, device=device)
    state[:12] = key[:, None]
    state[12] = _low_half(counters)
    state[13] = _low_half(counters >> 32)
    state[14].fill_(plane)
    state[15].fill_(0)
    # a row of four: the four quarter rounds of a round run side by side
    a, b, c, d = (state[4 * row : 4 * row + 4].clone() for row in range(4))
    for _ in range(10):
        a, b, c, d = _quarter_rounds(a, b, c, d)
        b, c, d = b.roll(-1, 0), c.roll(-2, 0), d.roll(-3, 0)
        a, b, c, d = _quarter_rounds(a, b, c, d)
        b, c, d = b.roll(1, 0), c.roll(2, 0), d.roll(3, 0)
    mixed = torch.cat([a, b, c, d]).add_(state)
    # (word, group, lane) to (group, word, lane): the order of positions
    ordered = mixed.view(16, high - low, 16).transpose(0, 1).reshape(-1)
    return ordered[first - 256 * low :][:count].to(torch.int64) & 0xFFFFFFFF


def _quarter_rounds(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    a = a.add_(b)
    d = _turn(d.bitwise_xor_(a), 16)
    c = c.add_(d)
    b = _turn(b.bitwise_xor_(c), 12)
    a = a.add_(b)
    d = _turn(d.bitwise_xor_(a), 8)
    c = c.add_(d)
    b = _turn(b.bitwise_xor_(c), 7)
    return a, b, c, d


def _turn(x: torch.Tensor, by: int) -> torch.Tensor:
    """Left by so many bits, round the end; >> of a negative number copies its sign."""
    return (x << by).bitwise_or_((x >> (32 - by)).bitwise_and_((1 << by) - 1))


def _low_half(x: torch.Tensor) -> torch.Tensor:
    """The lower 32 bits as a signed number, without an overflow."""
    import torch

    return (((x & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000).to(torch.int32)


def _to_int32(words: Words) -> list[int]:
    return [int(word) - (1 << 32) if word >> 31 else int(word) for word in words.tolist()]
