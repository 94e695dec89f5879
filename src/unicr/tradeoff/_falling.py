"""The trade-off of a density φ(‖z‖) that falls with the length, from below, by outward rounding.

{L > t} = {‖z − δ‖ < ρ(r)} where r = ‖z‖ and φ(ρ) = e^t·φ(r). So P(L > t) is an integral over the
length alone of a probability in closed form, and a sum over cells of r of its least value there is
a lower bound: nothing is assumed to be smooth. What is asked of φ is that it falls, and it is
tested at every point of a fine table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import RadiusError
from unicr.noise.internal import RadialNoise
from unicr.tradeoff._base import Lines, TradeOff
from unicr.tradeoff._margin import maximise
from unicr.tradeoff._radial import angle_law
from unicr.values import Array

CELLS = 12_000  # of the length: each errs on the safe side, so more of them only lose less
TABLE = 60_000  # lengths at which it is tested that φ falls, and between which a level is sought
TAIL = 1e-15  # of the length's law, left out at either end
ROUNDING = 1e-10  # of every mass: the law's table and that of the angle
LINES = 90  # slopes of T that are kept: between them T is read from below
KEPT = 700  # gaps
FEW = 4  # values of T for which single lines are sought, instead of a whole grid of them
# where lines are sought first, when nothing says which t matter
WIDE = np.concatenate([[1e-6, 1e-4, 1e-3], np.geomspace(1e-2, 60.0, 36), [200.0, 600.0]])
Chance = Callable[[Array, Array, Array], Array]


class Levels:
    """φ at unit scale on a table, the law of ‖z‖ in cells, and levels of φ found from below.

    `power` is e where L depends on r and ρ through ρ^e − r^e. If log φ is convex or concave as a
    function of r^e, then ρ(r)^e − r^e is monotone in r between two ends, so its least value in a
    cell is at an edge; otherwise ρ at the left edge and r at the right one bound it.
    """

    def __init__(self, noise: RadialNoise, power: int, cells: int = CELLS) -> None:
        law, self._noise, self._power = noise._law, noise, power
        self._kept: dict[float, Array] = {}
        few = cells * 3 // 20
        u = np.concatenate([
            np.geomspace(TAIL, 0.02, few, endpoint=False),
            np.linspace(0.02, 0.5, cells // 2 - few, endpoint=False),
        ])  # fmt: skip
        edges = np.unique(np.concatenate([law.ppf(u), law.ppf([0.5]), law.isf(u)]))
        edges = edges[edges > 0]
        if ended := math.isfinite(law.support[1]):
            edges = np.append(edges[edges < law.support[1]], law.support[1])
        self.edges = edges
        below, beyond = law.cdf(edges), law.sf(edges)
        self.mass = np.where(below[1:] < 0.5, np.diff(below), -np.diff(beyond)) * (1 - ROUNDING)
        # a falling φ is a mixture of uniform balls, P(radius > b) = P(‖z‖ > b) + b·f(b)/d
        cubes = beyond + edges * law.pdf(edges) / noise.dim
        cubes[-1] *= not ended
        self.mixed = np.maximum(-np.diff(cubes), 0.0) - ROUNDING * np.abs(np.diff(cubes))
        high = min(law.support[1], 1.5 * float(edges[-1]))
        near = np.geomspace(edges[0] * 1e-4, edges[0], 600)
        self._rho = rho = np.unique(
            np.concatenate([near, np.linspace(edges[0], high, TABLE), edges])
        )
        self._g = g = self._phi(rho)
        finite = g > -1e300
        rough = 16 * float(np.finfo(np.float64).eps) * (1 + np.abs(g))
        self.falls = law.support[0] == 0 and bool(np.all(np.diff(g) <= rough[1:]))
        self._g = np.minimum.accumulate(g)
        self.slack = float(np.max(rough[finite], initial=0.0))
        some = np.flatnonzero(finite)[::24]
        slope = np.diff(g[some]) / np.diff(rho[some] ** power)
        error = 4 * self.slack / np.diff(rho[some] ** power)
        bend = np.diff(slope)
        error = error[1:] + error[:-1]
        self._bent = bool(np.all(bend >= -error) or np.all(bend <= error))

    def _phi(self, r: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = np.asarray(self._noise._radial(r), dtype=np.float64)
        return np.maximum(np.where(r <= self._noise._law.support[1], value, -np.inf), -1e300)

    @cached_property
    def slope(self) -> float:
        """How fast log φ falls where most of the lengths are."""
        r = self._noise._law.ppf(np.array([0.16, 0.84]))
        return max(float(-np.diff(self._phi(r))[0] / np.diff(r)[0]), 1e-12)

    @cached_property
    def _at_edges(self) -> Array:
        return self._phi(self.edges)

    def gap(self, t: float) -> Array:
        """`_gap`, kept for the values of t that come again."""
        if t not in self._kept:
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[t] = self._gap(t)
        return self._kept[t]

    def _gap(self, t: float) -> Array:
        """The least ρ^e − r^e in each cell, from below; −inf where no ρ has so high a level."""
        level = self._at_edges + (t + 2 * self.slack)
        right = np.searchsorted(-self._g, -level, side="right")
        i = np.clip(right, 1, self._g.size - 1)
        low, high = self._rho[i - 1], self._rho[i]
        with np.errstate(divide="ignore", invalid="ignore"):
            chord = (high - low) / (self._g[i] - self._g[i - 1])
            rho = low + (level - self._g[i - 1]) * chord
            for _ in range(2):
                rho = np.clip(rho - (self._phi(rho) - level) * chord, low, high)
            for less in (1e-13 * rho, 1e-6 * (high - low)):
                rho = np.where(self._phi(rho) >= level, rho, np.maximum(rho - less, low))
            rho = np.where(self._phi(rho) >= level, rho, low)  # φ falls: below the true one
        rho = np.where(right == self._g.size, self._rho[-1], rho)
        a, b = self.edges[:-1] ** self._power, self.edges[1:] ** self._power
        left, at_right = rho[:-1] ** self._power, rho[1:] ** self._power
        least = np.minimum(left - a, at_right - b) if self._bent else left - b
        return np.where((right[:-1] == 0) | (right[1:] == 0), -np.inf, least)


@lru_cache(maxsize=16)
def levels(noise: RadialNoise, power: int) -> Levels:
    """The levels of a noise at unit scale."""
    return Levels(noise.unit, power)


class Falling(TradeOff):
    """T from below: every t gives a line, and the best ones are sought where they are needed."""

    bound = "lower"

    def __init__(self, stick: Callable[[float], float], first: Array) -> None:
        self._stick, self._first = stick, first
        self._known: dict[float, float] = {}

    def _h(self, t: float) -> float:
        size = abs(t)
        if size not in self._known:
            self._known[size] = min(max(self._stick(size), 0.0), 1.0)
        h = self._known[size]
        return h if t >= 0 else 1.0 - math.exp(t) * (1.0 - h)

    @cached_property
    def _lines(self) -> Lines:
        between = np.linspace(0, self._first.size - 1, max(LINES, 8 * self._first.size))
        t = np.exp(np.interp(between, np.arange(self._first.size), np.log(self._first)))
        h = np.array([self._h(float(one)) for one in t])
        other = 1.0 - np.exp(-t) * (1.0 - h)
        return Lines(np.concatenate([-t[::-1], t]), np.concatenate([other[::-1], h]), "lower")

    def beta(self, alpha: ArrayLike) -> Array:
        def value(a: float) -> float:
            return self._highest(lambda t: 1.0 - self._h(t) - math.exp(t) * a)

        return self._each(alpha, value, self._lines.beta if np.size(alpha) > FEW else None)

    def alpha(self, beta: ArrayLike) -> Array:
        def value(b: float) -> float:
            return self._highest(lambda t: (1.0 - b - self._h(t)) * math.exp(-t))

        return self._each(beta, value, self._lines.alpha if np.size(beta) > FEW else None)

    @staticmethod
    def _each(
        at: ArrayLike, value: Callable[[float], float], many: Callable[[ArrayLike], Array] | None
    ) -> Array:
        if many is not None:
            return many(at)
        found = [value(float(one)) for one in np.ravel(at)]
        return np.clip(np.reshape(found, np.shape(at)), 0.0, 1.0)

    def _highest(self, score: Callable[[float], float]) -> float:
        """The largest score over t, by thinning steps around the best; any t is a valid line."""
        first = (t for one in self._first.tolist() for t in (-one, one))
        return maximise(score, first, 6)[1]


def _two_sided(found: Levels, chance: Chance) -> Callable[[float], float]:
    """H(t) = 1 − P(L ≥ −t) − e^t·P(L > t) from above; `chance` is P(‖z − δ‖ < ρ | r) in a cell."""
    left, right = found.edges[:-1], found.edges[1:]

    def part(t: float) -> float:
        gap = found.gap(t)
        here = gap > -math.inf
        return float(np.sum(found.mass[here] * chance(left[here], right[here], gap[here])))

    return lambda t: 1.0 - part(-t) - math.exp(t) * part(t)


def _finite(shift: float) -> None:
    if not math.isfinite(shift):
        raise RadiusError(f"shift={shift!r}: a shift is a finite length, for example 0.5")


def falls(noise: RadialNoise) -> bool:
    """Whether φ never rises with the length, as far as a fine table shows."""
    return levels(noise.unit, 2 if noise.order == 2 else 1).falls


def ball_chance(dim: int, s: float) -> Chance:
    """P(‖z − δ‖₂ < ρ | ‖z‖₂ = r), ‖δ‖₂ = s: the least for r in [a, b] and D = ρ² − r² ≥ `gap`.

    cos of the angle between z and δ must exceed x = (s² − D)/(2sr). With a and b exchanged and the
    largest D it is the most.
    """
    angle = angle_law(dim)

    def chance(a: Array, b: Array, gap: Array) -> Array:
        over = s * s - gap
        return angle.beyond(over / (2 * s * np.where(over > 0, a, b)))

    return chance


def cross_chance(dim: int, s: float) -> Chance:
    """The same in ℓ1, δ along one coordinate and D = ρ − r.

    ‖z − δ‖₁ − ‖z‖₁ = |z₁ − s| − |z₁| stays below D where z₁ > (s − D)/2, if −s < D ≤ s; and
    P(z₁ > c | r) = (1 − c/r)^(d−1)/2, which grows with r and D.
    """

    def chance(a: Array, b: Array, gap: Array) -> Array:
        half = 0.5 * np.maximum(1.0 - 0.5 * np.maximum(s - gap, 0.0) / a, 0.0) ** (dim - 1)
        return np.where(gap > s, 1.0, np.where(gap > -s, half, 0.0))

    return chance


def ball_tradeoff(noise: RadialNoise, shift: float) -> TradeOff:
    """T of φ(‖z‖₂) and its shift by a δ of ℓ2 length `shift`, from below."""
    _finite(shift)
    s, found = abs(shift) / noise.scale, levels(noise.unit, 2)
    first = np.geomspace(0.02, 40, 12) / math.sqrt(noise.dim)
    stick = _two_sided(found, ball_chance(noise.dim, s))
    return Falling(stick, np.minimum(first * found.slope * s, 600.0))


def cross_tradeoff(noise: RadialNoise, shift: float) -> TradeOff:
    """T of φ(‖z‖₁) and its shift by `shift` along one coordinate, from below."""
    _finite(shift)
    s = abs(shift) / noise.scale
    return Falling(_two_sided(levels(noise.unit, 1), cross_chance(noise.dim, s)), WIDE)


def cube_tradeoff(noise: RadialNoise, shifts: Iterable[tuple[float, int]]) -> TradeOff:
    """T of φ(‖z‖_∞) and its shift by δ, given as (size, count) of coordinates, from below."""
    sizes = [(abs(size) / noise.scale, count) for size, count in shifts if size]

    def log_overlap(b: Array, gap: Array) -> Array:
        total = np.zeros(b.shape)
        with np.errstate(divide="ignore"):
            for size, count in sizes:
                total += count * np.log1p(-np.minimum(np.maximum(size - gap, 0.0) / (2 * b), 1.0))
        return total

    _finite(sum(size for size, _ in sizes))
    return cube_levels_tradeoff(noise, log_overlap)


def cube_levels_tradeoff(
    noise: RadialNoise, log_overlap: Callable[[Array, Array], Array]
) -> TradeOff:
    """T from below for φ(‖z‖_∞), a mixture of uniform cubes, by the overlaps of its cubes.

    ∫ min(q, e^t·p) = E_b Π(1 − (|δ_i| − D)₊/2b)₊, where b is the half side of the cube under Q and
    b + D that of the same level under e^t·p. `log_overlap(b, D)` must be at most the log of that
    product and grow with b and D: cells count at their left, with their least D. In units of the
    noise's scale.
    """
    found = levels(noise.unit, 1)

    def stick(t: float) -> float:
        gap = np.maximum(found.gap(-t), 0.0)
        return 1.0 - float(np.sum(found.mixed * np.exp(log_overlap(found.edges[:-1], gap))))

    return Falling(stick, WIDE)
