"""The random bits: ChaCha20 as RFC 8439 has it, addressed by position."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from unicr.sample import _stream, blocks, derive, words_at

KEY = derive("a test")

# (key, block counter, nonce, block) of RFC 8439: 2.3.2, and A.1 numbers 1 to 5
RFC_8439 = [
    (
        bytes(range(32)), 1, "000000090000004a00000000",
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    (
        bytes(32), 0, "000000000000000000000000",
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    (
        bytes(32), 1, "000000000000000000000000",
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    ),
    (
        bytes(31) + b"\x01", 1, "000000000000000000000000",
        "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
        "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
    ),
    (
        b"\x00\xff" + bytes(30), 2, "000000000000000000000000",
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
        "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
    (
        bytes(32), 0, "000000000000000000000002",
        "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
        "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
    ),
]  # fmt: skip


def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_stream, "kernel", lambda name: None)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("key", "counter", "nonce", "block"), RFC_8439)
def test_blocks_are_those_of_rfc_8439(
    key: bytes, counter: int, nonce: str, block: str, compiled: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if not compiled:
        without_kernels(monkeypatch)
    high, plane, attempt = map(int, np.frombuffer(bytes.fromhex(nonce), "<u4"))
    made = blocks(key, np.array([counter | high << 32], np.uint64), plane, attempt)
    assert made.astype("<u4").tobytes().hex() == block


def test_compiled_and_plain_blocks_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = np.array([0, 1, 7, 8, 2**32 - 1, 2**32, 2**60 + 5, 3, 2, 9, 11], np.uint64)
    fast = blocks(KEY, counters, 3, 4)
    without_kernels(monkeypatch)
    assert np.array_equal(fast, blocks(KEY, counters, 3, 4))


@pytest.mark.parametrize("first", [0, 256, 2**36 - 256, 2**61])
def test_words_lie_where_the_layout_says(first: int) -> None:
    """Word p of a plane is word (p >> 4) & 15 of block 16·(p >> 8) + (p & 15)."""
    fill = _stream.kernel("fill_words")
    compiled = np.empty(512, np.uint32)
    fill(compiled, np.frombuffer(KEY, "<u4").astype(np.uint32), 2, np.uint64(first))
    positions = np.arange(first, first + 512, dtype=np.uint64)
    assert np.array_equal(compiled, words_at(KEY, 2, positions))
    for p in (first, first + 1, first + 17, first + 300):
        block = blocks(KEY, np.array([16 * (p >> 8) + (p & 15)], np.uint64), 2)[0]
        assert compiled[p - first] == block[(p >> 4) & 15]


def test_words_come_in_any_order() -> None:
    positions = np.array([5, 2**40, 3, 3, 700, 0], np.uint64)
    one_by_one = [words_at(KEY, 0, positions[i : i + 1])[0] for i in range(positions.size)]
    assert np.array_equal(words_at(KEY, 0, positions), one_by_one)


def test_keys_planes_and_attempts_are_different_streams() -> None:
    counters = np.arange(4, dtype=np.uint64)
    streams = [
        blocks(KEY, counters, 0), blocks(KEY, counters, 1), blocks(KEY, counters, 0, 1),
        blocks(derive("another"), counters, 0),
    ]  # fmt: skip
    for one, two in pairwise(streams):
        assert not np.any(one == two)


def test_keys_tell_their_parts_apart() -> None:
    assert derive("ab", "c") != derive("a", "bc")
    seeds = [0, 1, -1, 2**64, 2**64 + 1, -(2**64), 2**200, 2**200 + 2**100]
    keys = {derive(seed, index) for seed in seeds for index in range(20)}
    assert len(keys) == len(seeds) * 20


def test_bits_are_balanced_and_independent_along_a_stream() -> None:
    """Every bit, every lagged pair of bits, and a 64 × 64 serial test; 6.5 sigma is 8e-11 each."""
    n = 1 << 18
    words = words_at(KEY, 0, np.arange(n, dtype=np.uint64))
    bits = (words[None, :] >> np.arange(32, dtype=np.uint32)[:, None]) & np.uint32(1)
    signs = 2.0 * bits - 1
    assert np.max(np.abs(signs.sum(axis=1))) < 6.5 * np.sqrt(n)
    for lag in (1, 2, 16, 784):
        cross = signs[:, lag:] @ signs[:, :-lag].T
        assert np.max(np.abs(cross)) < 6.5 * np.sqrt(n - lag)
    inner = signs @ signs.T
    np.fill_diagonal(inner, 0)
    assert np.max(np.abs(inner)) < 6.5 * np.sqrt(n)
    pairs = (words[:-1:2] >> np.uint32(26)) * np.uint32(64) + (words[1::2] >> np.uint32(26))
    chi2 = stats.chisquare(np.bincount(pairs.astype(np.int64), minlength=4096))
    assert 1e-7 < chi2.pvalue < 1 - 1e-7


def test_neighbouring_keys_are_uncorrelated() -> None:
    """300 streams, all pairs: 45,000 correlations, each beyond 7.5 sigma with 6e-14."""
    streams, n = 300, 4096
    u = np.empty((streams, n))
    for i in range(streams):
        words = words_at(derive("unicr sample", 5, i), 0, np.arange(n, dtype=np.uint64))
        u[i] = words * 2.0**-32 - 0.5
    for lag in (0, 1):
        cross = 12 * u[:, lag:] @ u[:, : n - lag].T / np.sqrt(n)
        if lag == 0:
            np.fill_diagonal(cross, 0)
        assert np.max(np.abs(cross)) < 7.5


def test_kernels_compile_without_a_cache_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    from unicr.sample import _kernels

    options: list[dict[str, bool]] = []

    def njit(**given: bool) -> object:
        options.append(given)
        if given.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(_kernels, "njit", njit)
    assert _kernels._compile()(len) is len
    assert [given.get("cache") for given in options] == [True, None]
