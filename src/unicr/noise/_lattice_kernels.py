"""How fast can a cipher's words become integers: the compiled inner loops of lattice noise.

A draw takes one 32-bit word. The guide's entry of its top bits is an outcome and where the next one
begins, if these two are all that the bits leave open; the others are looked up in all 64 bits, and
what needs the density itself is left to numpy. Importing this module imports numba; import it
inside functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

from unicr.noise._chacha import FINE, HIGH, LOW, OTHER, ROUNDS
from unicr.noise._integers import EVEN, GUIDE, REST, RISING
from unicr.noise._kernels import _compiled

_U = np.uint32
_W = np.uint64
_LANES = 8  # blocks side by side in the stream
_WIDE = 2 * _LANES  # blocks made at once: in one vector where a processor has such
_GROUP = 16 * _LANES
_PAIR = 2 * _GROUP
_BATCH = 1024
_ALL = _W(0xFFFFFFFF)
_DOWN, _REST = _U(32 - GUIDE), _U((1 << 32 - GUIDE) - 1)


def _mixed(typing: Any, out: Any, start: Any, base: Any) -> Any:
    """ChaCha's block function on sixteen blocks, each row of the state one vector, or two.

    `base` is added to the counters in `start`, which must not carry.
    """
    lanes = _WIDE if binding.get_host_cpu_features().get("avx512f") else _LANES

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, long = ir.IntType(32), ir.IntType(64)
        row, group = ir.VectorType(word, lanes), ir.VectorType(word, _LANES)
        nothing = ir.Constant(row, ir.Undefined)

        def place(number: int, kind: Any, index: int) -> Any:
            array = context.make_array(signature.args[number])(context, builder, args[number])
            first = builder.bitcast(array.data, kind.as_pointer())
            return builder.gep(first, [ir.Constant(long, index)])

        def everywhere(value: Any) -> Any:
            one = builder.insert_element(nothing, builder.trunc(value, word), ir.Constant(word, 0))
            return builder.shuffle_vector(one, nothing, ir.Constant(row, [0] * lanes))

        parts = _WIDE // lanes
        low, high = args[2], builder.lshr(args[2], ir.Constant(long, 32))
        for part in range(parts):
            began = [builder.load(place(1, row, i * parts + part), align=4) for i in range(16)]
            for i, half in ((12, low), (13, high)):
                began[i] = builder.add(began[i], everywhere(half))
            x = list(began)
            for turned in (0, 1) * (ROUNDS // 2):
                turns = [[4 * k + (i + k * turned) % 4 for k in range(4)] for i in range(4)]
                for p, q, r, turn in ((0, 1, 3, 16), (2, 3, 1, 12), (0, 1, 3, 8), (2, 3, 1, 7)):
                    left, right = (ir.Constant(row, [n] * lanes) for n in (turn, 32 - turn))
                    for at in turns:
                        x[at[p]] = builder.add(x[at[p]], x[at[q]])
                        mixed = builder.xor(x[at[r]], x[at[p]])
                        up, down = builder.shl(mixed, left), builder.lshr(mixed, right)
                        x[at[r]] = builder.or_(up, down)
            for i, (one, other) in enumerate(zip(x, began, strict=True)):
                found = builder.add(one, other)
                for k in range(lanes // _LANES):
                    chosen = ir.Constant(group, [k * _LANES + j for j in range(_LANES)])
                    eight = builder.shuffle_vector(found, nothing, chosen)
                    builder.store(eight, place(0, group, 16 * (part + k) + i), align=4)
        return context.get_dummy_value()

    return types.void(out, start, types.uint64), code


_mix: Any = intrinsic(_mixed)


@_compiled
def _started(key: Any, first: Any, second: Any) -> Any:
    """The state of blocks 0 … 15 before the rounds."""
    start = np.empty((16, _WIDE), np.uint32)
    start[0] = _U(0x61707865)
    start[1] = _U(0x3320646E)
    start[2] = _U(0x79622D32)
    start[3] = _U(0x6B206574)
    for i in range(8):
        start[4 + i] = key[i]
    for k in range(_WIDE):
        start[12, k] = _U(k)
    start[13] = _U(0)
    start[14] = _U(first)
    start[15] = _U(second)
    return start


@_compiled
def blocks(out: Any, key: Any, counters: Any, first: Any, second: Any) -> None:
    """The blocks of any counters, one in each row of `out`."""
    start = _started(key, first, second)
    state = np.empty((_WIDE // _LANES, 16, _LANES), np.uint32)
    for low in range(0, counters.size, _WIDE):
        n = min(_WIDE, counters.size - low)
        for k in range(_WIDE):
            counter = counters[low + min(k, n - 1)]
            start[12, k] = _U(counter & _ALL)
            start[13, k] = _U(counter >> _W(32))
        _mix(state, start, _W(0))
        for k in range(n):
            for i in range(16):
                out[low + k, i] = state[k // _LANES, i, k % _LANES]


@_compiled
def _words(out: Any, start: Any, pair: Any) -> None:
    """Words 256·pair … of the plane of `start`, as many as fit into `out` (a multiple of 256)."""
    for g in range(out.size // _PAIR):
        _mix(out[g * _PAIR : (g + 1) * _PAIR], start, _W((pair + _W(g)) * _W(_WIDE)))


@_compiled
def _word(some: Any, start: Any, position: Any) -> Any:
    """One word of a plane; `some` has room for those made with it."""
    _words(some, start, position // _W(_PAIR))
    return some[np.int64(position % _W(_PAIR))]


@_compiled
def _look_up(e: Any, unsure: Any, doubts: Any, high: Any, guide: Any) -> Any:
    """Outcomes of the draws that are certain; the number of the others, listed in `unsure`."""
    doubt = doubts.view(np.uint8)
    for k in range(e.size):
        e[k] = guide[high[k] >> _DOWN]
    for k in range(e.size):
        found = e[k] >> _DOWN
        beyond = np.int32(np.int32(high[k] & _REST) - np.int32(e[k] & _REST))
        e[k] = found + _U(beyond > 0)
        doubt[k] = (beyond == 0) | (found == _U(0))
    eights = -(-e.size // 8)
    for k in range(e.size, 8 * eights):
        doubt[k] = 0
    count = np.int64(0)
    for group in range(eights):
        if doubts[group] != _W(0):
            for k in range(8 * group, 8 * group + 8):
                unsure[count] = k
                count += np.int64(doubt[k])
    return count


@_compiled
def _refine(e: Any, fine: Any, rows: Any) -> None:
    for k in range(e.size):
        row = e[k]
        e[k] = _U(rows[row, 0] + (np.int32(fine[k]) & rows[row, 1]))


@_compiled
def _sums(out: Any, tile: Any, e: Any, origin: Any, step: Any) -> None:
    for k in range(out.size):
        out[k] = np.float64(np.int32(_U(tile[k]) + e[k] + origin)) * step


@_compiled
def fill_integers(
    out: Any,
    left: Any,
    first: Any,
    key: Any,
    tile: Any,
    offset: Any,
    step: Any,
    guide: Any,
    rows: Any,
    begin: Any,
    origin: Any,
    wide: Any,
    ends: Any,
    starts: Any,
    widths: Any,
    kinds: Any,
) -> Any:
    """out[k] = float((tile[(offset + k) % L] + e_k) · step); the draws are number first, …

    Returns how many were left undone; `left` holds which, with their outcomes. The guide gives
    e − origin or, where offsets inside outcomes are wanted often (`wide`), the row of `rows` with
    an outcome's start and mask: that of outcome `begin` + r is number r.
    """
    first_half, second_half = _started(key, HIGH, 0), _started(key, LOW, 0)
    inside, again = _started(key, FINE, 0), _started(key, OTHER, 0)
    high = np.empty(_BATCH, np.uint32)
    fine = np.empty(_BATCH, np.uint32)
    some = np.empty(_PAIR, np.uint32)
    e = np.empty(_BATCH, np.uint32)
    unsure = np.empty(_BATCH + 1, np.int64)
    doubts = np.empty(_BATCH // 8, np.uint64)
    undone = 0
    done = 0
    o = offset
    position = first
    while done < out.size:
        skip = np.int64(position % _W(_BATCH))
        pair = (position - _W(skip)) // _W(_PAIR)
        n = min(_BATCH - skip, out.size - done)
        _words(high, first_half, pair)
        count = _look_up(e[:n], unsure, doubts, high[skip : skip + n], guide)
        if wide:
            _words(fine, inside, pair)
            _refine(e[:n], fine[skip : skip + n], rows)
        at = 0
        while at < n:
            m = min(n - at, tile.size - o)
            _sums(out[done + at : done + at + m], tile[o : o + m], e[at : at + m], origin, step)
            at += m
            o += m
            if o == tile.size:
                o = 0
        for h in range(count):
            k = unsure[h]
            here = position + _W(k)
            w = _W(high[skip + k]) << _W(32)
            entry = guide[high[skip + k] >> _DOWN]
            known = entry >> _DOWN
            number = np.int64(begin + known if known else entry)
            leap = 1
            while number + leap <= ends.size and ends[number + leap - 1] <= w:
                number += leap
                leap *= 2
            while leap > 0:
                if number + leap <= ends.size and ends[number + leap - 1] <= w:
                    number += leap
                leap //= 2
            if number < ends.size and ends[number] >> _W(32) == w >> _W(32):
                w |= _W(_word(some, second_half, here))
                while number < ends.size and ends[number] <= w:
                    number += 1
            width, kind = widths[number], kinds[number]
            if kind == REST or width > 31:
                left[undone, 0] = done + k
                left[undone, 1] = number
                undone += 1
                continue
            j = starts[number]
            if width > 0:
                within = (_W(1) << _W(width)) - _W(1)
                one = _W(fine[skip + k] if wide else _word(some, inside, here))
                f = one & within
                if kind != EVEN:
                    two = one >> _W(16) if width <= 16 else _W(_word(some, again, here))
                    g = two & within
                    f = max(f, g) if kind == RISING else min(f, g)
                j += np.int64(f)
            out[done + k] = np.float64(j + tile[(offset + done + k) % tile.size]) * step
        done += n
        position += _W(n)
    return undone
