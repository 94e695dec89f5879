"""The compiled inner loops: words of ChaCha20, and integers looked up from them.

A draw takes one 32-bit word, and a second one where its outcome is a wide one. The guide's entry of
the word's top bits is an outcome and where the next one begins, if these two are all that the bits
leave open. The other draws are searched in all 64 bits, and what needs the density itself is left
to numpy. Importing this module imports numba; import it inside functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from unicr.sample._law import EVEN, REST, RISING
from unicr.sample._stream import FIRST, OFFSET, OTHER_OFFSET, SECOND

_F = TypeVar("_F", bound=Callable[..., Any])

_U = np.uint32
_W = np.uint64
_LANES = 16  # blocks of the stream side by side, as many as fit the widest registers
_GROUP = 16 * _LANES  # words of sixteen blocks side by side
_BATCH = 1024  # draws that are looked up at once: their buffers stay in the first cache
_ALL = _W(0xFFFFFFFF)  # the lower half of a word of 64 bits


def _compile(inline: bool = False) -> Callable[[_F], _F]:
    """Compile without the GIL; keep the code on disk where some cache directory can be written."""

    def compile_function(function: _F) -> _F:
        try:
            result = njit(nogil=True, cache=True, forceinline=inline)(function)
        except RuntimeError:
            result = njit(nogil=True, forceinline=inline)(function)
        return cast(_F, result)

    return compile_function


def _widen(context: Any) -> Any:
    """Let LLVM use registers of 512 bits in the function that calls this.

    It keeps to 256 on some processors, where a program that seldom needs more would lose by it.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        attributes = builder.function.attributes
        if isinstance(attributes, set):  # llvmlite's own `add` refuses what it does not know
            set.add(attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


_use_widest_registers: Any = intrinsic(_widen)


# numba widens sums and shifts of 32-bit numbers to 64 bits, so every step is cut to 32 again. The
# rounds are one straight line of code, inlined into the loop over lanes: that is what LLVM turns
# into vectors.


@_compile(inline=True)
def _quarter_round(a: Any, b: Any, c: Any, d: Any) -> Any:
    a = _U(a + b)
    d = _U(d ^ a)
    d = _U(_U(d << _U(16)) | _U(d >> _U(16)))
    c = _U(c + d)
    b = _U(b ^ c)
    b = _U(_U(b << _U(12)) | _U(b >> _U(20)))
    a = _U(a + b)
    d = _U(d ^ a)
    d = _U(_U(d << _U(8)) | _U(d >> _U(24)))
    c = _U(c + d)
    b = _U(b ^ c)
    b = _U(_U(b << _U(7)) | _U(b >> _U(25)))
    return a, b, c, d


@_compile(inline=True)
def _double_round(x: Any) -> Any:
    x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15 = x
    x0, x4, x8, x12 = _quarter_round(x0, x4, x8, x12)
    x1, x5, x9, x13 = _quarter_round(x1, x5, x9, x13)
    x2, x6, x10, x14 = _quarter_round(x2, x6, x10, x14)
    x3, x7, x11, x15 = _quarter_round(x3, x7, x11, x15)
    x0, x5, x10, x15 = _quarter_round(x0, x5, x10, x15)
    x1, x6, x11, x12 = _quarter_round(x1, x6, x11, x12)
    x2, x7, x8, x13 = _quarter_round(x2, x7, x8, x13)
    x3, x4, x9, x14 = _quarter_round(x3, x4, x9, x14)
    return x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15


@_compile(inline=True)
def _block(k0: Any, k1: Any, k2: Any, k3: Any, k4: Any, k5: Any, k6: Any, k7: Any,
           low: Any, high: Any, plane: Any, attempt: Any) -> Any:  # fmt: skip
    """One block of ChaCha20 as sixteen words."""
    a, b, c, d = _U(0x61707865), _U(0x3320646E), _U(0x79622D32), _U(0x6B206574)
    x = (a, b, c, d, k0, k1, k2, k3, k4, k5, k6, k7, low, high, plane, attempt)
    x = _double_round(_double_round(x))
    x = _double_round(_double_round(x))
    x = _double_round(_double_round(x))
    x = _double_round(_double_round(x))
    x = _double_round(_double_round(x))
    return (
        _U(x[0] + a), _U(x[1] + b), _U(x[2] + c), _U(x[3] + d),
        _U(x[4] + k0), _U(x[5] + k1), _U(x[6] + k2), _U(x[7] + k3),
        _U(x[8] + k4), _U(x[9] + k5), _U(x[10] + k6), _U(x[11] + k7),
        _U(x[12] + low), _U(x[13] + high), _U(x[14] + plane), _U(x[15] + attempt),
    )  # fmt: skip


@_compile()
def fill_words(out: Any, key: Any, plane: Any, first: Any) -> None:
    """Words `first`, … of a plane; `first` and the size of `out` are multiples of 256."""
    _use_widest_registers()
    k0, k1, k2, k3, k4, k5, k6, k7 = (
        key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7],
    )  # fmt: skip
    for group in range(out.size // _GROUP):
        counter = (first >> _W(4)) + _W(group * _LANES)
        low, high = _U(counter & _ALL), _U(counter >> _W(32))
        row = out[group * _GROUP : (group + 1) * _GROUP]
        for lane in range(_LANES):  # sixteen blocks of one group never carry into `high`
            x = _block(k0, k1, k2, k3, k4, k5, k6, k7, _U(low + _U(lane)), high, _U(plane), _U(0))
            row[lane] = x[0]
            row[16 + lane] = x[1]
            row[32 + lane] = x[2]
            row[48 + lane] = x[3]
            row[64 + lane] = x[4]
            row[80 + lane] = x[5]
            row[96 + lane] = x[6]
            row[112 + lane] = x[7]
            row[128 + lane] = x[8]
            row[144 + lane] = x[9]
            row[160 + lane] = x[10]
            row[176 + lane] = x[11]
            row[192 + lane] = x[12]
            row[208 + lane] = x[13]
            row[224 + lane] = x[14]
            row[240 + lane] = x[15]


@_compile()
def _fill_block(out: Any, key: Any, counter: Any, plane: Any, attempt: Any) -> None:
    x = _block(
        key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7],
        _U(counter & _ALL), _U(counter >> _W(32)), _U(plane), _U(attempt),
    )  # fmt: skip
    for i in range(16):
        out[i] = x[i]


@_compile()
def fill_blocks(out: Any, key: Any, counters: Any, plane: Any, attempt: Any) -> None:
    """The blocks of any counters, one in each row of `out`."""
    for row in range(counters.size):
        _fill_block(out[row], key, counters[row], plane, attempt)


@_compile()
def _word(some: Any, key: Any, plane: Any, position: Any) -> Any:
    """One word of a plane; `some` has room for those of its block."""
    _fill_block(some, key, ((position >> _W(8)) << _W(4)) | (position & _W(15)), plane, 0)
    return some[np.int64((position >> _W(4)) & _W(15))]


@_compile()
def _look_up(number: Any, unsure: Any, doubts: Any, words: Any, cells: Any, down: Any) -> Any:
    """Outcomes of the draws that are certain; how many are not, listed in `unsure`."""
    _use_widest_registers()
    doubt = doubts.view(np.uint8)
    low_bits = _U((_U(1) << down) - _U(1))
    for k in range(number.size):
        number[k] = cells[words[k] >> down]
    for k in range(number.size):
        outcome = number[k] >> down
        beyond = np.int32(np.int32(words[k] & low_bits) - np.int32(number[k] & low_bits))
        number[k] = outcome + _U(beyond > 0)
        doubt[k] = (beyond == 0) | (outcome == _U(0))
    eights = -(-number.size // 8)
    for k in range(number.size, 8 * eights):
        doubt[k] = 0
    count = np.int64(0)
    for group in range(eights):
        if doubts[group] != _W(0):
            for k in range(8 * group, 8 * group + 8):
                unsure[count] = k
                count += np.int64(doubt[k])
    return count


@_compile()
def _count_on(e: Any, number: Any, offset: Any, origin: Any, width: Any) -> None:
    """Integers of outcomes that are all 2^width wide, where row 0 would begin at `origin`."""
    _use_widest_registers()
    size = np.float64(1 << width)
    mask = _U((1 << width) - 1)
    for k in range(e.size):
        inside = np.float64(np.int32(offset[k] & mask))
        e[k] = origin + np.float64(np.int32(number[k])) * size + inside


@_compile()
def _place(e: Any, number: Any, offset: Any, starts: Any, masks: Any) -> None:
    _use_widest_registers()
    for k in range(e.size):
        e[k] = starts[number[k]] + np.float64(np.int32(offset[k] & masks[number[k]]))


@_compile()
def _add_integers(out: Any, tile: Any, e: Any, step: Any) -> None:
    _use_widest_registers()
    for k in range(out.size):
        out[k] = (tile[k] + e[k]) * step


@_compile()
def _add_reals(out: Any, tile: Any, e: Any, step: Any) -> None:
    _use_widest_registers()
    for k in range(out.size):
        out[k] = tile[k] + e[k] * step


@_compile()
def _bound(cells: Any, cell: Any, down: Any, begin: Any, last: Any) -> Any:
    """The first and the last outcome that a word of this cell may have."""
    entry = cells[cell]
    if entry >> down > _U(0):
        low = begin + np.int64(entry >> down)
        return low, min(low + 1, last)
    high = last
    if cell + 1 < cells.size:
        after = cells[cell + 1]
        if after >> down > _U(0):
            high = begin + np.int64(after >> down)
        elif after < (_U(1) << down) - _U(1):  # else it is cut off, see `_guide`
            high = np.int64(after)
    return np.int64(entry), high


@_compile()
def _search(ends: Any, low: Any, high: Any, word: Any) -> Any:
    """The outcome low … high whose end is the first beyond the word; without branches."""
    left = high - low
    while left > 0:
        half = (left + 1) >> 1
        low += half * np.int64(ends[low + half - 1] <= word)
        left -= half
    return low


@_compile()
def fill_draws(
    out: Any,
    pending: Any,
    first: Any,
    key: Any,
    tile: Any,
    at_tile: Any,
    integral: Any,
    step: Any,
    cells: Any,
    down: Any,
    begin: Any,
    origin: Any,
    width: Any,
    row_starts: Any,
    row_masks: Any,
    ends: Any,
    starts: Any,
    widths: Any,
    kinds: Any,
) -> Any:
    """Write draws number first, …: (tile + e)·step where `integral`, tile + e·step where not.

    `tile` is repeated, from its place `at_tile` on. Returns how many draws were left undone;
    `pending` holds which, with their outcomes. `cells` gives row r of an outcome, which is number
    begin + r. It begins at origin + r·2^width, and has 2^width integers; where `width` is negative,
    its first integer and the mask of its offset stand in row r of `row_starts` and `row_masks`.

    `down` = 32 − the bits of the guide: an argument, since compiled code that was kept would not
    see a constant of another file change.

    Sums are exact: all integers here are below 2^52, and those of the searched draws are 64-bit.
    """
    _use_widest_registers()
    words = np.empty(_BATCH, np.uint32)
    offsets = np.zeros(_BATCH, np.uint32)
    some = np.empty(16, np.uint32)
    number = np.empty(_BATCH, np.uint32)
    e = np.empty(_BATCH, np.float64)
    unsure = np.empty(_BATCH + 1, np.int64)
    doubts = np.empty(_BATCH // 8, np.uint64)
    undone = 0
    done = 0
    t = at_tile
    position = first
    while done < out.size:
        skip = np.int64(position % _W(_GROUP))
        aligned = position - _W(skip)
        n = min(_BATCH - skip, out.size - done)
        whole = -(-(skip + n) // _GROUP) * _GROUP
        fill_words(words[:whole], key, FIRST, aligned)
        count = _look_up(number[:n], unsure, doubts, words[skip : skip + n], cells, down)
        if width != 0:
            fill_words(offsets[:whole], key, OFFSET, aligned)
        if width >= 0:
            _count_on(e[:n], number[:n], offsets[skip : skip + n], origin, width)
        else:
            _place(e[:n], number[:n], offsets[skip : skip + n], row_starts, row_masks)
        begin_tile = t
        at = 0
        while at < n:
            m = min(n - at, tile.size - t)
            target = out[done + at : done + at + m]
            if integral:
                _add_integers(target, tile[t : t + m], e[at : at + m], step)
            else:
                _add_reals(target, tile[t : t + m], e[at : at + m], step)
            at += m
            t += m
            if t == tile.size:
                t = 0
        for h in range(count):
            k = unsure[h]
            here = position + _W(k)
            word = _W(words[skip + k]) << _W(32)
            cell = np.int64(words[skip + k] >> down)
            low, high = _bound(cells, cell, down, begin, ends.size)
            outcome = _search(ends, low, high, word)
            if outcome < ends.size and ends[outcome] >> _W(32) == word >> _W(32):
                word |= _W(_word(some, key, SECOND, here))
                while outcome < ends.size and ends[outcome] <= word:
                    outcome += 1
            bits, kind = widths[outcome], kinds[outcome]
            if kind == REST or (bits > 31 and kind != EVEN):
                pending[undone, 0] = done + k
                pending[undone, 1] = outcome
                undone += 1
                continue
            j = starts[outcome]
            if bits > 0:
                mask = (_W(1) << _W(bits)) - _W(1)
                low_word = _W(offsets[skip + k] if width != 0 else _word(some, key, OFFSET, here))
                f = low_word & mask
                if bits > 31:
                    both_words = low_word << _W(32) | _W(_word(some, key, OTHER_OFFSET, here))
                    f = both_words >> _W(64 - bits)
                elif kind != EVEN:
                    other_word = (
                        low_word >> _W(16)
                        if bits <= 16
                        else _W(_word(some, key, OTHER_OFFSET, here))
                    )
                    g = other_word & mask
                    f = max(f, g) if kind == RISING else min(f, g)
                j += np.int64(f)
            at = begin_tile + k
            beside = tile[at if at < tile.size else at - tile.size]
            if integral:
                out[done + k] = np.float64(np.int64(beside) + j) * step
            else:
                out[done + k] = beside + np.float64(j) * step
        done += n
        position += _W(n)
    return undone
