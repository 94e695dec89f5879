"""Which random bits belong to a draw, so that nobody can foretell them? ChaCha8 under a secret key.

A keyed stream has planes of 32-bit words, and word `position` of a plane is always the same:
position = sample · dimension + coordinate. Eight blocks lie side by side, as the compiled kernel
makes them: word i of block 8g + l is number 128g + 8i + l.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from unicr.noise._streams import compiled

Words = NDArray[np.uint32]

ROUNDS = 8
CONSTANTS = np.frombuffer(b"expand 32-byte k", "<u4")
# planes: first and second half of a draw, two offsets, rejection
HIGH, LOW, FINE, OTHER, AGAIN = range(5)


def derive(*parts: bytes | str | int) -> bytes:
    """A key of 256 bits: SHA-256 of the parts, each with its length."""
    digest = hashlib.sha256(b"unicr key")
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()


def blocks(
    key: bytes, counters: NDArray[np.uint64], first: int, second: int, rounds: int = ROUNDS
) -> Words:
    """ChaCha blocks (n, 16) of 64-bit counters; `first` and `second` are the nonce's two words.

    With 20 rounds and words 13 to 15 as nonce this is the block function of RFC 8439.
    """
    counters = np.ascontiguousarray(counters, np.uint64)
    if rounds == ROUNDS and (fill := compiled("_lattice_kernels", "blocks")) is not None:
        out = np.empty((counters.size, 16), np.uint32)
        fill(out, np.frombuffer(key, "<u4"), counters, first, second)
        return out
    start = np.empty((16, counters.size), np.uint32)
    start[:4] = CONSTANTS[:, None]
    start[4:12] = np.frombuffer(key, "<u4")[:, None]
    start[12] = (counters & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    start[13] = (counters >> np.uint64(32)).astype(np.uint32)
    start[14], start[15] = first, second
    x = start.copy()
    for _ in range(rounds // 2):
        for shift in (0, 1):
            for i in range(4):
                j = [i] + [4 * row + (i + row * shift) % 4 for row in (1, 2, 3)]
                _quarter(x, *j)
    return np.ascontiguousarray((x + start).T)


def _quarter(x: Words, a: int, b: int, c: int, d: int) -> None:
    for p, q, r, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[p] += x[q]
        mixed = x[r] ^ x[p]
        x[r] = (mixed << np.uint32(turn)) | (mixed >> np.uint32(32 - turn))


def words_at(key: bytes, plane: int, positions: NDArray[np.uint64]) -> Words:
    """The words of a plane at these positions."""
    positions = np.asarray(positions, np.uint64)
    block = (positions >> np.uint64(7) << np.uint64(3)) | (positions & np.uint64(7))
    word = ((positions >> np.uint64(3)) & np.uint64(15)).astype(np.int64)
    needed, back = np.unique(block, return_inverse=True)
    return blocks(key, needed, plane, 0)[back.reshape(-1), word]
