"""The law of a noise on a lattice, P(e = j) = F((j + ½)h) − F((j − ½)h), as 64-bit thresholds.

The integers are cut into outcomes of 1, 2, 4, … neighbours. Inside a wide one the law is a mixture
of three parts: even, linear (the larger or smaller of two even draws), and a rest that follows the
density by rejection, whose share is tiny. 64 random bits choose outcome and part, by thresholds
that are sums of their probabilities. `tau` bounds the total variation to the law of the density
(docs/theory.md#lattice-noise, "The sampler's law").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unicr.errors import NoiseError
from unicr.sample._stream import FIRST, OFFSET, OTHER_OFFSET, REJECTION, SECOND, blocks, words_at
from unicr.values import Array

Integers = NDArray[np.int64]

FARTHEST = 1 << 61  # of an integer: sums with the integers of inputs stay below 2^63
EXACT = 1 << 52  # of an integer in the guide: sums of two such are exact as doubles
# Outcomes in half the span that holds 68 %, where that span has more than MOST integers: enough
# that all but a few thousandths of the draws are even ones, few enough for the first caches.
FINEST = 256.0
MOST = 1024.0  # integers in half that span up to which each has an outcome of its own
NEAR = 8.0  # such spans from the median wider outcomes begin
# An outcome is at most 1/32 of its distance from the median and 1/8 of that from a break wide:
# across so short a piece a power law is nearly a line.
SLOPE, EDGE = 32, 8
GUIDE = 15  # top bits of a word that are looked up
OFTEN = 5e-3  # share of the draws that need an offset: beyond it, all of them get one
EVEN, RISING, FALLING, REST = range(4)  # the parts of the law inside an outcome
LOOKS = 33  # integers of an outcome at which the density is compared with its line
MOST_REST = 5e-4  # share of the draws that may need rejection: beyond it, outcomes are halved
MOST_INSIDE = 1e-9  # what the masses of single integers may err by before outcomes are halved
WHOLE = 1 << 64  # words of the stream: thresholds are whole numbers below it
SIDE = 0.16  # the mass on either side of the span that holds 68 %, which measures any law
ULP = 2.0**-53  # the largest relative error of one rounding
# Of ULP: the masses that a law gives by itself, which are a product, an exponential and their sums.
# Its exponent is right to its own last place, and is charged beside.
OWN_UNITS = 32
AGREE = 1e-6  # density and distribution function of one law differ by less
# Gauss rules: 8 and 12 points for masses, whose difference is charged; 3 inside an outcome.
_NODES = {n: np.polynomial.legendre.leggauss(n) for n in (3, 8, 12)}

# `choose_step`: half the span that holds 68 % has 2^23 to 2^24 steps, as many as float32 tells
# apart, and outcomes of 2^16 integers, so that one word holds two offsets. A peak is resolved too.
FINE = 23
PEAK = 2.0**-16  # of the most probable integer
FINEST_STEP = 2.0**-38  # of that span: a law with a pole gets no finer one
FAR, FARTHEST_QUANTILE = 2.0**-55, 1e300  # a tail so far out is no law of doubles


class Distribution(Protocol):
    """What must be known of a one-dimensional distribution with a density."""

    def __hash__(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def breakpoints(self) -> tuple[float, ...]: ...
    def pdf(self, x: ArrayLike) -> Array: ...
    def cdf(self, x: ArrayLike) -> Array: ...
    def sf(self, x: ArrayLike) -> Array: ...
    def ppf(self, u: ArrayLike) -> Array: ...
    def isf(self, u: ArrayLike) -> Array: ...
    def masses(self, low: Array, high: Array) -> Array | None:
        """P(low < X ≤ high) of each pair, right to some roundings of itself; None: `cdf` knows."""
        ...


@dataclass(frozen=True, eq=False)
class Guide:
    """What the top bits of a word say of its outcome; see `_guide` for the bits of `cells`.

    Row r stands for outcome first + r, the integers from origin + r·2^width on, as many as 2^width.
    Where outcomes differ (`width` is −1), `starts` and `masks` hold the first integer of row r and
    the mask of its offset.
    """

    cells: NDArray[np.uint32]
    first: int
    origin: float
    width: int
    starts: Array
    masks: NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class IntegerLaw:
    """Outcome k is drawn where ends[k − 1] ≤ U < ends[k], U of 64 bits; the last has no end.

    It means the integers starts[k] + i, 0 ≤ i < 2^widths[k], by its kind: all alike; i the larger
    or the smaller of two that are all alike; or by what the density has beyond the line
    least[k] + tilt[k]·i, with `most` as the largest excess.
    """

    law: Distribution
    step: float
    ends: NDArray[np.uint64]
    starts: Integers
    widths: NDArray[np.int8]
    kinds: NDArray[np.int8]
    least: Array
    tilt: Array
    most: Array
    guide: Guide
    tau: float

    def evaluate(self, key: bytes, positions: NDArray[np.uint64]) -> Integers:
        """The integers at these positions of the stream: what the kernels compute, in numpy."""
        u = words_at(key, FIRST, positions).astype(np.uint64) << np.uint64(32)
        u |= words_at(key, SECOND, positions).astype(np.uint64)
        k = np.searchsorted(self.ends, u, side="right")
        width, kind = self.widths[k], self.kinds[k]
        integers = self.starts[k].copy()
        far = (kind == REST) | ((width > 31) & (kind != EVEN))
        some = np.flatnonzero((width > 0) & ~far)
        if some.size:
            bits = width[some].astype(np.uint64)
            mask = (np.uint64(1) << bits) - np.uint64(1)
            first, other = (
                words_at(key, plane, positions[some]).astype(np.uint64)
                for plane in (OFFSET, OTHER_OFFSET)
            )
            second = np.where(bits <= 16, first >> np.uint64(16), other)
            both = (first << np.uint64(32) | other) >> (np.uint64(64) - bits)
            offset = _select(kind[some], first & mask, second & mask)
            integers[some] += np.where(bits > 31, both, offset).astype(np.int64)
        if far.any():
            integers[far] += self.inside(key, positions[far], k[far])
        return integers

    def inside(self, key: bytes, positions: NDArray[np.uint64], k: Integers) -> Integers:
        """Offsets by rejection, and those of linear outcomes of more than 2^31 integers.

        Attempt a of a position has the block of its own that the counter `position` names.
        """
        offsets = np.zeros(k.size, np.int64)
        todo = np.arange(k.size)
        # An attempt is four tries, of which each is taken with a probability near 1/2 or more: 2^20
        # of them never all fail.
        for attempt in range(1 << 20):
            which = k[todo][:, None]
            block = blocks(key, positions[todo], REJECTION, attempt).astype(np.uint64)
            numbers = block[:, 0::2] << np.uint64(32) | block[:, 1::2]
            first, second = numbers[:, 0::2], numbers[:, 1::2]
            down = np.uint64(64) - self.widths[which].astype(np.uint64)
            offset = _select(self.kinds[which], first >> down, second >> down).astype(np.int64)
            accepted = np.broadcast_to(self.kinds[which] != REST, offset.shape).copy()
            ask = np.flatnonzero(~accepted[:, 0])
            accepted[ask] = self._accept(which[ask], offset[ask], second[ask])
            offsets[todo] = offset[np.arange(todo.size), accepted.argmax(axis=1)]
            todo = todo[~accepted.any(axis=1)]
            if not todo.size:
                return offsets
        raise NoiseError(
            f"{self.law.text} cannot be sampled: too many draws are rejected"
        )  # pragma: no cover

    def _accept(self, k: Integers, offset: Integers, u: NDArray[np.uint64]) -> NDArray[np.bool_]:
        p = _masses(self.law, self.step, self.starts[k] + offset)
        excess = p - self.least[k] - self.tilt[k] * offset
        # The bounds were read at `LOOKS` integers. Beyond them by more than rounding means that
        # the law drawn is not the law claimed: stop, because tau does not count it.
        if np.any(excess < -1e-9 * p) or np.any(excess > self.most[k] * (1 + 1e-9)):
            raise NoiseError(
                f"the density of {self.law.text} has a feature that was missed: name it with "
                "points=, or use a coarser lattice"
            )
        even = (u >> np.uint64(11)).astype(np.float64) * ULP
        accepted: NDArray[np.bool_] = even * self.most[k] < excess
        return accepted


def choose_step(law: Distribution) -> float:
    """A step so fine that rounding to it is about that of float32: a power of two.

    Half the span that holds 68 % of the mass has at least 2^23 steps. A peak far narrower than that
    span gets a finer one, until no integer that was looked at has more than 2^-16 of the mass.
    """
    spread = float(law.isf(SIDE) - law.ppf(SIDE)) / 2
    if not (0 < spread < math.inf):
        raise NoiseError(f"{law.text} cannot be sampled: its middle 68 % lie within ±{spread:g}")
    for name, quantile in (("ppf", law.ppf(FAR)), ("isf", law.isf(FAR))):
        if not abs(float(quantile)) < FARTHEST_QUANTILE:
            raise NoiseError(
                f"{law.text} cannot be sampled: {name}({FAR:.3g}) is {float(quantile):.3g}, beyond "
                f"{FARTHEST_QUANTILE:g}; use a lighter tail, or truncate the noise"
            )
    step = 2.0 ** (math.floor(math.log2(spread)) - FINE)
    grid = np.concatenate([law.ppf(np.linspace(0, 1, 1025)[1:-1]), np.array(law.breakpoints)])
    with np.errstate(all="ignore"):
        heights = law.pdf(grid[np.isfinite(grid)])
    peak = float(np.max(heights[np.isfinite(heights)], initial=0.0))
    while peak * step > PEAK and step > FINEST_STEP * spread:
        step /= 2
    return step


@lru_cache(maxsize=128)
def integer_law(law: Distribution, step: float) -> IntegerLaw:
    """The law on the lattice of this step, ready to be drawn from."""
    return _Builder(law, step).build()


class _Builder:
    """The outcomes of one law on one lattice, their probabilities, and a bound of all errors."""

    def __init__(self, law: Distribution, step: float) -> None:
        self.law, self.step = law, step
        self.spread = spread = float(law.isf(SIDE) - law.ppf(SIDE)) / 2 / step
        self.bits = max(0, math.ceil(math.log2(spread / FINEST))) if spread > MOST else 0
        self.near = max(64, round(min(NEAR * spread, FARTHEST)))
        if not spread < FARTHEST / 1e6:
            raise NoiseError(f"{law.text} is too wide for a lattice of step {step:g}")
        self.centre = self._index(float(law.ppf(0.5)))
        tiny = 2.0**-66  # what lies beyond is charged, and is less than one of 64-bit thresholds
        self.low = self._index(float(law.ppf(tiny)))
        self.high = self._index(float(law.isf(tiny)))

    def _index(self, x: float) -> int:
        """The integer whose cell holds x, inside what can be drawn."""
        return math.floor(min(max(x / self.step, -FARTHEST), FARTHEST) + 0.5)

    def _cut_into_outcomes(self) -> tuple[Integers, NDArray[np.int8]]:
        """(start, width) of all outcomes, in order; a break of the density has its own."""
        breaks = sorted({self._index(b) for b in self.law.breakpoints if math.isfinite(b)})
        breaks = [b for b in breaks if self.low <= b <= self.high]
        pieces: list[tuple[int, int]] = []
        at = self.low
        for stop in [*breaks, self.high + 1]:
            while at < stop:
                away = abs(at - self.centre)
                far = away > self.near
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

    def build(self) -> IntegerLaw:
        """The thresholds and tau (docs/theory.md#lattice-noise)."""
        starts, widths = self._cut_into_outcomes()
        p, error, total, rest = self._outcome_masses(starts, widths)
        even, linear, least, tilt, most, inside = self._split_outcomes(starts, widths, p)
        # A feature narrower than its outcome leaves much to rejection, and a jump that nobody named
        # spoils the masses of its integer: halve such outcomes.
        for _ in range(64):  # no outcome has more than 2^61 integers
            halve = np.zeros(p.size, bool)
            for share, most_of_it in ((p - even - linear, MOST_REST), (inside, MOST_INSIDE)):
                if share.sum() > most_of_it:
                    halve |= (widths > 0) & (share > share.sum() / (4 * share.size))
            if not halve.any():
                break
            starts, widths = _halve(starts, widths, halve)
            p, error, total, rest = self._outcome_masses(starts, widths)
            even, linear, least, tilt, most, inside = self._split_outcomes(starts, widths, p)
        parts = [even, np.where(tilt > 0, linear, 0), np.where(tilt < 0, linear, 0)]
        mass = np.concatenate([*parts, p - even - linear]) / total
        counts = [round(m * WHOLE) for m in mass.tolist()]
        counts[int(mass.argmax())] += WHOLE - sum(counts)
        kept = np.flatnonzero(counts)
        number, kinds = kept % p.size, (kept // p.size).astype(np.int8)
        ends = np.array(list(accumulate(counts[k] for k in kept))[:-1], dtype=np.uint64)
        starts, widths = starts[number], widths[number]
        tau = error + float(inside.sum()) + rest + abs(total + rest - 1) + len(counts) / WHOLE
        return IntegerLaw(
            law=self.law, step=self.step, ends=ends, starts=starts, widths=widths, kinds=kinds,
            least=least[number], tilt=tilt[number], most=most[number], tau=tau,
            guide=_guide(ends, starts, widths, kinds, mass[kept]),
        )  # fmt: skip

    def _outcome_masses(
        self, starts: Integers, widths: NDArray[np.int8]
    ) -> tuple[Array, float, float, float]:
        """Probabilities of outcomes, a bound of their errors, their sum, and what lies beyond."""
        size = (np.int64(1) << widths.astype(np.int64)).astype(np.float64)
        p, error = self._outcomes(starts, size)
        rest = float(self.law.cdf((self.low - 0.5) * self.step))
        rest += float(self.law.sf((self.high + 0.5) * self.step))
        total = math.fsum(p.tolist())
        if not abs(total + rest - 1) < AGREE:
            raise NoiseError(
                f"the density of {self.law.text} has the mass {total + rest:.9g} on the lattice of "
                f"step {self.step:g}, not 1: density and distribution function do not match"
            )
        return p, error, total, rest

    def _outcomes(self, starts: Integers, size: Array) -> tuple[Array, float]:
        """Probability of every outcome, and a bound of the sum of their errors.

        Gauss quadrature of the density with 8 and 12 points, or the distribution function where
        these two differ. Rounding: the exponent of a density is right to its own last place.
        """
        low: Array = (starts.astype(np.float64) - 0.5) * self.step
        high: Array = (starts.astype(np.float64) + (size - 0.5)) * self.step
        if (mass := self.law.masses(low, high)) is not None:
            with np.errstate(all="ignore"):
                digits = OWN_UNITS + 2 * np.abs(
                    np.log(np.where(mass > 0, mass / (high - low), 1.0))
                )
            charge = float(np.sum(digits * ULP * mass))
            if math.frexp(self.step)[0] != 0.5 or getattr(self.law, "scale", 1.0) != 1.0:
                # ends are products or quotients, right to a rounding; else they are exact
                ends = ULP * (np.abs(low) + np.abs(high)) / np.maximum(high - low, self.step)
                charge += 2 * float(np.sum(ends * mass))
            return mass, charge
        middle, half, owner, cut = _panels(self.step, starts, size, self.law.breakpoints)
        lower, upper = middle - half, middle + half
        rough, fine = (_gauss(self.law, middle, half, n) for n in (8, 12))
        with np.errstate(all="ignore"):
            below = self.law.cdf(upper) - self.law.cdf(lower)
            above = self.law.sf(lower) - self.law.sf(upper)
            in_left_half = self.law.cdf(upper) < 0.5
            jump = np.where(in_left_half, below, above)
            height = np.where(in_left_half, self.law.cdf(upper), self.law.sf(lower))
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
            if self.spread < 1:
                raise NoiseError(
                    f"{self.law.text} is too narrow for a lattice of step {self.step:g}: use a "
                    "finer one with --lattice, or scale inputs that are far larger than the noise"
                )
            raise NoiseError(
                f"density and distribution function of {self.law.text} do not match on the lattice "
                f"of step {self.step:g}"
            )
        error = np.where(smooth, by_density, by_distribution)
        sums: Array = np.bincount(owner, p, starts.size).astype(np.float64)
        return sums, float(error.sum())

    def _split_outcomes(
        self, starts: Integers, widths: NDArray[np.int8], p: Array
    ) -> tuple[Array, Array, Array, Array, Array, Array]:
        """Of each interval: its even and its linear mass, the line (start, tilt), the largest rest.

        The line has the tilt of the chord and lies below the density by as much as that can change
        between two looks. Also how much the three-point rule of `_masses` errs, as eight points
        see it, with the rounding of the parts.
        """
        even = p.copy()
        linear, least, tilt, most, error = np.zeros((5, p.size))
        some = np.flatnonzero(widths > 0)
        if some.size:
            size = (np.int64(1) << widths[some].astype(np.int64)).astype(np.float64)
            looks = np.floor(np.linspace(0, 1, LOOKS) * (size[:, None] - 1)).astype(np.int64)
            at = starts[some][:, None] + looks
            masses, better = (_masses(self.law, self.step, at, n) for n in (3, 8))
            apart = np.abs(masses - better) / np.maximum(better, 1e-300)
            none = np.zeros(1)
            units = 8 if self.law.masses(none, none) is None else OWN_UNITS
            error[some] = (apart.max(axis=1) + units * ULP) * p[some]
            slope = (masses[:, -1] - masses[:, 0]) / (size - 1)
            start, slack = _lines_below(masses, slope, looks)
            low = np.minimum(start, start + slope * (size - 1)) - np.abs(slope) / 2
            slope[low < 0] = 0.0
            start, slack = _lines_below(masses, slope, looks)
            start = np.maximum(start, 0.0)
            low = np.minimum(start, start + slope * (size - 1)) - np.abs(slope) / 2
            lines = np.array([low * size, np.abs(slope) * size**2 / 2, start, slope])
            lines *= np.minimum(1.0, p[some] / np.maximum(lines[0] + lines[1], 1e-300))
            even[some], linear[some], least[some], tilt[some] = lines
            above = masses - lines[2][:, None] - lines[3][:, None] * looks
            most[some] = above.max(axis=1) + slack
        return even, linear, least, tilt, most, error


def _halve(
    starts: Integers, widths: NDArray[np.int8], halve: NDArray[np.bool_]
) -> tuple[Integers, NDArray[np.int8]]:
    """The same outcomes, some of them as two halves."""
    narrower = np.where(halve, widths - 1, widths).astype(np.int8)
    upper = starts[halve] + (np.int64(1) << narrower[halve].astype(np.int64))
    starts, narrower = np.append(starts, upper), np.append(narrower, narrower[halve])
    order = np.argsort(starts)
    return starts[order], narrower[order]


def _lines_below(masses: Array, slope: Array, looks: Integers) -> tuple[Array, Array]:
    """Where lines of these slopes below the masses start, and by how much they stay below."""
    flat = masses - slope[:, None] * looks
    slack = np.abs(np.diff(flat, axis=1)).max(axis=1) + 1e-12 * masses.max(axis=1)
    return flat.min(axis=1) - slack, slack


def _gauss(law: Distribution, middle: Array, half: Array, n: int) -> Array:
    nodes, weights = _NODES[n]
    with np.errstate(all="ignore"):
        result: Array = law.pdf(middle[:, None] + half[:, None] * nodes) @ weights * half
    return result


def _masses(law: Distribution, step: float, integers: Integers, n: int = 3) -> Array:
    """P(e = j) of single integers: the law's own, or n-point Gauss where the density is smooth."""
    whole = integers.astype(np.float64)
    if (mass := law.masses((whole - 0.5) * step, (whole + 0.5) * step)) is not None:
        return mass
    nodes, weights = _NODES[n]
    x = (whole[..., None] + nodes / 2) * step
    result: Array = law.pdf(x) @ weights * (step / 2)
    return result


def _panels(
    step: float, starts: Integers, size: Array, breaks: tuple[float, ...]
) -> tuple[Array, Array, Integers, NDArray[np.bool_]]:
    """(middle, half width, outcome) of intervals inside which the density is smooth.

    A width is a multiple of the step, right to its last place, but where a break cuts. A break on
    an edge, to the last place, cuts nothing off.
    """
    middle, half = (starts + (size - 1) / 2) * step, size * (step / 2)
    owner, cut = np.arange(starts.size), np.zeros(starts.size, bool)
    for point in breaks:
        for i in np.flatnonzero(np.abs(point - middle) < half).tolist():
            low, high = middle[i] - half[i], middle[i] + half[i]
            cut[i] = True
            if not low < point < high:
                continue
            middle[i], half[i] = (low + point) / 2, (point - low) / 2
            middle = np.append(middle, (point + high) / 2)
            half = np.append(half, (high - point) / 2)
            owner, cut = np.append(owner, owner[i]), np.append(cut, True)
    return middle, half, owner, cut


def _select(kind: NDArray[np.int8], first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """One offset of two, by the kind of the outcome."""
    linear: NDArray[Any] = np.where(
        kind == RISING, np.maximum(first, second), np.minimum(first, second)
    )
    return np.where((kind == RISING) | (kind == FALLING), linear, first)


def _guide(
    ends: NDArray[np.uint64],
    starts: Integers,
    widths: NDArray[np.int8],
    kinds: NDArray[np.int8],
    mass: Array,
) -> Guide:
    """For every value of a word's top bits an outcome k, and where in the cell k + 1 begins.

    The row k − first of k is written in the top bits; the other bits are those of the first word
    of k + 1, all ones where there is none: a word with just these bits has to be looked up in all
    64. So has every word of a cell with more than two outcomes, or with one that is not plain.
    There the top bits are 0, and the others are the cell's first outcome (or an earlier one).
    """
    peak = int(np.where(kinds == EVEN, mass, -1.0).argmax())
    first = max(0, peak - (1 << GUIDE - 1)) - 1  # row 0 means: search
    rows = np.arange(starts.size) - first
    plain = (kinds == EVEN) & (rows > 0) & (rows < 1 << GUIDE)
    plain &= (np.abs(starts) < EXACT) & (widths < 32)
    row_starts, row_masks = np.zeros(1), np.zeros(1, np.uint32)
    for width in (0, min(int(widths[peak]), 31)):
        origin = int(starts[peak]) - (int(rows[peak]) << width)
        alike = (widths == width) & (starts - origin == rows << width)
        if abs(origin) < EXACT and mass[plain & ~alike].sum() <= OFTEN:
            plain &= alike
            break
    else:
        width = -1
        row_starts, row_masks = np.zeros(1 << GUIDE), np.zeros(1 << GUIDE, np.uint32)
        row_starts[rows[plain]] = starts[plain]
        row_masks[rows[plain]] = (np.int64(1) << widths[plain].astype(np.int64)) - 1

    cells = np.arange(1 << GUIDE, dtype=np.uint64) << np.uint64(64 - GUIDE)
    k = np.searchsorted(ends, cells, side="right")
    last = np.append(np.searchsorted(ends, cells[1:], side="left"), ends.size)
    rest = np.uint32((1 << 32 - GUIDE) - 1)
    begins = (np.append(ends, np.uint64(0))[k] >> np.uint64(32)).astype(np.uint32) & rest
    entries: NDArray[np.uint32] = np.where(
        plain[k] & plain[last] & (last - k <= 1),
        (rows[k].astype(np.uint32) << np.uint32(32 - GUIDE)) | np.where(last > k, begins, rest),
        np.minimum(k, rest).astype(np.uint32),
    )
    return Guide(entries, first, float(origin), width, row_starts, row_masks)
