"""Which random bits belong to a draw? Draw c of a stream is SplitMix64 of its own counter.

A draw depends only on (seed, input, substream, sample, coordinate), never on batch size, threads or
device. Every stream has an odd increment of its own (Steele, Lea and Flood, 2014).
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unicr.errors import NoiseError

MASK64 = (1 << 64) - 1
MIX1 = 0xBF58476D1CE4E5B9
MIX2 = 0x94D049BB133111EB
ONE = 0x3FF0000000000000
ALMOST_ONE = 1.0 - 2.0**-53


@functools.cache
def compiled(module: str, name: str) -> Any:
    """A compiled inner loop of this package; None where numba cannot be imported."""
    try:
        return getattr(importlib.import_module(f"unicr.noise.{module}"), name)
    except ImportError:
        return None


def stream_keys(seed: int, input_index: int, substream: int = 0) -> tuple[int, int]:
    """The 64-bit (start, gamma) of a stream: draw c is mix64(start + c * gamma).

    All digits of the three integers are hashed, so negative and very long seeds are distinct.
    gamma is odd and, as for SplittableRandom, has at least 24 bit changes.
    """
    try:
        parts = [operator.index(part) for part in (seed, input_index, substream)]
    except TypeError:
        raise NoiseError(
            "seed, input_index and substream must be integers, got "
            f"{seed!r}, {input_index!r} and {substream!r}"
        ) from None
    text = "unicr stream " + " ".join(map(hex, parts))
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    gamma = int.from_bytes(digest[8:], "little") | 1
    if (gamma ^ (gamma >> 1)).bit_count() < 24:
        gamma ^= 0xAAAAAAAAAAAAAAAA
    return int.from_bytes(digest[:8], "little"), gamma


def draw_bits(start: int, gamma: int, first: int, count: int) -> NDArray[np.uint64]:
    """The 64-bit draws number first, ..., first + count - 1 of a stream."""
    z = np.arange(count, dtype=np.uint64) * np.uint64(gamma)
    z += np.uint64((start + first * gamma) & MASK64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(MIX1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(MIX2)
    return z ^ (z >> np.uint64(31))
