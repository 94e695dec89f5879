"""A density whose logarithm is straight between knots: all that is said of it is exact.

Between two neighbouring knots p is an exponential function, so that probabilities and quantiles are
closed forms, and every fact (symmetric, log-concave, unimodal, positive) is a comparison of the
numbers stored, made without rounding. The log-ratio of p and its shifted copy is straight between
the knots of both: its range in a cell is known (docs/theory.md#tables).
"""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unicr.law._base import Curvature
from unicr.values import Array, IntArray

EPS = float(np.finfo(np.float64).eps)  # twice the largest relative error of one rounding
# Of EPS: a log-density is a product and a sum, in places that are right to two roundings, and is
# taken with a constant; four pay for each of the two, and for their difference.
VALUE_UNITS = 8
# Of EPS, by how much inside a cell its ends are looked at: an edge moved by a shift is right to two
# roundings of either, so that the look is on the cell's own side of a knot. No cell is nearer to a
# jump (`tradeoff._ratio.JUMP_UNITS`).
INSIDE_UNITS = 8
SHORTEST = 1e-6  # of its neighbours: a piece beside an end that was cut is no shorter
LINEAR = 1e-8  # a rise below it: log(1 + yr)/r by two terms, of which the next is below 1e-16
SMALL = 1e-5  # a rise below it: h(y) = (e^y − 1)/y by its series, whose next term is below 1e-16


def mean_exponential(y: Array) -> Array:
    """(e^y − 1)/y, the mean of e^(ty) over 0 ≤ t ≤ 1, right to some roundings."""
    small = np.abs(y) < SMALL
    safe = np.where(small, 1.0, y)
    with np.errstate(over="ignore"):
        return np.where(small, 1.0 + y / 2 * (1.0 + y / 3), np.expm1(safe) / safe)


class Side(NamedTuple):
    """Log-densities at places, and how steep they are beside them."""

    value: Array
    steep: Array


@dataclass(frozen=True, eq=False)
class Pieces:
    """log p, up to a constant, runs straight from `start[i]` just right of `knots[i]` to `end[i]`.

    `end[i]` is just left of knots[i + 1]; both are −inf where p is 0. `rates` are the slopes beyond
    the first and the last knot, (inf, −inf) where nothing lies there. The law is this function,
    whatever it came from.
    """

    knots: Array
    start: Array
    end: Array
    rates: tuple[float, float]
    _ratios: OrderedDict[float, tuple[Array, Array, Array]] = field(
        default_factory=OrderedDict, init=False, repr=False
    )

    # what it is made of -------------------------------------------------------------------------

    @cached_property
    def width(self) -> Array:
        return np.diff(self.knots)

    @cached_property
    def rise(self) -> Array:
        """The rise of log p over each piece, 0 where p is 0."""
        alive = self.start > -math.inf
        return np.where(alive, self.end - np.where(alive, self.start, 0.0), 0.0)

    @cached_property
    def slope(self) -> Array:
        return self.rise / self.width

    @cached_property
    def _shares(self) -> tuple[Array, float, float, float]:
        """Masses of pieces and of both tails, times exp(−the last number)."""
        top = np.maximum(self.start, self.end)
        peak = float(np.max(top))
        with np.errstate(under="ignore"):
            mass = self.width * np.exp(top - peak) * mean_exponential(-np.abs(self.rise))
            tails = [
                math.exp(value - peak) / abs(rate)
                for value, rate in zip((self.start[0], self.end[-1]), self.rates, strict=True)
            ]
        return mass, tails[0], tails[1], peak

    @cached_property
    def log_total(self) -> float:
        """log ∫ exp(what is stored)."""
        mass, left, right, peak = self._shares
        return peak + math.log(math.fsum([*mass, left, right]))

    @cached_property
    def mass(self) -> Array:
        """Probabilities of the pieces."""
        mass, left, right, _ = self._shares
        return mass / math.fsum([*mass, left, right])

    @cached_property
    def tails(self) -> tuple[float, float]:
        """Probabilities beyond the first and the last knot."""
        mass, left, right, _ = self._shares
        total = math.fsum([*mass, left, right])
        return left / total, right / total

    @cached_property
    def _below(self) -> np.ndarray:
        """P(X ≤ knot) in long double, so that a thousand sums cost no digit of a double."""
        line = np.concatenate([[self.tails[0]], self.mass])
        return np.cumsum(line, dtype=np.longdouble)

    @cached_property
    def _above(self) -> np.ndarray:
        line = np.concatenate([self.mass, [self.tails[1]]])
        return np.cumsum(line[::-1], dtype=np.longdouble)[::-1]

    @property
    def support(self) -> tuple[float, float]:
        low, high = float(self.knots[0]), float(self.knots[-1])
        return (
            low if math.isinf(self.rates[0]) else -math.inf,
            high if math.isinf(self.rates[1]) else math.inf,
        )

    @cached_property
    def jumps(self) -> Array:
        """Knots at which p is not continuous, the ends of the support among them."""
        inner = self.knots[1:-1][self.end[:-1] != self.start[1:]]
        ends = [end for end in self.support if math.isfinite(end)]
        return np.sort(np.concatenate([inner, ends]))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that answers rest on."""
        parts = (self.knots, self.start, self.end, np.asarray(self.rates))
        return hashlib.sha256(b"".join(array.tobytes() for array in parts)).hexdigest()[:32]

    # facts, exact -------------------------------------------------------------------------------

    @cached_property
    def symmetric(self) -> bool:
        """Whether p(−x) = p(x) but for the knots themselves."""
        return (
            self.rates[0] == -self.rates[1]
            and np.array_equal(self.knots, -self.knots[::-1])
            and np.array_equal(self.start, self.end[::-1])
        )

    @cached_property
    def unimodal(self) -> bool:
        """Whether log p rises, then falls: a comparison of values, straight pieces lie between."""
        values = np.stack([self.start, self.end], axis=1).ravel()
        step = np.diff(np.where(values > -math.inf, values, -1.7e308))
        rising = np.flatnonzero(step > 0)
        return not np.any(step[: rising[-1] + 1] < 0) if rising.size else True

    @cached_property
    def log_concave(self) -> bool:
        """Whether slopes never rise, by exact arithmetic where doubles cannot tell."""
        if not (np.all(self.start > -math.inf) and np.array_equal(self.end[:-1], self.start[1:])):
            return False
        return not self.convex_knots(self.knots, np.append(self.start, self.end[-1]), self.rates)

    @staticmethod
    def convex_knots(knots: Array, values: Array, rates: tuple[float, float]) -> list[int]:
        """The knots at which a continuous log-density bends upwards, exactly."""
        slope = np.diff(values) / np.diff(knots)
        line = np.concatenate([[rates[0]], slope, [rates[1]]])
        with np.errstate(invalid="ignore"):
            near = line[1:] - line[:-1] > -16 * EPS * (np.abs(line[1:]) + np.abs(line[:-1]))
        convex = []
        for k in np.flatnonzero(near):
            sides = []
            for i in (k - 1, k):
                if 0 <= i < len(slope):
                    rise = Fraction(values[i + 1]) - Fraction(values[i])
                    sides.append(rise / (Fraction(knots[i + 1]) - Fraction(knots[i])))
                else:
                    sides.append(line[i + 1])  # a tail: infinite, or a number
            if sides[1] > sides[0]:
                convex.append(int(k))
        return convex

    @property
    def positive(self) -> bool:
        """Whether p > 0 everywhere: no hole and no end."""
        endless = not any(math.isinf(rate) for rate in self.rates)
        return endless and bool(np.all(self.start > -math.inf))

    def moment(self, power: int) -> float:
        """E X or E X², of pieces and tails."""
        a, b, c = self.knots[:-1], self.knots[1:], self.rise
        # ∫ t e^(ct) dt and ∫ t² e^(ct) dt over [0, 1], over the mean of e^(ct)
        small = np.abs(c) < 1e-2
        safe = np.where(small, 1.0, c)
        with np.errstate(over="ignore"):
            first = np.where(small, 0.5 + c / 12 - c**3 / 720, 1 / -np.expm1(-safe) - 1 / safe)
            second = np.where(
                small,
                1 / 3 + c / 12 + c**2 / 360 - c**3 / 720,
                (1 - 2 / safe) / -np.expm1(-safe) + 2 / safe**2,
            )
        w = b - a
        with np.errstate(over="ignore", divide="ignore"):  # a moment beyond all floats is infinite
            whole = a + w * first if power == 1 else a * a + w * (2 * a * first + w * second)
            parts = [*(self.mass * whole)]
            for mass, rate, at in zip(self.tails, self.rates, (a[0], b[-1]), strict=True):
                if mass > 0:
                    more = at - 1 / rate if power == 1 else at * at - 2 * at / rate + 2 / rate**2
                    parts.append(mass * more)
        return math.fsum(parts)

    # probabilities ------------------------------------------------------------------------------

    def _locate(self, x: Array) -> IntArray:
        """The piece that x lies in, the left one at a knot; −1 and n are the tails."""
        return np.searchsorted(self.knots, x, side="left") - 1

    def read(self, x: Array, index: IntArray | None = None) -> Side:
        """log p at x, normalised, in the pieces of `index`; from the nearer end of each."""
        index = self._locate(x) if index is None else index
        n = self.width.size
        i = np.clip(index, 0, n - 1)
        slope, left, right = self.slope[i], x - self.knots[i], x - self.knots[i + 1]
        near = np.abs(left) <= np.abs(right)
        with np.errstate(invalid="ignore"):
            value = np.where(near, self.start[i] + slope * left, self.end[i] + slope * right)
        steep = np.abs(slope)
        for beyond, rate, at, log in (
            (index < 0, self.rates[0], self.knots[0], self.start[0]),
            (index >= n, self.rates[1], self.knots[-1], self.end[-1]),
        ):
            if beyond.any():
                far = np.where(beyond, x - at, 0.0)
                with np.errstate(invalid="ignore"):
                    out = (
                        log + rate * far
                        if math.isfinite(rate)
                        else np.where(far == 0, log, -math.inf)
                    )
                value = np.where(beyond, out, value)
                steep = np.where(beyond, abs(rate) if math.isfinite(rate) else 0.0, steep)
        return Side(value - self.log_total, steep)

    def logpdf(self, x: ArrayLike) -> Array:
        """Normalised log-density; at a jump that of the left side, at an end the inner one."""
        x = np.asarray(x, dtype=np.float64)
        flat = x.ravel()
        index = self._locate(flat)
        if math.isinf(self.rates[0]):
            index = np.where(flat == self.knots[0], 0, index)
        out = np.where(
            np.isnan(flat), np.nan, self.read(np.where(np.isfinite(flat), flat, 0.0), index).value
        )
        out = np.where(np.isinf(flat), -math.inf, out)
        return out.reshape(x.shape)[()]

    def _short(self, a: Array, b: Array, index: IntArray) -> Array:
        """∫ p from a to b inside one piece each, right relative to itself."""
        return self._integrate(a, b, index, self.read(a, index).value, self.read(b, index).value)

    def _integrate(self, a: Array, b: Array, index: IntArray, va: Array, vb: Array) -> Array:
        """The same where log p at a and at b is known."""
        top = np.maximum(va, vb)
        with np.errstate(invalid="ignore", under="ignore", over="ignore"):
            # the rise by the slope, so that no digits cancel in a short interval
            i = np.clip(index, 0, self.width.size - 1)
            slope = np.where(
                index < 0,
                self.rates[0],
                np.where(index >= self.width.size, self.rates[1], self.slope[i]),
            )
            rise = np.where(b > a, slope * (b - a), 0.0)
            mass = (b - a) * np.exp(top) * mean_exponential(-np.abs(rise))
        return np.where((b > a) & (top > -math.inf), mass, 0.0)

    def masses(self, a: Array, b: Array) -> Array:
        """P(a < X ≤ b) for each pair a ≤ b, right to some roundings of itself."""
        low, high = self._locate(a), self._locate(b)
        n, last = self.width.size, self.knots.size - 1
        single = self._short(a, b, np.where(low == high, low, 0))
        single = np.where(np.isneginf(a), self._tail(b, 0), single)
        single = np.where(np.isposinf(b), self._tail(a, 1), single)
        first, final = self.knots[np.clip(low + 1, 0, last)], self.knots[np.clip(high, 0, last)]
        left = np.where(
            np.isneginf(a),
            self.tails[0],
            self._short(np.where(np.isfinite(a), a, first), first, low),
        )
        right = np.where(
            np.isposinf(b),
            self.tails[1],
            self._short(final, np.where(np.isfinite(b), b, final), high),
        )
        i, j = np.clip(low + 1, 0, n), np.clip(high, 0, n)
        below, above = self._below, self._above
        between = np.where(below[i] < 0.5, below[j] - below[i], above[i] - above[j])
        several = np.where(j > i, between, 0.0).astype(np.float64) + left + right
        return np.where(low == high, np.where(b > a, single, 0.0), np.where(b > a, several, 0.0))

    def cdf(self, x: ArrayLike) -> Array:
        """P(X ≤ x), right relative to itself."""
        x = np.asarray(x, dtype=np.float64)
        flat = x.ravel()
        index = self._locate(flat)
        i = np.clip(index, 0, self.width.size - 1)
        inner = np.where(np.isfinite(flat), flat, self.knots[0])
        value = self._below[i].astype(np.float64) + self._short(self.knots[i], inner, i)
        value = np.where(index < 0, self._tail(inner, 0), value)
        value = np.where(index >= self.width.size, 1.0 - self._tail(inner, 1), value)
        value = np.where(np.isinf(flat), np.where(flat > 0, 1.0, 0.0), np.clip(value, 0.0, 1.0))
        return np.where(np.isnan(flat), np.nan, value).reshape(x.shape)[()]

    def sf(self, x: ArrayLike) -> Array:
        """P(X > x), right relative to itself."""
        x = np.asarray(x, dtype=np.float64)
        flat = x.ravel()
        index = self._locate(flat)
        i = np.clip(index, 0, self.width.size - 1)
        inner = np.where(np.isfinite(flat), flat, self.knots[0])
        value = self._above[i + 1].astype(np.float64) + self._short(inner, self.knots[i + 1], i)
        value = np.where(index < 0, 1.0 - self._tail(inner, 0), value)
        value = np.where(index >= self.width.size, self._tail(inner, 1), value)
        value = np.where(np.isinf(flat), np.where(flat > 0, 0.0, 1.0), np.clip(value, 0.0, 1.0))
        return np.where(np.isnan(flat), np.nan, value).reshape(x.shape)[()]

    def _tail(self, x: Array, side: int) -> Array:
        """The mass beyond x, which lies beyond the first (0) or the last knot (1)."""
        mass, rate, at = self.tails[side], self.rates[side], self.knots[-side]
        if mass == 0:
            return np.zeros_like(x)
        with np.errstate(under="ignore", over="ignore"):
            return mass * np.exp(rate * (x - at))

    def ppf(self, u: ArrayLike) -> Array:
        """The x with cdf(x) = u; NaN outside [0, 1]."""
        u = np.asarray(u, dtype=np.float64)
        return np.where(u <= 0.5, self._lower(u), self._upper(1.0 - u))[()]

    def isf(self, v: ArrayLike) -> Array:
        """The x with sf(x) = v; NaN outside [0, 1]."""
        v = np.asarray(v, dtype=np.float64)
        return np.where(v <= 0.5, self._upper(v), self._lower(1.0 - v))[()]

    def _lower(self, u: Array) -> Array:
        flat = np.clip(u.ravel(), 0.0, 1.0)
        i = np.clip(np.searchsorted(self._below, flat, side="left") - 1, 0, self.width.size - 1)
        x = self._place(i, flat - self._below[i], self._below[i + 1] - flat)
        if self.tails[0] > 0:
            with np.errstate(divide="ignore"):
                far = self.knots[0] + np.log(flat / self.tails[0]) / self.rates[0]
            x = np.where(flat < self.tails[0], far, x)
        x = np.where((u.ravel() >= 0) & (u.ravel() <= 1), x, np.nan)
        return np.where(flat <= 0, np.where(u.ravel() == 0, self.support[0], x), x).reshape(u.shape)

    def _upper(self, v: Array) -> Array:
        flat = np.clip(v.ravel(), 0.0, 1.0)
        n = self.width.size
        i = np.clip(n - np.searchsorted(self._above[::-1], flat, side="left"), 0, n - 1)
        x = self._place(i, self._above[i] - flat, flat - self._above[i + 1])
        if self.tails[1] > 0:
            with np.errstate(divide="ignore"):
                far = self.knots[-1] + np.log(flat / self.tails[1]) / self.rates[1]
            x = np.where(flat < self.tails[1], far, x)
        x = np.where((v.ravel() >= 0) & (v.ravel() <= 1), x, np.nan)
        return np.where(flat <= 0, np.where(v.ravel() == 0, self.support[1], x), x).reshape(v.shape)

    def _place(self, i: IntArray, before: np.ndarray, after: np.ndarray) -> Array:
        """Where piece i has these masses on either side, in long double.

        It is sought from the nearer end, so that hardly any mass is misplaced: 1/2 lies at a knot
        of an even law. In a steep piece that is the denser end, until the logarithm loses digits.
        """
        before, after = (np.maximum(v, 0.0).astype(np.float64) for v in (before, after))
        rise = self.rise[i]
        share = 1.0 / np.maximum(2.0, np.abs(rise))
        from_left = before <= (before + after) * np.where(rise < 0, 1.0 - share, share)
        left, right = self.knots[i], self.knots[i + 1]
        x = np.where(
            from_left,
            left + self._reach(before, i, self.start[i], rise),
            right - self._reach(after, i, self.end[i], -rise),
        )
        return np.clip(x, left, right)

    def _reach(self, rest: Array, i: IntArray, log: Array, rise: Array) -> Array:
        """How far from one end of piece i the mass `rest` lies; log p and its rise from there."""
        with np.errstate(all="ignore"):
            y = rest * np.exp(self.log_total - log) / self.width[i]
            t = np.where(
                np.abs(rise) < LINEAR,
                y * (1 - rise * y / 2),
                np.log1p(np.maximum(y * rise, -1.0)) / np.where(rise == 0, 1.0, rise),
            )
        return (
            np.where(log > -math.inf, np.clip(np.where(np.isnan(t), 1.0, t), 0.0, 1.0), 0.0)
            * self.width[i]
        )

    def cut(self, low: float, high: float) -> Pieces:
        """The same log-density between two places, and none beyond."""
        low, high = max(low, self.support[0]), min(high, self.support[1])
        inner = self.knots[(self.knots > low) & (self.knots < high)]
        # a knot just inside an end would leave a piece too short to have a slope
        i = np.clip(np.searchsorted(self.knots, inner), 1, self.knots.size - 2)
        room = SHORTEST * (self.knots[i + 1] - self.knots[i - 1])
        inner = inner[(inner - low > room) & (high - inner > room)]
        knots = np.concatenate([[low], inner, [high]])
        log = self.log_total
        index = self._locate(0.5 * (knots[:-1] + knots[1:]))
        start, end = (self.read(at, index).value + log for at in (knots[:-1], knots[1:]))
        n = self.width.size
        inner_piece = (index >= 0) & (index < n)
        i = np.clip(index, 0, n - 1)
        # knots that were there keep their values, to the last place
        start = np.where(inner_piece & (knots[:-1] == self.knots[i]), self.start[i], start)
        end = np.where(inner_piece & (knots[1:] == self.knots[i + 1]), self.end[i], end)
        return Pieces(knots, start, end, (math.inf, -math.inf))

    # how it bends -------------------------------------------------------------------------------

    @cached_property
    def curvature(self) -> Curvature:
        """Every piece is convex; slopes fall, and the density jumps, at knots only."""
        log = self.log_total
        with np.errstate(under="ignore"):
            first, last = np.exp(self.start - log), np.exp(self.end - log)
        none = np.zeros(1)
        endless = [math.isfinite(rate) for rate in self.rates]
        tails = [first[:1] if endless[0] else none, last[-1:] if endless[1] else none]
        rates = [rate if math.isfinite(rate) else 0.0 for rate in self.rates]
        before = (
            np.concatenate([tails[0], last]),
            np.concatenate([rates[0] * tails[0], self.slope * last]),
        )
        after = (
            np.concatenate([first, tails[1]]),
            np.concatenate([self.slope * first, rates[1] * tails[1]]),
        )
        jump, fall = np.abs(after[0] - before[0]), np.maximum(before[1] - after[1], 0.0)
        inner = np.append(np.append(False, self.end[:-1] == self.start[1:]), False)
        jump[inner] = 0.0
        jump[0], jump[-1] = (jump[0] * (not endless[0])), (jump[-1] * (not endless[1]))
        return Curvature(
            places=self.knots,
            falls=self.knots[(jump > 0) | (fall > 0)],
            concave=(),
            slope_fall=float(np.sum(fall)),
            jump=float(np.sum(jump)),
            variation=float(
                np.sum(np.abs(last - first)) + np.sum(jump) + tails[0][0] + tails[1][0]
            ),
            flat=not any(endless) and not np.any(self.rise),
        )

    def look(self, edges: Array) -> tuple[Array, Array, Array]:
        """The density at both ends of the cells between edges, without a knot inside, and their
        mass.
        """
        low, high = edges[:-1], edges[1:]
        index = self._locate(0.5 * (low + high))
        a, b = (self.read(x, index).value for x in (low, high))
        with np.errstate(under="ignore"):
            return np.exp(a), np.exp(b), self._integrate(low, high, index, a, b)

    # the log-ratio of a shifted copy ------------------------------------------------------------

    def _ratio_at_knots(self, shift: float) -> tuple[Array, Array, Array]:
        """Where L may turn, ascending, with its least and largest value beside each place."""
        if shift in self._ratios:
            return self._ratios[shift]
        log = self.log_total
        left = np.concatenate(
            [[self.start[0] if math.isfinite(self.rates[0]) else -math.inf], self.end]
        )
        right = np.concatenate(
            [self.start, [self.end[-1] if math.isfinite(self.rates[1]) else -math.inf]]
        )
        lowest, highest = np.minimum(left, right) - log, np.maximum(left, right) - log
        places, lows, highs = [], [], []
        for sign, moved in ((1.0, self.knots), (-1.0, self.knots + shift)):
            at = moved - shift if sign > 0 else moved  # where the other copy is read
            unsure = 4 * EPS * (np.abs(at) + abs(shift) + np.abs(moved))
            ends = [self._locate(at - unsure), self._locate(at + unsure)]
            looks = [self.read(at, side) for side in ends]
            # another knot within rounding: both of its sides count
            other_low = np.min([side.value for side in looks], axis=0)
            other_high = np.max([side.value for side in looks], axis=0)
            steep = np.max([side.steep for side in looks], axis=0) * unsure
            with np.errstate(invalid="ignore"):
                low, high = (
                    (other_low - highest, other_high - lowest)
                    if sign > 0
                    else (lowest - other_high, highest - other_low)
                )
                size = np.abs(other_low) + np.abs(highest) + np.abs(other_high) + np.abs(lowest) + 2
                margin = VALUE_UNITS * EPS * np.where(np.isfinite(size), size, 0.0) + steep
                margin = np.where(np.isfinite(margin), margin, 0.0)
            places.append(moved)
            lows.append(np.where(np.isnan(low), -math.inf, low - margin))
            highs.append(np.where(np.isnan(high), math.inf, high + margin))
        place, low, high = (np.concatenate(side) for side in (places, lows, highs))
        order = np.argsort(place, kind="stable")
        bounds = place[order], np.append(low[order], math.inf), np.append(high[order], -math.inf)
        self._ratios[shift] = bounds
        while len(self._ratios) > 8:  # two signs of the few shifts that are in work
            self._ratios.popitem(last=False)
        return bounds

    def bound_ratio(self, shift: float, left: Array, right: Array) -> tuple[Array, Array]:
        """See `Law.bound_ratio`.

        The log-ratio is straight between the knots of both copies: the ends of a cell, looked at
        from inside, and the knots within tell all (docs/theory.md#tables).
        """
        place, lows, highs = self._ratio_at_knots(shift)
        size = np.maximum(np.abs(left), np.abs(right)) + abs(shift)
        step = np.minimum(INSIDE_UNITS * EPS * size, np.abs(right - left) / 4)
        with np.errstate(invalid="ignore"):
            ends = []
            for z in (left + step, right - step):
                here, there = self.read(z), self.read(z - shift)
                margin = VALUE_UNITS * EPS * (np.abs(here.value) + np.abs(there.value) + 2)
                margin += (here.steep + there.steep) * 2 * INSIDE_UNITS * EPS * size
                ends.append((there.value - here.value, np.where(np.isfinite(margin), margin, 0.0)))
            unknown = np.isnan(ends[0][0]) | np.isnan(ends[1][0])
            low = np.minimum(ends[0][0] - ends[0][1], ends[1][0] - ends[1][1])
            high = np.maximum(ends[0][0] + ends[0][1], ends[1][0] + ends[1][1])
        low, high = np.where(unknown, -math.inf, low), np.where(unknown, math.inf, high)
        first = np.searchsorted(place, left + step, side="left")
        last = np.searchsorted(place, right - step, side="right")
        some = last > first
        if some.any():
            index = np.stack([first[some], last[some]], axis=1).ravel()
            low[some] = np.minimum(low[some], np.minimum.reduceat(lows, index)[::2])
            high[some] = np.maximum(high[some], np.maximum.reduceat(highs, index)[::2])
        return low, high
