"""How is a 1-D noise drawn: by inverting its CDF, x = F^-1(u), with u from a counter.

`InverseTable` holds the quantile function as cubics on cells that shrink geometrically towards
u = 0, 1/2 and 1; `fill` and `fill_torch` draw from it. A draw depends only on (seed, input,
substream, sample, coordinate), never on batch size, threads or device. The generator is SplitMix64
with one odd increment per stream (Steele, Lea and Flood, 2014).
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
import operator
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unicr.errors import NoiseError

if TYPE_CHECKING:
    import torch

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

CONTRACT_TAIL = 1e-12
_MASK64 = (1 << 64) - 1
_MIX1 = 0xBF58476D1CE4E5B9
_MIX2 = 0x94D049BB133111EB
_ONE = 0x3FF0000000000000
_MANTISSA = (1 << 52) - 1
_ALMOST_ONE = 1.0 - 2.0**-53
_OCTAVES = 53
_FIRST_EXPONENT = 1023 - _OCTAVES

_SAFETY = 0.4  # at a kink between the check points the error is up to 2.34 times larger
_HARD_MASS = 0.004
_SUBCELL_LIMIT = 20_000
_SNAP = 2.0**-50
_BELOW_HALF = float(np.nextafter(0.5, 0.0))
_NODES = 0.5 * np.cos((2 * np.arange(4) + 1) * np.pi / 8)
_CHECKS = 0.5 * np.cos(np.arange(5) * np.pi / 4)
_TO_COEFFICIENTS = np.linalg.inv(np.vander(_NODES, 4, increasing=True))

_TILE = 512
_PIECE = 1 << 14
_TORCH_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class InverseTable:
    """A quantile function as piecewise cubics, ready to be fed with 64 random bits per draw.

    The low 2 bits q of a draw choose a quarter of (0, 1), the top 52 bits a lattice point
    d = (2k + 1) 2^-53 in it: u = d/4, 1/2 - d/4, 1/2 + d/4, 1 - d/4 for q = 0..3. So u is never 0
    or 1, the tails are inverted down to u = 2^-55, and the two ends of u keep their relative
    precision. Row ((octave << m | top m mantissa bits) << 2 | q) of `cells` holds the cubic in the
    position s in [-1/2, 1/2) inside the cell; NaN there points to the finer pieces `sub_*`.

    Contract: |F(x(u)) - u| <= 1e-9 min(u, 1 - u) for u in [1e-12, 1 - 1e-12], up to the rounding of
    x itself: a few units in the last place of the largest |x| in the same piece. That is felt where
    a bounded support ends, and where the density is infinite away from the median: 10 such units
    and an error of 1.4e-7 were seen at an unlisted point with u - u0 = x^(1/3). `max_error` is
    the largest relative error at the check points of the build, forgiving 4 units in the last place
    of x; it exceeds 1e-9 only if ppf and cdf disagree by as much, or if the pieces ran out.
    """

    m: int
    cells: Array
    sub_lo: Array
    sub_inv: Array
    sub_coef: Array
    max_error: float
    hard_mass: float
    _on_device: dict[str, tuple[torch.Tensor, ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for array in (self.cells, self.sub_lo, self.sub_inv, self.sub_coef):
            array.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = (self.cells, self.sub_lo, self.sub_inv, self.sub_coef)
        return InverseTable, (self.m, *arrays, self.max_error, self.hard_mass)

    @classmethod
    def build(
        cls,
        ppf: Function,
        isf: Function,
        cdf: Function,
        sf: Function,
        *,
        breaks: Sequence[float] = (),
        tolerance: float = 1e-9,
    ) -> InverseTable:
        """Fit the table from vectorised float64 functions of the standardised distribution.

        `ppf` is called for 0 < u < 1/2 and `isf` for 0 < v < 1/2 only. `breaks` lists the u in
        (0, 1) where the quantile function jumps or is not smooth: pieces end exactly there. A kink
        or jump that is not listed is found by bisection, and confined to a relative mass of 1e-9.
        """
        points = np.unique(np.asarray(breaks, dtype=np.float64))
        if not np.all((points > 0) & (points < 1)):
            raise NoiseError(f"breaks must lie strictly between 0 and 1, got {list(breaks)!r}")
        if not 1e-13 <= tolerance <= 1e-3:
            raise NoiseError(f"tolerance must be in [1e-13, 1e-3], got {tolerance!r}")
        fit = _Fit(ppf, isf, cdf, sf, tolerance)
        fit.probe()
        d_breaks = _breaks_by_quarter(points)

        m = 5
        q, lo, width = _grid(m)
        coef = fit.cubics(q, lo, width)
        good, error = fit.check(q, lo, width, coef)
        good &= ~_contains(d_breaks, q, lo, width)
        while m < 8 and float(width[~good].sum()) / 4 > _HARD_MASS:
            m += 1
            redo = np.repeat(~good, 2)
            coef, error = _halves(coef), np.repeat(error, 2)
            q, lo, width = _grid(m)
            good = ~redo
            coef[redo] = fit.cubics(q[redo], lo[redo], width[redo])
            good[redo], error[redo] = fit.check(q[redo], lo[redo], width[redo], coef[redo])
            good &= ~_contains(d_breaks, q, lo, width)

        worst = float(error[good].max(initial=0.0))
        hard = np.flatnonzero(~good)
        sub_lo, sub_width, sub_coef, owner, sub_worst = fit.bisect(
            q[hard], lo[hard], width[hard], d_breaks
        )
        coef[hard, 0] = np.nan
        coef[hard, 1] = np.searchsorted(owner, np.arange(hard.size))
        coef[hard, 2] = np.bincount(owner, minlength=hard.size)
        coef[hard, 3] = 0.0
        per_quarter = coef.reshape(4, _OCTAVES << m, 4)
        cells = _aligned((_OCTAVES << m) * 4)
        cells[:] = per_quarter.transpose(1, 0, 2).reshape(-1, 4)
        arrays = (cells, sub_lo, 1.0 / sub_width, sub_coef)
        return cls(
            m,
            *arrays,
            max_error=max(worst, sub_worst),
            hard_mass=float(width[hard].sum()) / 4,
        )

    def evaluate(self, bits: NDArray[np.uint64]) -> Array:
        """x for 64 random bits each: the plain numpy statement of what the kernels compute."""
        z = np.asarray(bits, dtype=np.uint64)
        d = (z >> np.uint64(12) | np.uint64(_ONE)).view(np.float64) - _ALMOST_ONE
        b = d.view(np.uint64)
        rows = ((b >> np.uint64(52 - self.m)) << np.uint64(2) | (z & np.uint64(3))).astype(np.int64)
        c = self.cells[rows - (_FIRST_EXPONENT << (self.m + 2))]
        s = ((b << np.uint64(self.m)) & np.uint64(_MANTISSA) | np.uint64(_ONE)).view(np.float64)
        s = s - 1.5
        x: Array = c[..., 0] + s * (c[..., 1] + s * (c[..., 2] + s * c[..., 3]))
        hard = np.isnan(x)
        if hard.any():
            dh, first = d[hard], c[hard][:, 1].astype(np.int64)
            last = first + c[hard][:, 2].astype(np.int64)
            while np.any(last - first > 1):
                middle = (first + last) // 2
                right = self.sub_lo[middle] <= dh
                first, last = np.where(right, middle, first), np.where(right, last, middle)
            s, c = (dh - self.sub_lo[first]) * self.sub_inv[first] - 0.5, self.sub_coef[first]
            x[hard] = c[:, 0] + s * (c[:, 1] + s * (c[:, 2] + s * c[:, 3]))
        return x

    def pieces(self) -> tuple[NDArray[np.int64], Array, Array, Array]:
        """(quarter, lower end in d, width, cubic) of every piece, finer ones in place of NaN."""
        q, lo, width = _grid(self.m)
        coef = self.cells.reshape(-1, 4, 4).transpose(1, 0, 2).reshape(-1, 4)
        split = np.isnan(coef[:, 0])
        owner = np.repeat(q[split], coef[split, 2].astype(np.int64))
        first = np.repeat(coef[split, 1], coef[split, 2].astype(np.int64))
        order = np.argsort(first, kind="stable")
        return (
            np.concatenate([q[~split], owner[order]]),
            np.concatenate([lo[~split], self.sub_lo]),
            np.concatenate([width[~split], 1.0 / self.sub_inv]),
            np.concatenate([coef[~split], self.sub_coef]),
        )

    def quantile(self, u: ArrayLike) -> Array:
        """x at the lattice point next to u: the function that is sampled, for tests and plots."""
        return self.evaluate(bits_from_uniform(np.asarray(u, dtype=np.float64)))


def bits_from_uniform(u: Array, *, upper: bool = False) -> NDArray[np.uint64]:
    """The 64 bits whose draw lies nearest to u (to 1 - u if `upper`, precise for small u)."""
    u = np.asarray(u, dtype=np.float64)
    if not np.all((u >= 0) & (u <= 1)):
        raise NoiseError("u must lie in [0, 1]")
    flip = u > 0.5
    w = np.where(flip, 1.0 - u, u)
    tail = w < 0.25
    d = np.where(tail, 4 * w, 2.0 - 4 * w)
    k = np.clip(np.floor(d * 2.0**52), 0, 2.0**52 - 1).astype(np.uint64)
    q = np.where(tail, 0, 1)
    q = np.where(flip != upper, 3 - q, q).astype(np.uint64)
    return k << np.uint64(12) | q


def uniform_from_bits(bits: NDArray[np.uint64]) -> tuple[Array, NDArray[np.bool_]]:
    """(w, upper): the exact u of a draw is w, or 1 - w where `upper`; w <= 1/2 up to rounding."""
    z = np.asarray(bits, dtype=np.uint64)
    d = (z >> np.uint64(12) | np.uint64(_ONE)).view(np.float64) - _ALMOST_ONE
    q = z & np.uint64(3)
    w = np.where((q == 0) | (q == 3), d / 4, 0.5 - d / 4)
    return w, q >= 2


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
    z += np.uint64((start + first * gamma) & _MASK64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX2)
    return z ^ (z >> np.uint64(31))


def fill(
    table: InverseTable,
    out: NDArray[Any] | torch.Tensor,
    *,
    scale: float,
    seed: int,
    input_index: int,
    start_sample: int,
    dim: int,
    base: ArrayLike | torch.Tensor | None = None,
    substream: int = 0,
    threads: int | None = None,
) -> None:
    """Write out[i, j] = base[j] + scale * x(start_sample + i, j) into a (n, dim) CPU array.

    The sum is made in double and rounded once to the type of `out`. In float32 a tail so heavy that
    it passes 3e38 gives inf, as any float32 arithmetic would. Without numba the same values come
    from numpy, more slowly. Safe to call from several Python threads at once.
    """
    array = _checked_array(out, dim)
    if not array.flags.writeable:
        raise NoiseError("out is read-only: pass an array that can be written to, such as a copy")
    _check_numbers(scale, start_sample, array.shape[0], dim)
    start, gamma = stream_keys(seed, input_index, substream)
    tile = _tile(base, dim)
    flat = array.reshape(-1)
    first = start_sample * dim
    if threads is None:
        threads = _default_threads()
    elif threads < 1:
        raise NoiseError(f"threads must be at least 1 (or None for all), got {threads!r}")

    def run(low: int, high: int) -> None:
        assert kernel is not None
        z0 = (start + (first + low) * gamma) & _MASK64
        kernel(
            flat[low:high], np.uint64(z0), np.uint64(gamma), table.cells, table.m, float(scale),
            tile, low % tile.size, table.sub_lo, table.sub_inv, table.sub_coef,
        )  # fmt: skip

    def run_numpy(low: int, high: int) -> None:
        for a in range(low, high, _PIECE):
            b = min(a + _PIECE, high)
            x = table.evaluate(draw_bits(start, gamma, first + a, b - a))
            flat[a:b] = tile[np.arange(a, b) % tile.size] + scale * x

    kernel = _kernel()
    work = run_numpy if kernel is None else run
    pieces = max(1, min(threads, flat.size // _PIECE))
    cuts = [flat.size * i // pieces for i in range(pieces + 1)]
    pending = [_pool().submit(work, cuts[i], cuts[i + 1]) for i in range(1, pieces)]
    try:
        work(cuts[0], cuts[1])
    finally:
        for future in pending:
            future.result()


def fill_torch(
    table: InverseTable,
    out: torch.Tensor,
    *,
    scale: float,
    seed: int,
    input_index: int,
    start_sample: int,
    dim: int,
    base: ArrayLike | torch.Tensor | None = None,
    substream: int = 0,
) -> None:
    """`fill` by torch operations on the device of `out`, in chunks of less than 64 MB.

    The values are those of `fill`. The device needs float64 (CPU and CUDA have it, MPS does not:
    fill a CPU tensor and move it there).
    """
    import torch

    _check_out(tuple(out.shape), str(out.dtype), dim, out.is_contiguous())
    _check_numbers(scale, start_sample, out.shape[0], dim)
    start, gamma = stream_keys(seed, input_index, substream)
    device = out.device
    key = str(device)
    if key not in table._on_device:
        arrays = (table.cells, table.sub_lo, table.sub_inv, table.sub_coef)
        table._on_device[key] = tuple(torch.tensor(a, device=device) for a in arrays)
    cells, sub_lo, sub_inv, sub_coef = table._on_device[key]
    base_row = None if base is None else torch.tensor(_base_row(base, dim), device=device)
    flat = out.detach().view(-1)
    m = table.m

    for low in range(0, flat.numel(), _TORCH_CHUNK):
        high = min(low + _TORCH_CHUNK, flat.numel())
        z = torch.arange(high - low, dtype=torch.int64, device=device)
        z.mul_(_signed(gamma)).add_(_signed(start + (start_sample * dim + low) * gamma))
        z.bitwise_xor_(_shift_right(z, 30)).mul_(_signed(_MIX1))
        z.bitwise_xor_(_shift_right(z, 27)).mul_(_signed(_MIX2))
        z.bitwise_xor_(_shift_right(z, 31))
        d = _shift_right(z, 12).bitwise_or_(_ONE).view(torch.float64).sub_(_ALMOST_ONE)
        b = d.view(torch.int64)
        rows = (b >> (52 - m)).mul_(4).bitwise_or_(z.bitwise_and_(3))
        c = cells[rows.sub_(_FIRST_EXPONENT << (m + 2))]
        s = (b << m).bitwise_and_(_MANTISSA).bitwise_or_(_ONE).view(torch.float64).sub_(1.5)
        x = _horner(c, s)
        if sub_lo.numel():
            hard = torch.isnan(x).nonzero().squeeze(1)
            if hard.numel():
                dh, first = d[hard], c[hard, 1].long()
                last = first + c[hard, 2].long()
                while bool((last - first > 1).any()):
                    middle = (first + last) // 2
                    right = sub_lo[middle] <= dh
                    first, last = (
                        torch.where(right, middle, first),
                        torch.where(right, last, middle),
                    )
                x[hard] = _horner(sub_coef[first], (dh - sub_lo[first]) * sub_inv[first] - 0.5)
        x.mul_(scale)
        if base_row is not None:
            x.add_(base_row[torch.arange(low, high, device=device) % dim])
        flat[low:high] = x


def _horner(c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    return (c[:, 3] * s).add_(c[:, 2]).mul_(s).add_(c[:, 1]).mul_(s).add_(c[:, 0])


def _shift_right(z: torch.Tensor, count: int) -> torch.Tensor:
    return (z >> count).bitwise_and_((1 << (64 - count)) - 1)


def _signed(value: int) -> int:
    value &= _MASK64
    return value - (1 << 64) if value >> 63 else value


class _Fit:
    """Cubics for cells in the coordinates (quarter q, d), and their errors measured by the CDF."""

    def __init__(
        self, ppf: Function, isf: Function, cdf: Function, sf: Function, tolerance: float
    ) -> None:
        self.inverse, self.forward, self.tolerance = (ppf, isf), (cdf, sf), tolerance

    def _by_half(self, functions: tuple[Function, Function], q: NDArray[Any], x: Array) -> Array:
        y = np.empty_like(x)
        with np.errstate(all="ignore"):
            for half, function in enumerate(functions):
                mask = (q >= 2) == bool(half)
                if mask.any():
                    y[mask] = function(x[mask])
        return y

    def quantile(self, q: NDArray[Any], d: Array) -> Array:
        w = _mass(q, d)
        x = self._by_half(self.inverse, q, w)
        usable = np.abs(x) < 1e300
        if not usable.all():
            i = np.unravel_index(int(np.argmin(usable)), x.shape)
            name = "isf" if q[i] >= 2 else "ppf"
            raise NoiseError(
                f"{name}({w[i]:.17g}) is {x[i]}: the quantiles must be finite (below 1e300) "
                "for every probability down to 2^-55; use a lighter tail or a truncated noise"
            )
        return x

    def probe(self) -> None:
        """Refuse functions that are not inverse to each other at all."""
        d = np.tile((np.arange(16) + 0.5) / 16, (4, 1))
        q = np.broadcast_to(np.arange(4)[:, None], d.shape)
        w = _mass(q, d)
        gap = np.abs(self._by_half(self.forward, q, self.quantile(q, d)) - w)
        if not np.median(gap) < 1e-3:
            raise NoiseError(
                f"ppf/isf and cdf/sf disagree: cdf(ppf(u)) - u is about {np.median(gap):.2g}; "
                "pass the four functions of one distribution"
            )

    def cubics(self, q: NDArray[Any], lo: Array, width: Array) -> Array:
        d = lo[:, None] + width[:, None] * (_NODES + 0.5)
        x = self.quantile(np.broadcast_to(q[:, None], d.shape), d)
        centre = x[:, 1]
        coef: Array = (x - centre[:, None]) @ _TO_COEFFICIENTS.T
        coef[:, 0] += centre
        return coef

    def check(
        self, q: NDArray[Any], lo: Array, width: Array, coef: Array
    ) -> tuple[NDArray[np.bool_], Array]:
        """(no finer cubic is needed, largest relative error inside the contract) per cell."""
        d = lo[:, None] + width[:, None] * (_CHECKS + 0.5)
        qq = np.broadcast_to(q[:, None], d.shape)
        c = coef[:, None, :]
        x = c[..., 0] + _CHECKS * (c[..., 1] + _CHECKS * (c[..., 2] + _CHECKS * c[..., 3]))
        w = _mass(qq, d)
        reached = self._by_half(self.forward, qq, x)
        error = np.abs(reached - w)
        allowed = _SAFETY * self.tolerance * np.maximum(w, CONTRACT_TAIL)
        good = error <= allowed
        i = np.nonzero(~good)
        if i[0].size:
            step = 4 * np.spacing(np.abs(x[i]))
            ends = [self._by_half(self.forward, qq[i], x[i] + sign * step) for sign in (-1, 1)]
            outside = np.maximum(np.minimum(*ends) - w[i], w[i] - np.maximum(*ends))
            error[i] = np.where(np.isnan(outside), np.inf, np.maximum(outside, 0.0))
            target = self._by_half(self.forward, qq[i], self.quantile(qq[i], d[i]))
            good[i] = (error[i] <= allowed[i]) | (np.abs(reached[i] - target) <= allowed[i])
        inside = w >= CONTRACT_TAIL
        relative = np.where(inside, error / np.where(inside, w, 1.0), 0.0)
        return np.asarray(good.all(axis=1)), relative.max(axis=1, initial=0.0)

    def bisect(
        self, q: NDArray[Any], lo: Array, width: Array, d_breaks: list[Array]
    ) -> tuple[Array, Array, Array, NDArray[np.int64], float]:
        """Finer pieces (lo, width, cubic, number of the cell they belong to) and their error."""
        pieces: list[tuple[float, float, int]] = []
        for i in range(lo.size):
            inner = d_breaks[int(q[i])]
            inner = inner[(inner > lo[i] + _SNAP) & (inner < lo[i] + width[i] - _SNAP)]
            edges = np.concatenate(([lo[i]], inner, [lo[i] + width[i]]))
            pieces += [(a, b - a, i) for a, b in itertools.pairwise(edges)]
        todo = np.array(pieces, dtype=np.float64).reshape(-1, 3)
        done: list[NDArray[np.float64]] = []
        worst, count = 0.0, 0
        while todo.size:
            a, w, owner = todo.T
            qq = q[owner.astype(np.int64)]
            coef = self.cubics(qq, a, w)
            good, error = self.check(qq, a, w, coef)
            count += int(good.sum())
            resolution = self.tolerance * np.maximum(_mass(qq, a + w / 2), CONTRACT_TAIL)
            flat = ~good & ((w / 4 <= resolution) | (w <= 2.0**-52))
            if flat.any():
                coef[flat] = 0.0
                coef[flat, 0] = self.quantile(qq[flat], a[flat] + w[flat] / 2)
                error[flat] = self.tolerance / 2
            final = good | flat
            if count + 2 * int((~final).sum()) > _SUBCELL_LIMIT:
                final[:] = True
            worst = max(worst, float(error[final].max(initial=0.0)))
            done.append(np.column_stack((todo, coef))[final])
            left = todo[~final]
            half = left[:, 1] / 2
            todo = np.concatenate(
                (
                    np.column_stack((left[:, 0], half, left[:, 2])),
                    np.column_stack((left[:, 0] + half, half, left[:, 2])),
                )
            )
        rows = np.concatenate(done) if done else np.empty((0, 7))
        rows = rows[np.lexsort((rows[:, 0], rows[:, 2]))]
        return (
            rows[:, 0].copy(), rows[:, 1], np.ascontiguousarray(rows[:, 3:]),
            rows[:, 2].astype(np.int64), worst,
        )  # fmt: skip


def _mass(q: NDArray[Any], d: Array) -> Array:
    """min(u, 1 - u) at the point d of quarter q, kept off the median itself."""
    tail = (q == 0) | (q == 3)
    w: Array = np.where(tail, d / 4, np.minimum(0.5 - d / 4, _BELOW_HALF))
    return w


def _grid(m: int) -> tuple[NDArray[np.int64], Array, Array]:
    """(quarter, lower end, width) of all cells, quarter by quarter, in the order of d."""
    octave = 2.0 ** np.arange(-_OCTAVES, 0)[:, None]
    lo = (octave * (1 + np.arange(1 << m) / (1 << m))).ravel()
    width = np.repeat(octave.ravel() / (1 << m), 1 << m)
    return np.repeat(np.arange(4), lo.size), np.tile(lo, 4), np.tile(width, 4)


def _halves(coef: Array) -> Array:
    """The same cubics on the two halves of each cell, one after the other."""
    children = np.empty((coef.shape[0], 2, 4))
    c0, c1, c2, c3 = coef.T
    for side, h in enumerate((-0.25, 0.25)):
        children[:, side, 0] = c0 + h * (c1 + h * (c2 + h * c3))
        children[:, side, 1] = (c1 + h * (2 * c2 + 3 * h * c3)) / 2
        children[:, side, 2] = (c2 + 3 * h * c3) / 4
        children[:, side, 3] = c3 / 8
    return children.reshape(-1, 4)


def _breaks_by_quarter(points: Array) -> list[Array]:
    """Break points as positions d in each quarter, without those that coincide by rounding."""
    lower, upper = points[points < 0.5], 1.0 - points[points > 0.5]
    quarters = [
        4 * lower[lower < 0.25],
        2 - 4 * lower[lower > 0.25],
        2 - 4 * upper[upper > 0.25],
        4 * upper[upper < 0.25],
    ]
    return [d[np.diff(d, prepend=-1.0) > _SNAP] for d in map(np.sort, quarters)]


def _contains(d_breaks: list[Array], q: NDArray[Any], lo: Array, width: Array) -> NDArray[np.bool_]:
    """Whether a break lies inside each cell, and not just at its edge up to rounding."""
    found = np.zeros(lo.shape, dtype=bool)
    for quarter, d in enumerate(d_breaks):
        if d.size:
            mask = q == quarter
            left = np.searchsorted(d, lo[mask] + _SNAP, side="right")
            found[mask] = left < np.searchsorted(d, (lo + width)[mask] - _SNAP, side="left")
    return found


def _aligned(rows: int) -> Array:
    """A (rows, 4) array none of whose rows crosses a cache line."""
    raw = np.empty(rows * 4 + 8)
    skip = (-raw.ctypes.data // 8) % 8
    return raw[skip : skip + rows * 4].reshape(rows, 4)


def _checked_array(out: Any, dim: int) -> NDArray[Any]:
    """`out` as a numpy array on the same memory, after checking it."""
    if isinstance(out, np.ndarray):
        _check_out(out.shape, str(out.dtype), dim, out.flags.c_contiguous)
        return out
    if "torch" in sys.modules:
        import torch

        if isinstance(out, torch.Tensor):
            if out.device.type != "cpu":
                raise NoiseError(f"fill needs a CPU tensor, got {out.device}; use fill_torch")
            _check_out(tuple(out.shape), str(out.dtype), dim, out.is_contiguous())
            return out.detach().numpy()
    raise NoiseError(f"out must be a numpy array or a torch tensor, got {type(out).__name__}")


def _check_out(shape: tuple[int, ...], dtype: str, dim: int, contiguous: bool) -> None:
    if dtype.removeprefix("torch.") not in ("float32", "float64"):
        raise NoiseError(f"out must be float32 or float64, got {dtype}")
    if len(shape) != 2 or shape[1] != dim or dim < 1:
        raise NoiseError(f"out must have shape (n, dim) with dim = {dim!r}, got {tuple(shape)}")
    if not contiguous:
        raise NoiseError("out must be contiguous in memory; pass a fresh array, not a strided view")


def _check_numbers(scale: float, start_sample: int, n: int, dim: int) -> None:
    if not math.isfinite(scale):
        raise NoiseError(f"scale must be a finite number, got {scale!r}")
    if start_sample < 0 or (start_sample + n) * dim >= 1 << 63:
        raise NoiseError(
            f"start_sample must be at least 0 and (start_sample + n) * dim below 2^63, got "
            f"start_sample = {start_sample!r}, n = {n}, dim = {dim}"
        )


def _base_row(base: Any, dim: int) -> Array:
    if hasattr(base, "detach"):
        base = base.detach().cpu().numpy()
    row = np.asarray(base, dtype=np.float64)
    if row.shape != (dim,):
        raise NoiseError(f"base must have shape ({dim},), got {row.shape}; flatten the input")
    return row


def _tile(base: Any, dim: int) -> Array:
    """The base repeated to a length at which the kernel's inner loops are long enough."""
    if base is None:
        return np.zeros(_TILE)
    return np.tile(_base_row(base, dim), -(-_TILE // dim))


def _default_threads() -> int:
    torch = sys.modules.get("torch")
    return int(torch.get_num_threads()) if torch is not None else os.cpu_count() or 1


@functools.cache
def _kernel() -> Callable[..., None] | None:
    try:
        from unicr.noise import _kernels
    except ImportError:
        return None
    kernel: Callable[..., None] = _kernels.fill_run
    return kernel


_pool_lock = threading.Lock()
_pools: list[ThreadPoolExecutor] = []


def _pool() -> ThreadPoolExecutor:
    with _pool_lock:
        if not _pools:
            _pools.append(ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="unicr-fill"))
        return _pools[0]


def _after_fork() -> None:
    """Threads do not survive a fork: a child (a data loader's worker) starts its own pool."""
    global _pool_lock
    _pool_lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
