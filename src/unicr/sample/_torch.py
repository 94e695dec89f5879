"""The same draws as plain torch operations, on any device that has 64-bit integers.

Every integer is the one that `_kernels` draws, bit for bit: ChaCha20 is made of sums, turns and
exclusive ors of 32-bit numbers, and an outcome is found by comparing whole numbers. What needs the
density (rejection) or more than 64 random bits is drawn on the processor and filled in; it is less
than 0.5 % of the draws (`host_share`).
"""

from __future__ import annotations

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


def draw(tables: Tables, key: bytes, first: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(integers, whether the processor must draw them) of draws number first, … on the device."""
    import torch

    device = tables.starts.device
    word = words(key, FIRST, first, count, device)
    k = torch.searchsorted(tables.high_ends, word)
    tie = torch.searchsorted(tables.high_ends, word, right=True) != k
    width, kind = tables.widths[k], tables.kinds[k]
    one = words(key, OFFSET, first, count, device)
    narrow = width.clamp(max=31)
    mask = (torch.ones_like(width) << narrow) - 1
    offset, two = one & mask, one >> 16
    if tables.two_offsets:
        other = words(key, OTHER_OFFSET, first, count, device)
        two = torch.where(width <= 16, two, other)
        # the upper `width` of the 64 bits (one, other)
        wide = (one << (width - 32).clamp(min=0)) | (other >> (64 - width).clamp(max=32))
        offset = torch.where(width > 31, wide, offset)
    two = two & mask
    linear = torch.where(kind == RISING, torch.maximum(offset, two), torch.minimum(offset, two))
    offset = torch.where(kind == EVEN, offset, linear)
    return tables.starts[k] + offset, tie | tables.on_host[k]


def words(key: bytes, plane: int, first: int, count: int, device: torch.device) -> torch.Tensor:
    """Words first, … of a plane, as 64-bit integers from 0 to 2^32 − 1."""
    import torch

    low, high = first // 256, -(-(first + count) // 256)
    counters = torch.arange(16 * low, 16 * high, dtype=torch.int64, device=device)
    state = torch.empty(16, counters.numel(), dtype=torch.int32, device=device)
    state[:4] = torch.tensor(_signed(CONSTANTS), dtype=torch.int32, device=device)[:, None]
    secret = _signed(np.frombuffer(key, "<u4"))
    state[4:12] = torch.tensor(secret, dtype=torch.int32, device=device)[:, None]
    state[12] = _low_half(counters)
    state[13] = _low_half(counters >> 32)
    state[14], state[15] = plane, 0
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


def _signed(words: Words) -> list[int]:
    return [int(word) - (1 << 32) if word >> 31 else int(word) for word in words.tolist()]
