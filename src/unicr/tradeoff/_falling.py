"""The trade-off of a density φ(‖z‖) that falls with the length, from below, by outward rounding.

{L > t} = {‖z − δ‖ < ρ(r)} where r = ‖z‖ and φ(ρ) = e^t·φ(r). So P(L > t) is an integral over the
length alone of a probability in closed form, and a sum over cells of r of its least value there is
a lower bound: nothing is assumed to be smooth. The argument, with every rounding, is in
docs/theory.md#densities-of-the-length. That φ falls, and how it bends, is known by formula for the
built-in families (`RadialDensity.by_formula`); of a user's φ it is tested on a fine table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unicr.errors import RadiusError
from unicr.noise import RadialNoise
from unicr.tradeoff._angle import angle_law, density_at_zero
from unicr.tradeoff._base import Lines, TradeOff
from unicr.tradeoff._margin import maximise
from unicr.values import Array

EPS = float(np.finfo(np.float64).eps)
CELLS = 12_000  # of the length: what they lose falls with their square, and is below 0.1 %
PARTS = 8  # of a cell, for its mass: the loss by chords falls with their square
TABLE = 60_000  # lengths at which a user's φ is looked at
TAIL = 1e-15  # of the length's law, left out at either end
TABULATED = 1e-10  # share taken off masses of a law that is only tabulated (to about 1e-12)
# Share taken off an exponential. Where its exponent is below −700 it counts as nothing in any sum;
# above, the exponent is right to 5 roundings of itself, 8e-13.
CLOSED = 1e-12
# Added to H: two sums of 12,000 positive terms, at most 1 together, in blocks of 128 (30 roundings
# each, 7e-15), and the few operations that lead from H to T.
ROUNDING = 2e-14
# Share of a gap: `RadialDensity.drop` is exact for a gap differing by no more from the one given.
# It takes a quotient and a logarithm, and e·log(ρ/r) < 1400 among floats: 1400 times 4 roundings.
TESTED = 2e-12
# Added to how fast gaps fall, a number between 0 and 1: a quotient of two values of
# `RadialDensity.steepness`, each right to some hundred roundings.
SLOPE_CHARGE = 1e-12
LINES = 90  # of a whole trade-off: any number is right, fewer show less
KEPT = 300  # values of t whose gaps are kept
STEPS = 8  # towards a gap; each divides its error by a hundred or more
FEW = 4  # values of T for which single lines are sought, instead of a whole grid of them
NEAR = 0.01  # of the way between two t of the first grid: a line so near to the best shows as much
# where lines are sought first, when nothing says which t matter
WIDE = np.concatenate([[1e-6, 1e-4, 1e-3], np.geomspace(1e-2, 60.0, 36), [200.0, 600.0]])
LOSS = 1e-4  # of the radius, by which chords between the nodes of a curve may lower it
FINENESS = 2e-4  # between the steps of a curve, as a share of the radius
# The longest way between two nodes, in lengths for which L has the deviation 1 (σ for Gaussian
# noise): one t serves both, which costs an eighth of the square of this, as a share of the radius.
WIDEST = 0.04
NARROWEST = 5e-3  # the shortest way between two nodes of a curve, as a share of the radius
Gaps = tuple[Array, Array, Array]
Chance = Callable[[Array, Array, Array], Array]


class Levels:
    """φ at unit scale on a table, the law of ‖z‖ in cells, and levels of φ from below.

    With e = 2 for ℓ2 and 1 for ℓ1 and ℓ∞, L depends on r and ρ through D = ρ^e − r^e, the gap,
    which is bounded from below in every cell of r (`gaps`).

    `mass` holds lower bounds of P(‖z‖ in the cell); `mixed` those of the radius of the uniform
    ball, if φ is written as a mixture of such.
    """

    def __init__(self, noise: RadialNoise, cells: int = CELLS) -> None:
        self._law = law = noise.unit_length
        self._power, self.dim = noise.ball.power, noise.dim
        self._kept: dict[float, Gaps] = {}
        few = cells * 3 // 20
        u = np.concatenate([
            np.geomspace(TAIL, 0.02, few, endpoint=False),
            np.linspace(0.02, 0.5, cells // 2 - few, endpoint=False),
        ])  # fmt: skip
        edges = np.unique(np.concatenate([law.ppf(u), law.ppf([0.5]), law.isf(u)]))
        edges = edges[edges > 0]
        if ended := math.isfinite(law.support[1]):
            edges = np.append(edges[edges < law.support[1]], law.support[1])
        # edges so close that the parts of a cell could coincide are left out, from below
        apart = np.diff(edges) > 16 * PARTS * EPS * edges[1:]
        self.edges = edges = edges[np.append(apart, True)]
        chords = self._by_chords(ended)
        self.outward = law.by_formula and chords is not None
        self.mass, self.mixed = chords or self._by_table(ended)
        high = min(law.support[1], 1.5 * float(edges[-1]))
        near = np.geomspace(edges[0] * 1e-4, edges[0], 600)
        rho = np.unique(np.concatenate([near, np.linspace(edges[0], high, TABLE), edges]))
        g = self._phi(rho)
        # what a user's function is trusted with: 16 roundings of 1 + |log φ|
        rough = 16 * EPS * (1 + np.abs(g))
        flat = law.by_formula or bool(np.all(np.diff(g) <= rough[1:]))
        self.falls = law.support[0] == 0 and flat
        self._rho, self._g = rho, np.minimum.accumulate(g)
        if law.by_formula:
            bend = law.density.bend(float(rho[0]), float(rho[-1]), self._power)
        else:
            bend = _bend_of_table(rho[g > -1e300] ** self._power, g[g > -1e300])
        self._bend = bend
        self._end = law.support[1]

    def _phi(self, r: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = np.asarray(self._law.density.log_density(r), dtype=np.float64)
        return np.maximum(np.where(r <= self._law.support[1], value, -np.inf), -1e300)

    def _by_table(self, ended: bool) -> tuple[Array, Array]:
        """Masses from the tabulated law of the length."""
        law, edges = self._law, self.edges
        below, beyond = law.cdf(edges), law.sf(edges)
        mass = np.where(below[1:] < 0.5, np.diff(below), -np.diff(beyond))
        # a falling φ is a mixture of uniform balls, P(radius > b) = P(‖z‖ > b) + b·f(b)/d
        balls = beyond + edges * law.pdf(edges) / self.dim
        balls[-1] *= not ended
        mixed = -np.diff(np.minimum.accumulate(balls))
        return mass * (1 - TABULATED), mixed * (1 - TABULATED)

    def _by_chords(self, ended: bool) -> tuple[Array, Array] | None:
        """Masses from below, where log φ is concave in w = log r; None if it is not.

        The length has the density e^ℓ in w, ℓ = d·w + log φ. Chords of ℓ give a cell its mass from
        below; between the prolonged chords of its neighbours ℓ exceeds its own chord by at most a
        quarter of the width times the change of slope, and outside all cells it lies below the
        first and the last chord: the whole mass from above.
        """
        law, edges, dim = self._law, self.edges, self.dim
        part = edges[:-1, None] * (edges[1:] / edges[:-1])[:, None] ** (np.arange(PARTS) / PARTS)
        r = np.append(part.ravel(), edges[-1])
        w, g = np.log(r / law.table.unit), self._phi(r)
        rounding = 8 * EPS * float(np.max(dim * (1 + np.abs(w)) + np.abs(g)))
        width = np.log1p(np.diff(r) / r[:-1])
        if rounding > 1e-6 or width.min() <= 0:
            return None
        height = dim * w + g
        height -= height.max()
        rise = np.diff(height)
        slope, error = rise / width, 2 * rounding / width
        # the change of slope, from above
        bend = slope[:-1] - slope[1:] + error[:-1] + error[1:]
        concave = law.by_formula or bool(np.all(bend >= 0))
        first, last = float(slope[0] - error[0]), float(slope[-1] + error[-1])
        if not concave or first <= 0 or (last >= 0 and not ended):
            return None
        density = np.exp(height)
        flat = rise == 0
        mean = np.where(flat, 1.0, np.expm1(rise) / np.where(flat, 1.0, rise))
        part = width * density[:-1] * mean * (1 - 2 * rounding)
        sag = width * np.concatenate([bend[:1], (bend[1:] + bend[:-1]) / 4, bend[-1:]])
        tails = density[0] / first - (0.0 if ended else density[-1] / last)
        least = float(np.sum(part))
        most = (float(np.sum(part * np.exp(np.maximum(sag, 0.0)))) + tails) * (1 + 8 * rounding)
        mass = part.reshape(-1, PARTS).sum(axis=1) / most
        # the radius of the ball has the mass of the length minus the change of e^ℓ/d
        end = density[::PARTS].copy()
        end[-1] *= not ended
        change = np.diff(end) / dim
        error = 8 * rounding * (end[1:] + end[:-1]) / (dim * least)
        mixed = mass - np.where(change > 0, change / least, change / most) - error
        return mass, np.maximum(mixed, 0.0)

    @cached_property
    def slope(self) -> float:
        """How fast log φ falls where most of the lengths are."""
        r = self._law.ppf(np.array([0.16, 0.84]))
        return max(float(-np.diff(self._phi(r))[0] / np.diff(r)[0]), 1e-12)

    @cached_property
    def _at_edges(self) -> Array:
        return self._phi(self.edges)

    @cached_property
    def _powers(self) -> tuple[Array, Array, Array]:
        """r^e at the edges, of the cells' widths from above, and of the table."""
        power, a, b = self._power, self.edges[:-1], self.edges[1:]
        width = (b - a) * (b + a) if power == 2 else b - a
        return self.edges**power, width * (1 + 4 * EPS), self._rho**power

    def gaps(self, t: float) -> Gaps:
        """`_gaps`, kept for the values of t that come again."""
        if t not in self._kept:
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[t] = self._gaps(t)
        return self._kept[t]

    def least_gap(self, t: float) -> Array:
        """The least D = ρ^e − r^e in each cell, from below."""
        return self.gaps(t)[1]

    def _gaps(self, t: float) -> Gaps:
        """(left, right, at) for each cell [a, b] of r: D ≥ right, and for every c ≥ 0
        (c − D)/r ≤ max((c − left)/a, (c − right)/at). −inf if no ρ has so high a level.

        If log φ = h(v) is convex or concave in v = r^e, then D is monotone, or rises and then
        falls, so that it is least at an edge: left = right = that value, at = b. Where it is convex
        and t > 0, D falls, but no faster than the steepness allows, 1 + D′ = h′(v)/h′(v + D);
        `at` is where that line through D at the left edge reaches D at the right one.
        In any other case ρ at the left edge and r at the right one bound D
        (docs/theory.md#densities-of-the-length).
        """
        gap, edges = self._gap_at_edges(t), self.edges
        start, width, _ = self._powers
        left, right, power = gap[:-1], gap[1:], self._power
        if not (self._law.by_formula and self._bend > 0 and t > 0):
            least = np.minimum(left, right) if self._bend else left - width
            return least, least, edges[1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            rho = np.maximum(start[:-1] + left, 0.0) ** (1 / power)
            steepness = self._law.density.steepness
            rises = steepness(edges[1:], power) / steepness(rho, power)
            # h′(v)/h′(v + D) is at most 1; what is not a number (ρ = 0) counts as 0
            falls = 1.0 - np.where(rises < 2.0, rises, 0.0) + SLOPE_CHARGE
            reached = (start[:-1] + np.maximum(left - right, 0.0) / falls) ** (1 / power)
        at = np.where(right > -math.inf, reached * (1 - 4 * EPS), edges[:-1])
        return left, np.minimum(left, right), np.clip(at, edges[:-1], edges[1:])

    def _gap_at_edges(self, t: float) -> Array:
        """D = ρ^e − r^e at the edges, from below; −inf if no ρ of the table is high enough.

        A chord of the table and more steps along it come near to the gap; what is returned was
        tested: log φ at ρ is high enough, roundings counted, and φ falls.
        """
        start, _, table = self._powers
        # below −t also at t = 0: where φ is constant, L = 0 is an atom that P(L ≥ −t) and P(L > t)
        # must not both count; 64 roundings, because `_drop` is right to some of itself
        limit = -t - 64 * EPS * abs(t) - 1e-300
        level = self._at_edges + t
        right = np.searchsorted(-self._g, -level, side="right")
        i = np.clip(right, 1, self._g.size - 1)
        low = table[np.maximum(i - 2, 0)] - start
        high = table[np.minimum(i + 1, self._g.size - 1)] - start
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            chord = (table[i] - table[i - 1]) / (self._g[i] - self._g[i - 1])
            gap = table[i - 1] - start + (level - self._g[i - 1]) * chord
            for _ in range(STEPS):
                missed = self._drop(gap) + t
                gap = np.clip(gap + missed * chord, low, high)
                if np.max(np.abs(missed)) <= 1e-11 * abs(t):
                    break
            if not self._law.by_formula:  # a little lower, so that roundings of φ pass the test
                gap = gap + 64 * EPS * (1 + np.abs(self._at_edges)) * chord
            gap = np.where(right == self._g.size, table[-1] - start, gap)
            gap = self._lower(np.where(np.isfinite(gap), gap, low))
            tested, passed = self._test(gap, limit)
            for steps in (1, 2):
                if passed.all():
                    break
                below, holds = self._test(
                    self._lower(table[np.maximum(i - steps, 0)] - start), limit
                )
                tested, passed = np.where(passed, tested, below), passed | holds
        return np.where(passed & (right > 0), np.minimum(tested, self._room), -np.inf)

    def _lower(self, gap: Array) -> Array:
        """A little lower, so that most pass the test: by what the steps leave, and by the roundings
        of r^e where ρ ≪ r.
        """
        start = self._powers[0]
        lower = gap - 1e-10 * np.abs(gap) - np.where(gap < -0.5 * start, 8 * EPS * start, 0.0)
        return np.asarray(np.maximum(lower, -start))

    def _test(self, gap: Array, limit: float) -> tuple[Array, NDArray[np.bool_]]:
        """Gaps from below near the given ones, and whether log φ(r) − log φ(ρ) ≤ `limit` there."""
        if self._law.by_formula:
            lower = np.maximum(gap - TESTED * np.abs(gap), -self._powers[0])
            return lower, self._law.density.drop(self.edges, gap, self._power) <= limit
        rho = self._at(gap)  # φ is known at this float, so the gap is that of this float
        lower = (rho - self.edges) * ((rho + self.edges) if self._power == 2 else 1.0)
        return lower - 4 * EPS * np.abs(lower), self._drop(gap) <= limit

    def _at(self, gap: Array) -> Array:
        return np.asarray(np.maximum(gap + self._powers[0], 0.0) ** (1 / self._power))

    def _drop(self, gap: Array) -> Array:
        """log φ at the edges minus log φ at ρ; of a user's φ from above."""
        if self._law.by_formula:
            return self._law.density.drop(self.edges, gap, self._power)
        at = self._phi(self._at(gap))
        rough = 16 * EPS * (2 + np.abs(at) + np.abs(self._at_edges))
        return np.asarray(self._at_edges - at + rough)

    @cached_property
    def _room(self) -> Array:
        """D where ρ is the end of the support, from below."""
        room = self._end - self.edges
        room = room * (self._end + self.edges) if self._power == 2 else room
        return np.asarray(room * (1 - 4 * EPS))


def _bend_of_table(v: Array, g: Array) -> int:
    """1 (−1) if a table of log φ is convex (concave) in v, up to rounding; 0 if it is neither.

    Neighbours tell of bends that are strong and narrow; points farther apart, whose roundings count
    for less, of those that are weak and wide. From every point both are looked at.
    """
    signs = {-1, 1}
    most = float(np.max(np.abs(g), initial=0.0))
    for apart in (1, 24):
        if v.size <= 2 * apart:
            continue
        width = v[apart:] - v[:-apart]
        slope = (g[apart:] - g[:-apart]) / width
        error = 64 * EPS * (1 + most) / width
        bend, error = slope[apart:] - slope[:-apart], error[apart:] + error[:-apart]
        signs -= {sign for sign in (-1, 1) if not np.all(sign * bend >= -error)}
    return max(signs, default=0)


@lru_cache(maxsize=16)
def levels(noise: RadialNoise) -> Levels:
    """The levels of a noise at unit scale."""
    return Levels(noise.unit)


class Falling(TradeOff):
    """T from below: every t gives a line, and the best ones are sought where they are needed."""

    bound = "lower"

    def __init__(self, stick: Callable[[float], float], first: Array) -> None:
        self._stick, self._first = stick, first
        self._known: dict[float, float] = {}

    def _h(self, t: float) -> float:
        size = abs(t)
        if size not in self._known:
            self._known[size] = min(max(self._stick(size) + ROUNDING, 0.0), 1.0)
        h = self._known[size]
        return h if t >= 0 else 1.0 - math.exp(t) * (1.0 - h) + 4 * EPS

    @cached_property
    def _lines(self) -> Lines:
        between = np.linspace(0, self._first.size - 1, max(LINES, 8 * self._first.size))
        t = np.exp(np.interp(between, np.arange(self._first.size), np.log(self._first)))
        h = np.array([self._h(float(value)) for value in t])
        other = 1.0 - np.exp(-t) * (1.0 - h) + 4 * EPS
        return Lines(np.concatenate([-t[::-1], t]), np.concatenate([other[::-1], h]), "lower")

    def beta(self, alpha: ArrayLike) -> Array:
        def value(a: float) -> float:
            return self._highest(lambda t: 1.0 - self._h(t) - math.exp(t) * a)[1]

        return self._each(alpha, value, self._lines.beta if np.size(alpha) > FEW else None)

    def alpha(self, beta: ArrayLike) -> Array:
        def value(b: float) -> float:
            return self.best_for(b)[1]

        return self._each(beta, value, self._lines.alpha if np.size(beta) > FEW else None)

    def best_for(self, beta: float) -> tuple[float, float]:
        """The t whose line shows most at this β, and the α that it shows."""
        return self._highest(lambda t: (1.0 - beta - self._h(t)) * math.exp(-t))

    @staticmethod
    def _each(
        at: ArrayLike, value: Callable[[float], float], many: Callable[[ArrayLike], Array] | None
    ) -> Array:
        if many is not None:
            return many(at)
        values = [value(float(place)) for place in np.ravel(at)]
        return np.clip(np.reshape(values, np.shape(at)), 0.0, 1.0)

    def _highest(self, score: Callable[[float], float]) -> tuple[float, float]:
        """About the best t and its score; any t is a valid line.

        H is convex in e^t, so a score rises up to its best t and falls beyond it. The wide grid is
        looked at as a whole: it serves densities whose L has atoms, where the best t is a corner.
        """
        from scipy.optimize import minimize_scalar

        if self._first is WIDE:
            return maximise(
                score, [t for distance in WIDE.tolist() for t in (-distance, distance)], 6
            )
        grid = np.concatenate([-self._first[::-1], self._first])
        tried: dict[float, float] = {}

        def loss(place: float) -> float:
            t = float(np.interp(place, np.arange(grid.size), grid))
            if t not in tried:
                tried[t] = score(t)
            return -tried[t]

        low, high = 0, grid.size - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if loss(middle) <= loss(middle + 1) else (middle + 1, high)
        around = (max(low - 1, 0), min(low + 1, grid.size - 1))
        minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": NEAR})
        return max(tried.items(), key=lambda pair: pair[1])


def _two_sided(levels: Levels, chance: Chance) -> Callable[[float], float]:
    """H(t) = 1 − P(L ≥ −t) − e^t·P(L > t) from above; `chance` is P(‖z − δ‖ < ρ | r) in a cell."""

    def part(t: float) -> float:
        return float(np.sum(levels.mass * chance(*levels.gaps(t))))

    return lambda t: 1.0 - part(-t) - math.exp(t) * part(t)


def _finite(shift: float) -> None:
    if not math.isfinite(shift):
        raise RadiusError(f"shift={shift!r} must be a finite number, for example 0.5")


def falls(noise: RadialNoise) -> bool:
    """Whether φ never rises with the length: by its formula, or as far as a fine table shows."""
    return noise.unit_length.by_formula or levels(noise.unit).falls


def rounds_outward(noise: RadialNoise) -> bool:
    """Whether the shape of φ is known by formula and every mass is rounded outwards."""
    return noise.unit_length.flat or levels(noise.unit).outward


def ball_chance(levels: Levels, s: float, *, above: bool = False) -> Chance:
    """P(‖z − δ‖₂ < ρ | ‖z‖₂ = r), ‖δ‖₂ = s: the least in each cell, D as `Levels.gaps` has it.

    cos of the angle between z and δ must exceed x = (s² − D)/(2sr). `above`: the most in each cell,
    from above, for D below left = right.
    """
    angle, a = angle_law(levels.dim), levels.edges[:-1]
    sign, extreme = (-1, np.minimum) if above else (1, np.maximum)

    def over(gap: Array) -> Array:
        # s² and the difference are two roundings, D has none
        return np.asarray(s * s - gap + sign * 4 * EPS * (s * s + np.abs(gap)))

    def chance(left: Array, right: Array, at: Array) -> Array:
        first = over(left)
        second = first if right is left else over(right)
        return angle.beyond(extreme(first / (2 * s * a), second / (2 * s * at)), above=above)

    return chance


def cross_chance(levels: Levels, s: float, *, above: bool = False) -> Chance:
    """The same in ℓ1, δ along one coordinate and D = ρ − r.

    ‖z − δ‖₁ − ‖z‖₁ = |z₁ − s| − |z₁| stays below D where z₁ > (s − D)/2, if −s < D ≤ s; and
    P(z₁ > c | r) = (1 − c/r)^(d−1)/2.
    """
    a, power = levels.edges[:-1], levels.dim - 1
    sign, extreme = (-1, np.minimum) if above else (1, np.maximum)

    def share(gap: Array, r: Array) -> Array:
        return 0.5 * np.maximum(s - gap, 0.0) / r * (1 + sign * 4 * EPS)

    def chance(left: Array, right: Array, at: Array) -> Array:
        part = np.minimum(extreme(share(left, a), share(right, at)), 1.0)
        with np.errstate(divide="ignore"):
            half = 0.5 * np.exp(power * np.log1p(-part)) * (1 - sign * CLOSED)
        return np.where(right > s, 1.0, np.where(right > -s, half, 0.0))

    return chance


def ball_tradeoff(noise: RadialNoise, shift: float) -> TradeOff:
    """T of φ(‖z‖₂) and its shift by a δ of ℓ2 length `shift`, from below."""
    _finite(shift)
    if shift == 0:
        return Lines(np.zeros(1), np.zeros(1), "exact")
    s = abs(shift) / noise.scale
    if noise.unit_length.flat:
        # L is 0 on the overlap of two balls and infinite elsewhere: T(α) = (overlap − α)₊
        return Lines(np.zeros(1), 1.0 - _overlap(noise.dim, np.array([s])) + 2 * EPS, "lower")
    return _make_ball(noise.unit, s)


def _make_ball(unit: RadialNoise, s: float) -> Falling:
    """The same for noise at unit scale that is no uniform ball, and s > 0."""
    table = levels(unit)
    # t in units of the deviation of L, about s·slope/√d
    first = np.geomspace(0.02, 40, 12) / math.sqrt(unit.dim)
    stick = _two_sided(table, ball_chance(table, s))
    return Falling(stick, np.minimum(first * table.slope * s, 600.0))


def _overlap(dim: int, s: Array) -> Array:
    """The share of a unit ball in its shift by s, from below.

    Twice the part beyond s/2; one coordinate of a uniform ball in R^d has the law of the cosine of
    an angle in R^(d+2).
    """
    return 2 * angle_law(dim + 2).beyond(0.5 * s)


def ball_steps(noise: RadialNoise, first: float, last: float) -> tuple[Array, Array]:
    """(1 − p, r), r proved at p in the binary case, rising: 0.02 % apart from `first` to `last`.

    For each t, 1 − H is a mixture of overlaps of balls, and between two lengths of δ it lies below
    its chord by no more than `_sag` (docs/theory.md#curves-of-spherical-noise). So H is computed at
    some lengths only, and the chord, lowered by the sag, is read between them.
    """
    unit, scale = noise.unit, noise.scale
    start, end = first / scale / 16, last / scale
    if noise.unit_length.flat:
        s = start * np.exp(np.arange(0, math.log(end / start) + FINENESS, FINENESS))
        return np.maximum(_overlap(noise.dim, s) - 0.5 - 2 * EPS, 0.0), s * scale
    coarse = np.geomspace(start, end, 24)
    best = [_make_ball(unit, float(s)).best_for(0.5)[0] for s in coarse]
    log_t = np.log(np.maximum(best, 1e-300))  # `_sag` holds for t ≥ 0

    def stick(s: float, t: float) -> float:
        return _make_ball(unit, s)._h(t) if s > 0 else 0.0

    # nodes are as far apart as the sag allows, if H grows as fast as at the first of them
    rate = stick(start, max(best[0], 0.0)) / start
    missing = max(1.0 - float(np.sum(levels(unit).mass)), 0.0) + ROUNDING
    low, steps = 0.0, [(np.array([0.5]), np.array([0.0]))]
    while low < end:
        width = _width(levels(unit), max(low, start), end - low, LOSS * rate) if low else start
        high = low + width if width < end - low else end
        t = float(np.exp(np.interp(math.log(0.5 * (low + high)), np.log(coarse), log_t)))
        from_low = max(low, 1e-3 * start)
        s = from_low * np.exp(np.arange(0, math.log(high / from_low), FINENESS))
        s = np.append(np.minimum(s, high), high)
        share = (s - low) / (high - low)
        h = (1 - share) * stick(low, t) + share * stick(high, t)
        h += _sag(levels(unit), high - low) + missing
        steps.append((np.maximum(0.5 - h, 0.0) * math.exp(-t), s * scale))
        low = high
    alpha, radius = (np.concatenate(part) for part in zip(*steps, strict=True))
    return np.maximum.accumulate(alpha[::-1])[::-1], radius


def _width(levels: Levels, s: float, most: float, rate: float) -> float:
    """A step from s, up to `most` and WIDEST long, whose sag is at most `rate`·s or which is
    NARROWEST·s.
    """
    width = min(s, most, WIDEST * math.sqrt(levels.dim) / levels.slope)
    while width > NARROWEST * s and (sag := _sag(levels, width)) > rate * s:
        width *= min(max(0.5, math.sqrt(rate * s / sag)), 0.9)
    return max(width, min(NARROWEST * s, most))


def _sag(levels: Levels, width: float) -> float:
    """By how much 1 − H may lie below its chord between two lengths of δ, at any t ≥ 0.

    The ball of a mixture is longer than z, and what it is charged falls with its radius, so that
    the cells of ‖z‖ serve, each at its left edge; the caller charges 1 for what is in no cell.
    """
    a, dim = levels.edges[:-1], levels.dim
    disc = density_at_zero(dim + 2)
    if dim == 2:
        each = np.sqrt(2 * width / a) * width * disc / (4 * a)
    else:
        y = 1 / math.sqrt(dim - 2)
        peak = y * (1 - y * y) ** ((dim - 3) / 2)
        each = (width / a) ** 2 * (disc * (dim - 1) * peak / 8)
    return float(np.minimum(each, 1.0) @ levels.mass)


def cross_tradeoff(noise: RadialNoise, shift: float) -> TradeOff:
    """T of φ(‖z‖₁) and its shift by `shift` along one coordinate, from below."""
    _finite(shift)
    table = levels(noise.unit)
    return Falling(_two_sided(table, cross_chance(table, abs(shift) / noise.scale)), WIDE)


def cube_tradeoff(noise: RadialNoise, shifts: Iterable[tuple[float, int]]) -> TradeOff:
    """T of φ(‖z‖_∞) and its shift by δ, given as (size, count) of coordinates, from below."""
    sizes = [(abs(size) / noise.scale, count) for size, count in shifts if size]

    def log_overlap(b: Array, gap: Array) -> Array:
        total = np.zeros(b.shape)
        with np.errstate(divide="ignore"):
            for size, count in sizes:
                share = np.maximum(size - gap, 0.0) / (2 * b) * (1 + 4 * EPS)
                total += count * np.log1p(-np.minimum(share, 1.0))
        return total

    _finite(sum(size for size, _ in sizes))
    return cube_levels_tradeoff(noise, log_overlap)


def cube_levels_tradeoff(
    noise: RadialNoise, log_overlap: Callable[[Array, Array], Array]
) -> TradeOff:
    """T from below for φ(‖z‖_∞), a mixture of uniform cubes, by the overlaps of its cubes.

    ∫ min(q, e^t·p) = E_b Π(1 − (|δ_i| − D)₊/2b)₊, where b is the half side of the cube under Q and
    b + D that of the same level under e^t·p. `log_overlap(b, D)` must be at most the log of that
    product, up to 5 roundings of itself, and grow with b and D: cells count at their left, with
    their least D. In units of the noise's scale.
    """
    table = levels(noise.unit)

    def stick(t: float) -> float:
        gap = np.maximum(table.least_gap(-t), 0.0)
        overlap = np.exp(log_overlap(table.edges[:-1], gap)) * (1 - CLOSED)
        return 1.0 - float(np.sum(table.mixed * overlap))

    return Falling(stick, WIDE)
