"""A density that is straight in its logarithm, piece by piece: its numbers against long integers
and 40 digits, its facts against tables made to miss them by a hair.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest

from unicr.law._pieces import EPS, Pieces, mean_exponential
from unicr.law._table import describe
from unicr.values import Array

INF = math.inf
ENDS = (INF, -INF)


def make(
    knots: list[float], start: list[float], end: list[float], rates: tuple[float, float] = ENDS
) -> Pieces:
    return Pieces(np.array(knots), np.array(start), np.array(end), rates)


def draw_pieces(rng: np.random.Generator, *, tails: bool, hole: bool) -> Pieces:
    """Pieces with jumps at most knots."""
    knots = np.cumsum(rng.uniform(0.05, 1.0, 9)) + rng.normal(0, 3)
    start, end = rng.normal(0, 1.5, (2, 8))
    end[2], start[5] = start[3], end[4]
    if hole:
        start[6], end[6] = -INF, -INF
    rates = (float(rng.uniform(0.3, 3)), -float(rng.uniform(0.3, 3))) if tails else ENDS
    return Pieces(knots, start, end, rates)


class Exact:
    """The same law with 40 digits."""

    def __init__(self, own: Pieces) -> None:
        self.own = own
        mp.mp.dps = 40
        self.knots = [mp.mpf(float(x)) for x in own.knots]
        self.total = self.below(mp.mpf(INF))

    def log_weight(self, x: mp.mpf, i: int) -> mp.mpf:
        """The log of what is stored at x, in piece i."""
        own, n = self.own, len(self.own.start)
        if i < 0 or i >= n:
            rate, at = own.rates[i >= n], self.knots[-1 if i >= n else 0]
            log = own.end[-1] if i >= n else own.start[0]
            return mp.mpf(-INF) if math.isinf(rate) else mp.mpf(log) + mp.mpf(rate) * (x - at)
        if own.start[i] == -INF:
            return mp.mpf(-INF)
        first, last = mp.mpf(float(own.start[i])), mp.mpf(float(own.end[i]))
        share = (x - self.knots[i]) / (self.knots[i + 1] - self.knots[i])
        return first + share * (last - first)

    def find(self, x: mp.mpf) -> int:
        return sum(knot <= x for knot in self.knots) - 1

    def below(self, x: mp.mpf) -> mp.mpf:
        """The weight below x."""
        n, total = len(self.own.start), mp.mpf(0)
        for i in range(-1, n + 1):
            low = self.knots[i] if i >= 0 else -mp.inf
            high = min(x, self.knots[i + 1]) if i < n else x
            if low < high:
                total += self.weigh(low, high, i)
        return total

    def weigh(self, low: mp.mpf, high: mp.mpf, i: int) -> mp.mpf:
        at = high if mp.isinf(low) else low
        log = self.log_weight(at, i)
        if mp.isinf(log):
            return mp.mpf(0)
        slope = self.log_weight(at + 1, i) - log
        if slope == 0:
            return mp.exp(log) * (high - low)
        if mp.isinf(low) or mp.isinf(high):
            return mp.exp(log) / abs(slope)
        return mp.exp(log) * mp.expm1(slope * (high - low)) / slope

    def mass(self, low: float, high: float) -> mp.mpf:
        """P(low < X ≤ high), cell by cell."""
        edges = [mp.mpf(low), *(x for x in self.knots if low < x < high), mp.mpf(high)]
        parts = [
            self.weigh(a, b, self.find(a if mp.isinf(b) or not mp.isinf(a) else b - 1))
            for a, b in itertools.pairwise(edges)
        ]
        return mp.fsum(parts) / self.total

    def log_ratio(self, z: mp.mpf, shift: mp.mpf) -> mp.mpf:
        """L, nan where neither copy has mass."""
        there, here = (self.log_weight(x, self.find(x)) for x in (z - shift, z))
        return mp.nan if mp.isinf(there) and mp.isinf(here) else there - here


LAWS = {
    f"{'tails' if tails else 'ends'}{' hole' if hole else ''} {seed}": (tails, hole, seed)
    for tails in (True, False)
    for hole in (True, False)
    for seed in range(3)
}


def drawn(name: str) -> Pieces:
    tails, hole, seed = LAWS[name]
    return draw_pieces(np.random.default_rng(seed), tails=tails, hole=hole)


def test_the_mean_of_an_exponential_has_all_its_digits() -> None:
    y = np.concatenate([np.geomspace(1e-12, 30, 400), [9.99e-6, 1.001e-5]])
    for sign in (1.0, -1.0):
        got = mean_exponential(sign * y)
        for one, value in zip(y, got, strict=True):
            exact = mp.expm1(sign * mp.mpf(float(one))) / (sign * mp.mpf(float(one)))
            assert abs(mp.mpf(float(value)) / exact - 1) < 1e-15


@pytest.mark.parametrize("name", LAWS)
def test_masses_and_quantiles_have_all_their_digits(name: str) -> None:
    pieces = drawn(name)
    exact, rng = Exact(pieces), np.random.default_rng(5)
    low, high = float(pieces.knots[0]) - 1.5, float(pieces.knots[-1]) + 1.5
    ends = np.sort(rng.uniform(low, high, (40, 2)), axis=1)
    ends[:3] = [[-INF, low + 0.1], [high - 0.1, INF], [pieces.knots[2], pieces.knots[5]]]
    found = pieces.masses(ends[:, 0], ends[:, 1])
    for (a, b), mass in zip(ends.tolist(), found.tolist(), strict=True):
        true = exact.mass(a, b)
        assert abs(mass - float(true)) <= 64 * EPS * float(true)
    for x in ends[3:].ravel():
        assert float(pieces.cdf(x)) == pytest.approx(float(exact.mass(-INF, x)), rel=1e-14)
        assert float(pieces.sf(x)) == pytest.approx(float(exact.mass(x, INF)), rel=1e-14)
    u = np.array([1e-15, 1e-6, 0.03, 0.4, 0.77, 0.999])
    for back, there in ((pieces.cdf, pieces.ppf), (pieces.sf, pieces.isf)):
        place = there(u)
        rounding = 2 * np.spacing(np.abs(place)) * np.exp(pieces.logpdf(place))  # of x itself
        assert np.all(np.abs(back(place) - u) <= 1e-12 * u + rounding)


@pytest.mark.parametrize("name", LAWS)
def test_a_log_ratio_stays_in_its_range_everywhere_in_a_cell(name: str) -> None:
    """Looked at beside every knot of either copy, where it jumps and turns, and beside the ends of
    the cell, where it is often least or largest.
    """
    pieces = drawn(name)
    exact, rng = Exact(pieces), np.random.default_rng(6)
    for shift in (0.37, -1.21, 2.0**-20):
        moved = np.concatenate([pieces.knots, pieces.knots + shift])
        for _ in range(12):
            left, right = np.sort(rng.uniform(moved.min() - 1, moved.max() + 1, 2))
            low, high = pieces.bound_ratio(shift, np.array([left]), np.array([right]))
            looks = [left + 1e-9, right - 1e-9, *rng.uniform(left, right, 5)]
            for knot in moved:
                looks += [knot - 1e-9, knot + 1e-9]
            for z in looks:
                if left < z < right:
                    value = exact.log_ratio(mp.mpf(float(z)), mp.mpf(shift))
                    assert not (value < low[0])
                    assert not (value > high[0])


def test_facts_are_missed_by_a_hair() -> None:
    tent = make([-1.0, 0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], (2.0, -2.0))
    facts = describe(tent).facts
    assert facts.symmetric
    assert facts.log_concave
    assert facts.unimodal
    assert facts.positive
    hair = 2.0**-50
    tilted = make([-1.0, 0.0, 1.0], [-1.0, 0.0], [0.0, -1.0 + hair], (2.0, -2.0))
    assert not describe(tilted).facts.symmetric
    # slopes −1, then −1 + 2⁻⁵⁰: less than rounding of a difference of slopes would tell
    bent = make([0.0, 1.0, 2.0], [0.0, -1.0], [-1.0, -2.0 + hair], (1.0, -2.0))
    assert not describe(bent).facts.log_concave
    assert describe(bent).facts.unimodal
    dented = make([0.0, 1.0, 2.0], [0.0, -hair], [-hair, 0.0], (1.0, -1.0))
    assert not describe(dented).facts.unimodal
    assert not describe(dented).facts.log_concave
    shallow = make([-1.0, 0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], (0.5, -0.5))
    assert not describe(shallow).facts.log_concave
    stepped = make([-1.0, 0.0, 1.0], [0.0, -hair], [0.0, -hair])
    assert not describe(stepped).facts.log_concave
    hollow = make([-2.0, -1.0, 1.0, 2.0], [0.0, -INF, 0.0], [0.0, -INF, 0.0], (1.0, -1.0))
    assert not describe(hollow).facts.positive
    assert not describe(hollow).facts.unimodal
    assert not describe(make([0.0, 1.0], [0.0], [0.0], (1.0, -INF))).facts.positive


@pytest.mark.parametrize("name", LAWS)
def test_a_cut_law_is_the_law_given_that_it_lies_there(name: str) -> None:
    pieces = drawn(name)
    exact = Exact(pieces)
    low, high = float(pieces.knots[1]) + 0.01, float(pieces.knots[-2]) + 0.02
    for a, b in ((low, high), (-INF, high), (low, INF)):
        cut = pieces.cut(*(min(max(x, -1e2), 1e2) for x in (a, b)))
        whole = exact.mass(max(a, -1e2), min(b, 1e2))
        x = np.random.default_rng(3).uniform(low, high, 20)
        for at in x:
            share = exact.mass(max(a, -1e2), float(at)) / whole
            assert float(cut.cdf(at)) == pytest.approx(float(share), rel=1e-9)
        assert cut.support[0] >= max(a, -1e2, pieces.support[0])
        assert cut.support[1] <= min(b, 1e2, pieces.support[1])


@pytest.mark.parametrize("name", LAWS)
def test_how_a_law_bends(name: str) -> None:
    """Its variation, jumps, and falls of the slope against sums over looks beside every knot."""
    pieces = drawn(name)
    exact, curvature = Exact(pieces), pieces.curvature
    jump = fall = mp.mpf(0)
    tiny = mp.mpf(10) ** -30
    for knot in exact.knots:
        values, slopes = [], []
        for side in (-1, 1):
            i = exact.find(knot + side * tiny)
            log = exact.log_weight(knot, i)
            density = mp.mpf(0) if mp.isinf(log) else mp.exp(log) / exact.total
            step = mp.mpf(0) if density == 0 else exact.log_weight(knot + 1, i) - log
            values.append(density)
            slopes.append(density * step)
        jump += abs(values[1] - values[0])
        fall += max(slopes[0] - slopes[1], 0)
    assert curvature.jump == pytest.approx(float(jump), rel=1e-12)
    assert curvature.slope_fall == pytest.approx(float(fall), rel=1e-12)
    x: Array = np.sort(
        np.concatenate([
            np.linspace(pieces.knots[0] - 60, pieces.knots[-1] + 60, 20_001),
            *(np.nextafter(pieces.knots, way) for way in (-INF, INF)),
        ])
    )  # fmt: skip
    seen = float(np.sum(np.abs(np.diff(np.exp(pieces.logpdf(x))))))
    assert seen <= curvature.variation * (1 + 1e-9)
    assert curvature.variation <= seen * (1 + 1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_a_log_ratio_holds_beside_knots_that_meet_within_rounding(seed: int) -> None:
    """In doubles 0.1 + 0.2 is not 0.3: for a hair both sides of a knot and of a moved one count."""
    rng = np.random.default_rng(seed)
    knots = np.arange(1, 9) / 10
    pieces = Pieces(knots, rng.normal(0, 1.5, 7), rng.normal(0, 1.5, 7), (2.0, -3.0))
    exact, hair = Exact(pieces), mp.mpf(10) ** -30
    for shift in (0.2, -0.3, 0.4):
        own = exact.knots
        moved = [knot + mp.mpf(shift) for knot in own]
        middle = [(a + b) / 2 for a in own for b in moved if a != b and abs(a - b) < 1e-12]
        looks = [at + side * hair for at in own + moved + middle for side in (-1, 0, 1)]
        for at in {*own, *moved}:
            left, right = float(at) - 0.04, float(at) + 0.04
            (low,), (high,) = pieces.bound_ratio(shift, np.array([left]), np.array([right]))
            for z in looks:
                if left < z < right:
                    assert low <= exact.log_ratio(z, mp.mpf(shift)) <= high


@pytest.mark.parametrize("name", ["tails 0", "ends hole 2"])
def test_moments_are_those_of_every_piece_and_tail(name: str) -> None:
    pieces = drawn(name)
    exact = Exact(pieces)
    inner = list(itertools.pairwise(exact.knots))
    ends = [(-mp.inf, exact.knots[0]), *inner, (exact.knots[-1], mp.inf)]
    total = np.zeros(2)
    for i, (a, b) in enumerate(ends, -1):
        if not mp.isinf(exact.log_weight(b if mp.isinf(a) else a, i)):
            for k in (0, 1):
                total[k] += mp.quad(
                    lambda x, i=i, k=k: x ** (k + 1) * mp.exp(exact.log_weight(x, i)), [a, b]
                )
    found = [pieces.moment(1), pieces.moment(2)]
    assert found == pytest.approx((total / float(exact.total)).tolist(), rel=1e-11)


@pytest.mark.parametrize("name", ["tails 0", "ends 1"])
def test_a_piece_is_looked_at_from_its_inside(name: str) -> None:
    """At a jump its own side counts, to the last place; its mass is that of the piece."""
    pieces = drawn(name)
    left, right, mass = pieces.look(pieces.knots)
    np.testing.assert_array_equal(left, np.exp(pieces.start - pieces.log_total))
    np.testing.assert_array_equal(right, np.exp(pieces.end - pieces.log_total))
    np.testing.assert_allclose(mass, pieces.mass, rtol=1e-14)


def test_laws_that_differ_in_one_number_are_told_apart() -> None:
    """Curves are kept under this name: of two laws with one name, one would get the other's."""
    law = make([0.0, 1.0], [0.0], [-1.0], (1.0, -1.0))
    more = {name: np.nextafter(getattr(law, name), 2.0) for name in ("knots", "start", "end")}
    others = [replace(law, **{name: value}) for name, value in more.items()]
    others += [replace(law, rates=rates) for rates in ((1.0, -2.0), ENDS)]
    assert len({one.fingerprint for one in (law, *others)}) == 6


ONE_STEEP = ([-45.0, 0.0, 45.0], [-45.0, 0.0], [0.0, -45.0])
NEARLY_FLAT = ([-2.0, 0.0, 2.0], [0.0, 8e-6], [8e-6, 0.0])


@pytest.mark.parametrize("values", [ONE_STEEP, NEARLY_FLAT])
@pytest.mark.parametrize("away", [1e-15, 1e-12, 1e-6, 0.01, 0.2, 0.48, 0.4999])
def test_quantiles_keep_their_digits_from_the_nearer_end_of_a_piece(
    values: tuple[list[float], list[float], list[float]], away: float
) -> None:
    """The quantile of 1/2 − a, times the density, is a: radii near p_A = 1/2 rest on it."""
    own = make(*values)
    exact = Exact(own)
    for u in (0.5 - away, away):
        x = float(own.ppf(u))
        missed = abs(exact.below(mp.mpf(x)) / exact.total - mp.mpf(u))
        rounding = np.spacing(abs(own.knots[0])) * math.exp(float(own.logpdf(x)))
        assert missed <= 4 * EPS * u + min(rounding, 1.5 * EPS)
        assert float(own.isf(u)) == -x
