"""An engine that tries to falsify radii: upper bounds of trade-offs from raw log-densities.

It shares no code with the package. Cells of the line are merged into atoms whose likelihood ratio
is exactly a point of a lattice, and merging hides a shift: T only grows. So a value below 1/2 is a
counterexample to a certificate, up to the midpoint rule for the cells' masses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numba
import numpy as np
from numpy.typing import NDArray
from scipy import fft

Array = NDArray[np.float64]
LogDensity = Callable[[Array], Array]

HIGHEST = 34.0  # log-ratios beyond are merged with lower ones
LARGEST = 1 << 20  # points of the lattice
VARIATION_ROUNDING = 1.01  # of a total variation, which cells of the density bound from below


class Density:
    """A raw log-density and the edges of cells: even within `bulk`, growing out to `reach`.

    Cells end at every kink of the density (a jump, a cusp) and of its shifted copy, and are small
    around them; `features` are (place, width) of what else is narrow.
    """

    def __init__(
        self,
        logpdf: LogDensity,
        reach: float,
        *,
        bulk: float,
        cells: int = 1001,
        kinks: Sequence[float] = (),
        features: Sequence[tuple[float, float]] = (),
    ) -> None:
        self.logpdf, self.kinks = logpdf, np.asarray(kinks, dtype=np.float64)
        near = bulk * np.geomspace(1e-10, 0.3, 60)
        edges = [bulk * np.sinh(math.asinh(reach / bulk) * np.linspace(-1.0, 1.0, cells))]
        edges += [k + side * near for k in self.kinks for side in (-1.0, 1.0)]
        edges += [c + w * np.linspace(-45.0, 45.0, 1201) for c, w in features]
        self._edges = np.concatenate(edges)
        self.total = 1.0
        self.total = float(np.sum(self._masses(self._cells(0.0), 0.0)))

    def _masses(self, edges: Array, shift: float) -> Array:
        """Of the density moved by `shift`, by four Gauss points in each cell."""
        nodes, weights = np.polynomial.legendre.leggauss(4)
        length = np.diff(edges)[:, None]
        x = edges[:-1, None] + length * (0.5 + 0.5 * nodes)
        with np.errstate(all="ignore"):
            return (np.exp(self.logpdf(x - shift)) * (0.5 * length)) @ weights / self.total

    def _cells(self, shift: float) -> Array:
        parts = [self._edges, self.kinks, self.kinks + shift]
        if shift:
            parts += [self._edges + shift]
            parts += [k + shift * np.linspace(0.0, 1.0, 51) for k in self.kinks]
        return np.unique(np.concatenate(parts))

    def ratio(self, shift: float) -> tuple[Array, Array, float]:
        """P- and Q-masses of the cells, highest ratio first, and the Q-mass without P-mass."""
        edges = self._cells(shift)
        p, q = self._masses(edges, 0.0), self._masses(edges, shift)
        with np.errstate(all="ignore"):
            order = np.argsort(-(q / p), kind="stable")
        order = order[(p[order] > 0) & (q[order] > 0)]
        return p[order], q[order], float(np.sum(q[p <= 0]))


@numba.njit(cache=False)
def _chords(dp: Array, dq: Array, top: float, step: float, out: Array) -> None:
    """Cut the path (Σdp, Σdq) into pieces whose chords have slopes exp(top − m·step), m = 0, 1, …

    What is left over, on the flattest end, is lowered to the next level.
    """
    n = dp.size
    p, q = np.zeros(n + 1), np.zeros(n + 1)
    p[1:], q[1:] = np.cumsum(dp), np.cumsum(dq)
    segment, at_p, at_q = 0, 0.0, 0.0
    for m in range(out.size):
        slope = math.exp(top - m * step)
        if segment >= n:
            return
        if dq[segment] <= slope * dp[segment] * (1 - 1e-12):
            continue
        value = at_q - slope * at_p
        j = segment + 1
        while j <= n and q[j] - slope * p[j] >= value - 1e-12 * (q[j] - at_q):
            j += 1
        if j > n:
            out[m] += q[n] - at_q
            return
        if j == segment + 1:
            continue
        before, after = q[j - 1] - slope * p[j - 1], q[j] - slope * p[j]
        share = min(max((before - value) / (before - after), 0.0), 1.0)
        new_p = p[j - 1] + share * (p[j] - p[j - 1])
        new_q = q[j - 1] + share * (q[j] - q[j - 1])
        out[m] += new_q - at_q
        segment, at_p, at_q = j - 1, new_p, new_q
    out[-1] += q[n] - at_q


def trade_off(
    density: Density, levels: Sequence[tuple[float, int]], alpha: float, loss: float = 1e-4
) -> float:
    """At least T(α) when `count` coordinates move by `shift`, for each (shift, count) of `levels`.

    `loss` is about the share of the variance of the log-ratio that merging may hide. Where many
    coordinates show next to nothing each, roundings of their masses add up; T is never below
    1 − α − the sum of their total variations.
    """
    laws = []
    finite, count, apart = 0.0, sum(n for _, n in levels), 0.0
    for shift, n in levels:
        p, q, infinite = density.ratio(shift)
        apart += n * (0.5 * float(np.sum(np.abs(p - q))) + infinite)
        finite += n * math.log1p(-min(infinite, 1 - 1e-16))
        if q.size == 0:
            return 0.0
        value = np.clip(np.log(q) - np.log(p), -HIGHEST, HIGHEST)
        mean = float(q @ value)
        part = n * max(float(q @ value**2) - mean**2, 1e-30)
        laws.append((part, p, q, n, float(value[-1]), float(value[0]), mean))
    laws.sort(key=lambda law: -law[0])
    variance = sum(law[0] for law in laws)
    spread = math.sqrt(variance)
    step = math.sqrt(3 * loss * variance / count)
    bottom = sum(n * low for *_, n, low, _, _ in laws)
    top = ceiling = sum(n * high for *_, n, _, high, _ in laws)
    centre = sum(n * mean for *_, n, _, _, mean in laws)
    if count > 50:
        bottom, top = max(bottom, centre - 16 * spread), min(top, centre + 16 * spread)
    widest = max(high - low for *_, low, high, _ in laws)
    step = max(step, max(top - bottom, widest) / LARGEST, 1e-14)
    reach = laws[0][5] - laws[0][4]
    step = reach / math.ceil(reach / step) if reach > step else step
    size = int(max(top - bottom, widest) / step) + 8 * len(laws) + 64
    size = fft.next_fast_len(size, real=True)
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    for _, p, q, n, low, high, _ in laws:
        out = np.zeros(math.ceil((high - low) / step - 1e-9) + 1)
        _chords(p, q, high, step, out)
        base = fft.rfft(np.bincount(np.arange(out.size) % size, weights=out, minlength=size))
        spectrum *= _power(base, n)
    mass = fft.irfft(spectrum, size)
    first = math.floor((ceiling - top) / step)  # index m means ceiling − m·step
    mass = np.roll(mass, -(first % size))[::-1]
    s = ceiling - step * (first + np.arange(size)[::-1])
    # H(t) = P(∞) + Σ_{s > t} mass·(1 − e^{t − s}) at the atoms, where T has its corners
    above = np.cumsum(mass[::-1])[::-1] - mass
    below_top = np.maximum(s - s[-1], -650.0)
    terms = mass * np.exp(-below_top)
    weighted = np.cumsum(terms[::-1])[::-1] - terms
    h = np.clip(above - np.exp(below_top) * weighted, 0.0, 1.0) - math.expm1(finite) - 1e-11
    value = 1.0 - np.exp(np.minimum(s, 700.0)) * alpha - h
    return float(max(np.max(value), 1.0 - alpha - VARIATION_ROUNDING * apart, 0.0))


def _power(base: NDArray[np.complex128], n: int) -> NDArray[np.complex128]:
    result = np.ones_like(base)
    while n:
        if n & 1:
            result = result * base
        base = np.where(np.abs(base) < 1e-150, 0.0, base * base)
        n >>= 1
    return result


def direction(
    shape: Sequence[tuple[float, int]], p: float, radius: float
) -> list[tuple[float, int]]:
    """Levels proportional to `shape` with ℓp norm `radius`."""
    sizes = np.array([abs(size) for size, _ in shape])
    counts = np.array([n for _, n in shape], dtype=np.float64)
    top = float(sizes.max())
    norm = top if math.isinf(p) else top * float(np.sum(counts * (sizes / top) ** p) ** (1 / p))
    return [(size * radius / norm, n) for size, n in shape]
