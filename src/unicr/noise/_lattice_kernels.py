"""How fast can a cipher's words become integers: the compiled inner loops of lattice noise.

A draw takes one 32-bit word. The guide's entry of its top bits says where the word is certain to
mean one outcome or the next; what falls between is looked up in all 64 bits, and what needs the
density itself is left to numpy. Importing this module imports numba; import it inside functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from unicr.noise._kernels import _compiled

_U = np.uint32
_W = np.uint64
_LANES = 8
_GROUP = 16 * _LANES
_BATCH = 1024
_ALL = _W(0xFFFFFFFF)


@njit(inline="always")
def _turned(x: Any, turn: Any) -> Any:
    return _U((x << _U(turn)) | (x >> _U(32 - turn)))


@njit(inline="always")
def _quarter(a: Any, b: Any, c: Any, d: Any) -> Any:
    a = _U(a + b)
    d = _turned(d ^ a, 16)
    c = _U(c + d)
    b = _turned(b ^ c, 12)
    a = _U(a + b)
    d = _turned(d ^ a, 8)
    c = _U(c + d)
    b = _turned(b ^ c, 7)
    return a, b, c, d


@njit(inline="always")
def _mix(state: Any, start: Any, rounds: Any) -> None:
    """ChaCha's block function on eight blocks side by side."""
    for i in range(16):
        for k in range(_LANES):
            state[i, k] = start[i, k]
    for _ in range(rounds // 2):
        for k in range(_LANES):
            a0, a1, a2, a3 = state[0, k], state[1, k], state[2, k], state[3, k]
            b0, b1, b2, b3 = state[4, k], state[5, k], state[6, k], state[7, k]
            c0, c1, c2, c3 = state[8, k], state[9, k], state[10, k], state[11, k]
            d0, d1, d2, d3 = state[12, k], state[13, k], state[14, k], state[15, k]
            a0, b0, c0, d0 = _quarter(a0, b0, c0, d0)
            a1, b1, c1, d1 = _quarter(a1, b1, c1, d1)
            a2, b2, c2, d2 = _quarter(a2, b2, c2, d2)
            a3, b3, c3, d3 = _quarter(a3, b3, c3, d3)
            a0, b1, c2, d3 = _quarter(a0, b1, c2, d3)
            a1, b2, c3, d0 = _quarter(a1, b2, c3, d0)
            a2, b3, c0, d1 = _quarter(a2, b3, c0, d1)
            a3, b0, c1, d2 = _quarter(a3, b0, c1, d2)
            state[0, k], state[1, k], state[2, k], state[3, k] = a0, a1, a2, a3
            state[4, k], state[5, k], state[6, k], state[7, k] = b0, b1, b2, b3
            state[8, k], state[9, k], state[10, k], state[11, k] = c0, c1, c2, c3
            state[12, k], state[13, k], state[14, k], state[15, k] = d0, d1, d2, d3
    for i in range(16):
        for k in range(_LANES):
            state[i, k] += start[i, k]


@_compiled
def _started(key: Any, first: Any, second: Any) -> Any:
    start = np.empty((16, _LANES), np.uint32)
    start[0] = _U(0x61707865)
    start[1] = _U(0x3320646E)
    start[2] = _U(0x79622D32)
    start[3] = _U(0x6B206574)
    for i in range(8):
        start[4 + i] = key[i]
    start[14] = _U(first)
    start[15] = _U(second)
    return start


@_compiled
def blocks(out: Any, key: Any, counters: Any, first: Any, second: Any, rounds: Any) -> None:
    """The blocks of any counters, one in each row of `out`."""
    start = _started(key, first, second)
    state = np.empty((16, _LANES), np.uint32)
    for low in range(0, counters.size, _LANES):
        n = min(_LANES, counters.size - low)
        for k in range(_LANES):
            counter = counters[low + min(k, n - 1)]
            start[12, k] = _U(counter & _ALL)
            start[13, k] = _U(counter >> _W(32))
        _mix(state, start, rounds)
        for k in range(n):
            for i in range(16):
                out[low + k, i] = state[i, k]


@_compiled
def _words(out: Any, key: Any, group: Any, plane: Any, rounds: Any) -> None:
    """Words 128·group … of a plane, as many as fit into `out` (a multiple of 128)."""
    start = _started(key, plane, 0)
    state = np.empty((16, _LANES), np.uint32)
    for g in range(out.size // _GROUP):
        for k in range(_LANES):
            counter = _W((group + _W(g)) * _W(_LANES) + _W(k))
            start[12, k] = _U(counter & _ALL)
            start[13, k] = _U(counter >> _W(32))
        _mix(state, start, rounds)
        o = g * _GROUP
        for i in range(16):
            for k in range(_LANES):
                out[o + i * _LANES + k] = state[i, k]


@_compiled
def _look_up(e: Any, hard: Any, high: Any, fine: Any, mask: Any, guide: Any, down: Any) -> Any:
    """Integers of the draws that are certain; the number of the others, listed in `hard`."""
    count = _W(0)
    for k in range(e.size):
        w = high[k]
        g = w >> down
        above = _W(w > guide[g, 1])
        e[k] = np.int32(guide[g, _W(2) + above]) + np.int32(fine[k] & mask)
        hard[count] = k
        count += (above | _W(w < guide[g, 0])) ^ _W(1)
    return np.int64(count)


@_compiled
def _sums(out: Any, tile: Any, e: Any, step: Any) -> None:
    for k in range(out.size):
        out[k] = np.float64(tile[k] + e[k]) * step


@_compiled
def fill_integers(
    out: Any,
    left: Any,
    first: Any,
    key: Any,
    rounds: Any,
    tile: Any,
    offset: Any,
    step: Any,
    guide: Any,
    shift: Any,
    bits: Any,
    wide: Any,
    ends: Any,
    starts: Any,
    widths: Any,
) -> Any:
    """out[k] = float((tile[(offset + k) % L] + e_k) · step); the draws are number first, …

    Returns how many were left undone; `left` holds which, with their outcomes. `bits` is the width
    that all outcomes of the guide have, as a power of two; `widths` those of all outcomes, negative
    where the density itself decides. `wide` says that offsets inside outcomes are wanted often.
    """
    high = np.empty(_BATCH, np.uint32)
    fine = np.zeros(_BATCH, np.uint32)
    low = np.empty(_GROUP, np.uint32)
    e = np.empty(_BATCH, np.int32)
    hard = np.empty(_BATCH, np.int64)
    mask = _U((1 << bits) - 1)
    down = _U(shift)
    undone = 0
    done = 0
    o = offset
    position = first
    while done < out.size:
        skip = np.int64(position % _W(_BATCH))
        _words(high, key, (position - _W(skip)) // _W(_GROUP), 0, rounds)
        if wide:
            _words(fine, key, (position - _W(skip)) // _W(_GROUP), 2, rounds)
        n = min(_BATCH - skip, out.size - done)
        count = _look_up(
            e[:n], hard, high[skip : skip + n], fine[skip : skip + n], mask, guide, down
        )
        at = 0
        while at < n:
            m = min(n - at, tile.size - o)
            _sums(out[done + at : done + at + m], tile[o : o + m], e[at : at + m], step)
            at += m
            o += m
            if o == tile.size:
                o = 0
        for h in range(count):
            k = hard[h]
            g = high[skip + k] >> down
            w = _W(high[skip + k]) << _W(32)
            number = np.int64(guide[g, 2]) if guide[g, 0] == 0 else 0
            last = np.int64(guide[g, 3]) if guide[g, 0] == 0 else ends.size
            while number < last:
                middle = (number + last) // 2
                right = ends[middle] <= w
                number = middle + 1 if right else number
                last = last if right else middle
            if number < ends.size and ends[number] >> _W(32) == w >> _W(32):
                here = position + _W(k)
                _words(low, key, here // _W(_GROUP), 1, rounds)
                w |= _W(low[np.int64(here % _W(_GROUP))])
                while number < ends.size and ends[number] <= w:
                    number += 1
            width = widths[number]
            if width < 0 or width > 31:
                left[undone, 0] = done + k
                left[undone, 1] = number
                undone += 1
                continue
            f = np.int64(fine[skip + k])
            if width > 0 and not wide:
                here = position + _W(k)
                _words(low, key, here // _W(_GROUP), 2, rounds)
                f = np.int64(low[np.int64(here % _W(_GROUP))])
            j = starts[number] + (f & ((np.int64(1) << width) - 1))
            out[done + k] = np.float64(j + tile[(offset + done + k) % tile.size]) * step
        done += n
        position += _W(n)
    return undone
