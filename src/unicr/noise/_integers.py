"""What is the law of a noise on a lattice, P(e = j) = F((j + ½)h) − F((j − ½)h), as 64-bit numbers?

The integers are cut into outcomes of 1, 2, 4, … neighbours. 64 random bits choose the outcome, by
thresholds that are exact sums of its probabilities; inside a wide one most of the mass is spread
evenly, and the rest, whose share is small, follows the density by rejection. `tau` bounds the
total variation between what is drawn and the law of the density.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from unicr.errors import NoiseError
from unicr.noise._base import IID
from unicr.noise._chacha import AGAIN, FINE, HIGH, LOW, blocks, words_at
from unicr.values import Array

Integers = NDArray[np.int64]

FARTHEST = 1 << 61
NEAR = 4096  # outcomes of the smallest width on either side of the median
FINEST = 1024.0  # of them in half the span that holds 68 %: wider outcomes only beyond
SLOPE, EDGE = 32, 8  # an outcome is at most 1/32 of its distance from the median, 1/8 from a break
GUIDES, ENOUGH = (13, 14), 0.01  # top bits of a word; the share that they may leave open
LOOKS = 33
WHOLE = 1 << 64
ULP = 2.0**-53
AGREE = 1e-6  # density and distribution function of one law differ by less
_NODES = {n: np.polynomial.legendre.leggauss(n) for n in (3, 8, 12)}


@dataclass(frozen=True, eq=False)
class IntegerLaw:
    """Outcome k is drawn where ends[k − 1] ≤ U < ends[k], U of 64 bits; the last has no end.

    It means the integers starts[k] … starts[k] + 2^|widths[k]| − 1, all alike, or (width negative)
    by what the density has there beyond `least`, with `most` as its largest excess.
    """

    noise: IID
    step: float
    bits: int
    ends: NDArray[np.uint64]
    starts: Integers
    widths: NDArray[np.int8]
    least: Array
    most: Array
    guide: NDArray[np.uint32]
    wide: bool
    tau: float

    @property
    def shift(self) -> int:
        """How far a word is shifted to give its place in the guide."""
        return 33 - len(self.guide).bit_length()

    def evaluate(self, key: bytes, positions: NDArray[np.uint64]) -> Integers:
        """The integers at these positions of the stream: what the kernels compute, in numpy."""
        u = words_at(key, HIGH, positions).astype(np.uint64) << np.uint64(32)
        u |= words_at(key, LOW, positions).astype(np.uint64)
        k = np.searchsorted(self.ends, u, side="right")
        width = self.widths[k]
        found = self.starts[k].copy()
        some = np.flatnonzero((width > 0) & (width <= 31))
        if some.size:
            mask = (np.uint64(1) << width[some].astype(np.uint64)) - np.uint64(1)
            found[some] += (words_at(key, FINE, positions[some]) & mask).astype(np.int64)
        far = np.flatnonzero((width > 31) | (width < 0))
        if far.size:
            found[far] += self.inside(key, positions[far], k[far])
        return found

    def inside(self, key: bytes, positions: NDArray[np.uint64], k: Integers) -> Integers:
        """Offsets inside very wide outcomes, and by rejection inside those of the density."""
        offsets = np.zeros(k.size, np.int64)
        todo = np.arange(k.size)
        for attempt in range(1 << 20):
            block = blocks(key, positions[todo], AGAIN, attempt).astype(np.uint64)
            numbers = block[:, 0::2] << np.uint64(32) | block[:, 1::2]
            for draw, accept in ((0, 1), (2, 3), (4, 5), (6, 7)):
                width = np.abs(self.widths[k[todo]]).astype(np.uint64)
                offset = (numbers[:, draw] >> (np.uint64(64) - width)).astype(np.int64)
                offsets[todo] = offset
                taken = self.widths[k[todo]] > 0
                ask = np.flatnonzero(~taken)
                taken[ask] = self._accepted(k[todo][ask], offset[ask], numbers[ask, accept])
                todo, numbers = todo[~taken], numbers[~taken]
                if not todo.size:
                    return offsets
        raise NoiseError(f"{self.noise.text}: rejection does not end")  # pragma: no cover

    def _accepted(self, k: Integers, offset: Integers, u: NDArray[np.uint64]) -> NDArray[np.bool_]:
        p = _masses(self.noise, self.step, self.starts[k] + offset)
        excess = p - self.least[k]
        if np.any(excess < -1e-9 * p) or np.any(excess > self.most[k] * (1 + 1e-9)):
            raise NoiseError(
                f"the density of {self.noise.text} has a feature that was not seen: name it with "
                "points=, or take a coarser lattice"
            )
        taken: NDArray[np.bool_] = (u >> np.uint64(11)).astype(np.float64) * ULP * self.most[k] < (
            excess
        )
        return taken


@lru_cache(maxsize=128)
def integer_law(noise: IID, step: float) -> IntegerLaw:
    """The law of `noise` on the lattice of this step, ready to be drawn from."""
    return _Build(noise, step).law()


class _Build:
    def __init__(self, noise: IID, step: float) -> None:
        self.noise, self.step = noise, step
        spread = float(noise.isf(0.16) - noise.ppf(0.16)) / 2 / step
        self.bits = max(0, math.ceil(math.log2(max(spread / FINEST, 1e-300))))
        if not spread < FARTHEST / 1e6:
            raise NoiseError(f"{noise.text} is too wide for a lattice of step {step:g}")
        self.centre = self._index(float(noise.ppf(0.5)))
        tiny = 2.0**-66
        self.low = self._index(float(noise.ppf(tiny)))
        self.high = self._index(float(noise.isf(tiny)))

    def _index(self, x: float) -> int:
        """The integer whose cell holds x, inside what can be drawn."""
        return math.floor(min(max(x / self.step, -FARTHEST), FARTHEST) + 0.5)

    def _cuts(self) -> tuple[Integers, NDArray[np.int8]]:
        """(start, width) of all outcomes, in order; a break of the density has its own."""
        breaks = sorted({self._index(b) for b in self.noise.breakpoints if math.isfinite(b)})
        breaks = [b for b in breaks if self.low <= b <= self.high]
        pieces: list[tuple[int, int]] = []
        at = self.low
        for stop in [*breaks, self.high + 1]:
            while at < stop:
                away = abs(at - self.centre)
                far = away > NEAR << self.bits
                width = max(self.bits, (away // SLOPE).bit_length() - 1) if far else self.bits
                edge = min((abs(at - b) for b in breaks), default=away << 9)
                width = min(width, max(0, (edge // EDGE).bit_length() - 1))
                width = min(width, (stop - at).bit_length() - 1)
                pieces.append((at, width))
                at += 1 << width
            if stop <= self.high:
                pieces.append((stop, 0))
                at = stop + 1
        starts, widths = zip(*pieces, strict=True)
        return np.array(starts, np.int64), np.array(widths, np.int8)

    def law(self) -> IntegerLaw:
        starts, widths = self._cuts()
        size = (np.int64(1) << widths.astype(np.int64)).astype(np.float64)
        p, error = self._outcomes(starts, size)
        rest = float(self.noise.cdf((self.low - 0.5) * self.step))
        rest += float(self.noise.sf((self.high + 0.5) * self.step))
        total = math.fsum(p.tolist())
        if not abs(total + rest - 1) < AGREE:
            raise NoiseError(
                f"the density of {self.noise.text} has mass {total + rest:.9g} on the lattice of "
                f"step {self.step:g}, not 1: density and distribution function disagree"
            )
        even, least, most, inside = self._spread(starts, widths, p)
        mass = np.column_stack([even, p - even]).ravel() / total
        counts = [round(m * WHOLE) for m in mass.tolist()]
        counts[int(mass.argmax())] += WHOLE - sum(counts)
        kept = np.flatnonzero(counts)
        number = kept // 2
        ends = np.array(list(accumulate(counts[k] for k in kept))[:-1], dtype=np.uint64)
        signed = np.where(kept % 2 == 1, -widths[number], widths[number]).astype(np.int8)
        tau = error + inside + rest + abs(total + rest - 1) + len(counts) / WHOLE
        for top in GUIDES:
            guide, unsure = _guide(ends, starts[number], signed, self.bits, top)
            if unsure <= ENOUGH:
                break
        wide = float(mass[kept][signed > 0].sum()) > 1e-3
        return IntegerLaw(
            noise=self.noise, step=self.step, bits=self.bits, ends=ends, starts=starts[number],
            widths=signed, least=least[number], most=most[number], guide=guide, wide=wide,
            tau=tau,
        )  # fmt: skip

    def _outcomes(self, starts: Integers, size: Array) -> tuple[Array, float]:
        """Probability of every outcome, and a bound of the sum of their errors.

        Gauss quadrature of the density with 8 and 12 points, or the distribution function where
        these two differ. Rounding: the exponent of a density is right to its own last place.
        """
        middle, half, owner, cut = _panels(self.step, starts, size, self.noise.breakpoints)
        lower, upper = middle - half, middle + half
        rough, fine = (_gauss(self.noise, middle, half, n) for n in (8, 12))
        with np.errstate(all="ignore"):
            below = self.noise.cdf(upper) - self.noise.cdf(lower)
            above = self.noise.sf(lower) - self.noise.sf(upper)
            left = self.noise.cdf(upper) < 0.5
            jump = np.where(left, below, above)
            height = np.where(left, self.noise.cdf(upper), self.noise.sf(lower))
            digits = 8 + 2 * np.abs(np.log(np.where(fine > 0, fine / half, 1.0)))
        digits[cut] += np.abs(middle[cut]) / half[cut]
        by_density = np.abs(fine - rough) + digits * ULP * fine
        by_density = np.where(np.isfinite(by_density), by_density, np.inf)
        by_distribution = (
            16 * ULP * np.maximum(height, ULP) + 2 * ULP * np.abs(middle) * fine / half
        )
        smooth = by_density <= by_distribution
        p = np.where(smooth, fine, np.maximum(jump, 0.0))
        if not np.all(np.abs(p - jump) <= AGREE * np.maximum(height, 1e-9)):
            raise NoiseError(
                f"density and distribution function of {self.noise.text} disagree on the lattice "
                f"of step {self.step:g}"
            )
        error = np.where(smooth, by_density, by_distribution)
        sums: Array = np.bincount(owner, p, starts.size).astype(np.float64)
        return sums, float(error.sum())

    def _spread(
        self, starts: Integers, widths: NDArray[np.int8], p: Array
    ) -> tuple[Array, Array, Array, float]:
        """Of each outcome: the mass spread evenly, that per integer, and the largest rest.

        Also how much the three-point rule of `_masses` errs, as eight points see it.
        """
        even, least, most, error = p.copy(), np.zeros_like(p), np.zeros_like(p), 0.0
        some = np.flatnonzero(widths > 0)
        if some.size:
            size = (np.int64(1) << widths[some].astype(np.int64)).astype(np.float64)
            looks = np.floor(np.linspace(0, 1, LOOKS) * (size[:, None] - 1)).astype(np.int64)
            looks += starts[some][:, None]
            masses, better = (_masses(self.noise, self.step, looks, n) for n in (3, 8))
            apart = np.abs(masses - better) / np.maximum(better, 1e-300)
            error = float((apart.max(axis=1) * p[some]).sum())
            slack = np.abs(np.diff(masses, axis=1)).max(axis=1) + 1e-12 * masses.max(axis=1)
            floor = np.maximum(masses.min(axis=1) - slack, 0.0)
            floor = np.minimum(floor, p[some] / size)
            least[some], even[some] = floor, floor * size
            most[some] = masses.max(axis=1) + slack - floor
        return even, least, most, error


def _gauss(noise: IID, middle: Array, half: Array, n: int) -> Array:
    nodes, weights = _NODES[n]
    with np.errstate(all="ignore"):
        result: Array = noise.pdf(middle[:, None] + half[:, None] * nodes) @ weights * half
    return result


def _masses(noise: IID, step: float, integers: Integers, n: int = 3) -> Array:
    """P(e = j) of single integers where the density is smooth: n-point Gauss."""
    nodes, weights = _NODES[n]
    x = (integers.astype(np.float64)[..., None] + nodes / 2) * step
    result: Array = noise.pdf(x) @ weights * (step / 2)
    return result


def _panels(
    step: float, starts: Integers, size: Array, breaks: tuple[float, ...]
) -> tuple[Array, Array, Integers, NDArray[np.bool_]]:
    """(middle, half width, outcome) of intervals inside which the density is smooth.

    A width is a multiple of the step, right to its last place, but where a break cuts.
    """
    middle, half = (starts + (size - 1) / 2) * step, size * (step / 2)
    owner, cut = np.arange(starts.size), np.zeros(starts.size, bool)
    for one in breaks:
        for i in np.flatnonzero(np.abs(one - middle) < half).tolist():
            low, high = middle[i] - half[i], middle[i] + half[i]
            middle[i], half[i], cut[i] = (low + one) / 2, (one - low) / 2, True
            middle = np.append(middle, (one + high) / 2)
            half = np.append(half, (high - one) / 2)
            owner, cut = np.append(owner, owner[i]), np.append(cut, True)
    return middle, half, owner, cut


def _guide(
    ends: NDArray[np.uint64], starts: Integers, widths: NDArray[np.int8], bits: int, top: int
) -> tuple[NDArray[np.uint32], float]:
    """For every value of a word's `top` bits: (from, to, before, after); the share not certain.

    A word below `from` means the outcome that starts at `before`, one above `to` the one at
    `after`; between them all 64 bits decide. Where more lies in a cell, from = 0 and always; then
    `before` and `after` are the first and last outcome there.
    """
    cell = np.arange(1 << top, dtype=np.uint64) << np.uint64(64 - top)
    last = cell + np.uint64((1 << (64 - top)) - 1)
    first_outcome = np.searchsorted(ends, cell, side="right")
    last_outcome = np.searchsorted(ends, last, side="right")
    guide = np.empty((1 << top, 4), np.uint32)
    guide[:, 0], guide[:, 1] = 0, 0xFFFFFFFF
    guide[:, 2], guide[:, 3] = first_outcome, last_outcome
    plain = (widths == bits) & (np.abs(starts) < 1 << 29)
    same = (first_outcome == last_outcome) & plain[first_outcome]
    # a step of one outcome, or of two with a small one between: the rest of a wide outcome
    span = last_outcome - first_outcome
    step = ((span == 1) | (span == 2)) & plain[first_outcome] & plain[last_outcome]
    guide[same, 0] = 0xFFFFFFFF
    for chosen in (same, step):
        guide[chosen, 2] = starts[first_outcome[chosen]].astype(np.int32).view(np.uint32)
        guide[chosen, 3] = starts[last_outcome[chosen]].astype(np.int32).view(np.uint32)
    at = np.flatnonzero(step)
    guide[at, 0] = (ends[first_outcome[at]] >> np.uint64(32)).astype(np.uint32)
    guide[at, 1] = (ends[last_outcome[at] - 1] >> np.uint64(32)).astype(np.uint32)
    unsure = (span > 0) & ~step | ~plain[first_outcome]
    return guide, float(unsure.mean())
