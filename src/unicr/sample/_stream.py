"""The random bits of a draw: the key stream of ChaCha20 (RFC 8439), addressed by position.

A key has several planes of 32-bit words. Draw number p = sample · dimension + coordinate uses word
p of each plane that it needs, so that it can be computed from (key, p) alone, in any order, in any
batch, in any thread and on any device. The state of a block is

    words 0–3    "expand 32-byte k"
    words 4–11   the key
    word  12     the block counter, low half      (RFC 8439: block counter)
    word  13     the block counter, high half     (RFC 8439: first word of the nonce)
    word  14     the plane                        (second word of the nonce)
    word  15     the attempt, 0 but for rejection (third word of the nonce)

Blocks go side by side by sixteens, so that sixteen lanes of a processor, each with a block of its
own, write neighbouring words: word p of a plane is word (p >> 4) & 15 of block
16 · (p >> 8) + (p & 15).
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

CONSTANTS = np.frombuffer(b"expand 32-byte k", "<u4")

# The planes. A draw looks up the first word; the second completes it to 64 bits where the first
# alone leaves two outcomes open; the offsets say where inside a wide outcome it is.
FIRST, SECOND, OFFSET, OTHER_OFFSET, REJECTION = range(5)


@functools.cache
def kernel(name: str) -> Any:
    """A compiled inner loop of this package; None where numba cannot be imported."""
    try:
        from unicr.sample import _kernels
    except ImportError:
        return None
    return getattr(_kernels, name)


def derive(*parts: bytes | str | int) -> bytes:
    """A key of 256 bits: SHA-256 of the parts, each with its length."""
    digest = hashlib.sha256(b"unicr key")
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()


def blocks(key: bytes, counters: NDArray[np.uint64], plane: int, attempt: int = 0) -> Words:
    """Blocks (n, 16) of ChaCha20 for these 64-bit counters."""
    counters = np.ascontiguousarray(counters, np.uint64)
    if (fill := kernel("fill_blocks")) is not None:
        out = np.empty((counters.size, 16), np.uint32)
        fill(out, np.frombuffer(key, "<u4").astype(np.uint32), counters, plane, attempt)
        return out
    start = np.empty((16, counters.size), np.uint32)
    start[:4] = CONSTANTS[:, None]
    start[4:12] = np.frombuffer(key, "<u4")[:, None]
    start[12] = (counters & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    start[13] = (counters >> np.uint64(32)).astype(np.uint32)
    start[14], start[15] = plane, attempt
    x = start.copy()
    for _ in range(10):
        for column in range(4):
            _quarter_round(x, column, 4 + column, 8 + column, 12 + column)
        for column in range(4):
            diagonal = (4 * row + (column + row) % 4 for row in range(4))
            _quarter_round(x, *diagonal)
    return np.ascontiguousarray((x + start).T)


def _quarter_round(x: Words, a: int, b: int, c: int, d: int) -> None:
    for p, q, r, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[p] += x[q]
        mixed = x[r] ^ x[p]
        x[r] = (mixed << np.uint32(turn)) | (mixed >> np.uint32(32 - turn))


def words_at(key: bytes, plane: int, positions: NDArray[np.uint64]) -> Words:
    """The words of a plane at these positions."""
    positions = np.asarray(positions, np.uint64)
    block = (positions >> np.uint64(8) << np.uint64(4)) | (positions & np.uint64(15))
    word = ((positions >> np.uint64(4)) & np.uint64(15)).astype(np.int64)
    needed, back = np.unique(block, return_inverse=True)
    return blocks(key, needed, plane)[back.reshape(-1), word]
