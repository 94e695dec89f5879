"""The quantile function of a 1-D law as a table, ready to be fed with random bits.

Cubics on cells that shrink geometrically towards u = 0, 1/2 and 1, cut finer where the law is not
smooth, each checked against the law's own cdf when it is fitted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unicr.errors import NoiseError
from unicr.noise._streams import ALMOST_ONE, ONE
from unicr.values import Array

if TYPE_CHECKING:
    import torch

Function = Callable[[Array], Array]

CONTRACT_TAIL = 1e-12
MANTISSA = (1 << 52) - 1
_OCTAVES = 53
FIRST_EXPONENT = 1023 - _OCTAVES

_SAFETY = 0.4  # at a kink between the check points the error is up to 2.34 times larger
_HARD_MASS = 0.004
_SUBCELL_LIMIT = 20_000
_SNAP = 2.0**-50
_BELOW_HALF = float(np.nextafter(0.5, 0.0))
_NODES = 0.5 * np.cos((2 * np.arange(4) + 1) * np.pi / 8)
_CHECKS = 0.5 * np.cos(np.arange(5) * np.pi / 4)
_TO_COEFFICIENTS = np.linalg.inv(np.vander(_NODES, 4, increasing=True))


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
        largest, hard_mass = max(worst, sub_worst), float(width[hard].sum()) / 4
        return cls(m, cells, sub_lo, 1.0 / sub_width, sub_coef, largest, hard_mass)

    def evaluate(self, bits: NDArray[np.uint64]) -> Array:
        """x for 64 random bits each: the plain numpy statement of what the kernels compute."""
        z = np.asarray(bits, dtype=np.uint64)
        d = (z >> np.uint64(12) | np.uint64(ONE)).view(np.float64) - ALMOST_ONE
        b = d.view(np.uint64)
        rows = ((b >> np.uint64(52 - self.m)) << np.uint64(2) | (z & np.uint64(3))).astype(np.int64)
        c = self.cells[rows - (FIRST_EXPONENT << (self.m + 2))]
        s = ((b << np.uint64(self.m)) & np.uint64(MANTISSA) | np.uint64(ONE)).view(np.float64)
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
