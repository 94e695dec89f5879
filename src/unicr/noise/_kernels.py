"""How fast can table look-ups become noise: the compiled inner loops of `unicr.noise._sampling`.

Each block of draws takes two passes (random bits to cell numbers, then the cubics), and a third
one only where a draw fell into a cell marked by NaN, which has a list of finer pieces. Only
strict IEEE operations are used (no fused multiply-add), so that the numpy and torch versions give
the same doubles. Importing this module imports numba; import it inside functions only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

from unicr.noise._inverse import FIRST_EXPONENT, MANTISSA
from unicr.noise._streams import ALMOST_ONE, MIX1, MIX2, ONE

_F = TypeVar("_F", bound=Callable[..., Any])

_U = np.uint64
_MIX1, _MIX2, _ONE, _MANTISSA = _U(MIX1), _U(MIX2), _U(ONE), _U(MANTISSA)
_BLOCK = 512


def _compiled(function: _F) -> _F:
    """Compile without the GIL; keep the code on disk where some cache directory can be written."""
    try:
        compiled = njit(nogil=True, cache=True)(function)
    except RuntimeError:
        compiled = njit(nogil=True)(function)
    return cast(_F, compiled)


@_compiled
def _locate(rows: Any, positions: Any, n: Any, z: Any, gamma: Any, m: Any) -> Any:
    """Turn n draws into rows of the table and positions in [-1/2, 1/2) inside their cells."""
    shift = _U(50 - m)
    to_cell = _U(m)
    first_row = _U(FIRST_EXPONENT << (m + 2))
    for k in range(n):
        r = z
        z += gamma
        r = (r ^ (r >> _U(30))) * _MIX1
        r = (r ^ (r >> _U(27))) * _MIX2
        r = r ^ (r >> _U(31))
        d = np.uint64((r >> _U(12)) | _ONE).view(np.float64) - ALMOST_ONE
        bits = np.float64(d).view(np.uint64)
        rows[k] = (((bits >> shift) & ~_U(3)) | (r & _U(3))) - first_row
        positions[k] = np.uint64(((bits << to_cell) & _MANTISSA) | _ONE).view(np.float64) - 1.5
    return z


@_compiled
def _cubics(block: Any, rows: Any, positions: Any, cells: Any, scale: Any, base: Any) -> None:
    for k in range(block.size):
        i = rows[k]
        s = positions[k]
        x = cells[i, 0] + s * (cells[i, 1] + s * (cells[i, 2] + s * cells[i, 3]))
        block[k] = base[k] + scale * x


@_compiled
def _repair(
    block: Any,
    hits: Any,
    rows: Any,
    positions: Any,
    cells: Any,
    m: Any,
    scale: Any,
    base: Any,
    sub_lo: Any,
    sub_inv: Any,
    sub_coef: Any,
) -> None:
    first_row = _U(FIRST_EXPONENT << (m + 2))
    count = 0
    for k in range(block.size):
        hits[count] = k
        count += block[k] != block[k]
    for h in range(count):
        k = hits[h]
        row = rows[k]
        if cells[row, 0] == cells[row, 0]:
            continue
        inner = np.float64(positions[k] + 1.5).view(np.uint64) & _MANTISSA
        bits = (((row + first_row) >> _U(2)) << _U(52 - m)) | (inner >> _U(m))
        d = np.uint64(bits).view(np.float64)
        low = np.int64(cells[row, 1])
        high = low + np.int64(cells[row, 2])
        while high - low > 1:
            middle = (low + high) // 2
            right = sub_lo[middle] <= d
            low = middle if right else low
            high = high if right else middle
        s = (d - sub_lo[low]) * sub_inv[low] - 0.5
        x = sub_coef[low, 0] + s * (
            sub_coef[low, 1] + s * (sub_coef[low, 2] + s * sub_coef[low, 3])
        )
        block[k] = base[k] + scale * x


@_compiled
def fill_run(
    out: Any,
    z: Any,
    gamma: Any,
    cells: Any,
    m: Any,
    scale: Any,
    tile: Any,
    offset: Any,
    sub_lo: Any,
    sub_inv: Any,
    sub_coef: Any,
) -> None:
    """Write consecutive draws of one stream: out[k] = tile[(offset + k) % L] + scale * x_k."""
    rows = np.empty(_BLOCK, np.uint64)
    positions = np.empty(_BLOCK, np.float64)
    hits = np.empty(_BLOCK, np.int64)
    done = 0
    o = offset
    while done < out.size:
        n = min(_BLOCK, out.size - done, tile.size - o)
        block = out[done : done + n]
        base = tile[o : o + n]
        z = _locate(rows, positions, n, z, gamma, m)
        _cubics(block, rows, positions, cells, scale, base)
        if sub_lo.size > 0:
            _repair(block, hits, rows, positions, cells, m, scale, base, sub_lo, sub_inv, sub_coef)
        done += n
        o += n
        if o == tile.size:
            o = 0
