"""What proofs take from floating point, enclosed by Arb's ball arithmetic (python-flint).

Every number is compared with an interval that holds the true one; the charge that stands for its
error (docs/theory.md#rounding-charges) must be at least the error. A few cases of each kind are
quick; `test_the_whole_campaign` has more than ten thousand.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from unicr import noise
from unicr.noise import IID
from unicr.radius import certified_radius
from unicr.radius.bellman._chord import bound_excess
from unicr.radius.bellman._kernel import LONG_UNIT, PARTS, Profile
from unicr.radius.bellman._stencil import POINTS, find_stencils
from unicr.radius.bellman._verify import KERNEL_ROUNDING
from unicr.sample import integer_law
from unicr.tradeoff import RatioLaw, compose, make_ratio_law
from unicr.tradeoff._compose import OUTSIDE_WINDOW, ROUNDING_EACH
from unicr.tradeoff._compose import ROUNDING as COMPOSED
from unicr.tradeoff._ratio import EPS, MASS_UNITS, UNSURE_MASS, _refine
from unicr.values import Array

ctx.prec = 200
Function = Callable[[arb], arb]


class Exact:
    """A law in ball arithmetic: the tail P(X > z) for z ≥ 0 and log p(z), even unless said."""

    def __init__(self, tail: Function, log: Function) -> None:
        self._tail, self.log = tail, log

    def sf(self, z: arb) -> arb:
        """P(X > z)."""
        return self._tail(z) if z >= 0 else 1 - self._tail(-z)

    def mass(self, a: arb, b: arb) -> arb:
        """P(a < X ≤ b) without cancellation between the tails."""
        if a >= 0:
            return self._tail(a) - self._tail(b)
        return self._tail(-b) - self._tail(-a) if b <= 0 else 1 - self._tail(b) - self._tail(-a)


class ExactPieces(Exact):
    """A table: exponentials between its knots, integrated piece by piece."""

    def __init__(self, one: IID) -> None:
        own = one.unit_law.pieces  # type: ignore[attr-defined]
        self.own = own
        n = own.width.size
        self.knots = [arb(float(x)) for x in own.knots]
        self.start = [arb(float(x)) for x in own.start]
        self.slope = [
            (arb(float(own.end[i])) - self.start[i]) / (self.knots[i + 1] - self.knots[i])
            if math.isfinite(own.start[i])
            else arb(0)
            for i in range(n)
        ]
        self.alive = np.isfinite(own.start)
        self.rates = own.rates
        whole = [self._piece(i, self.knots[i], self.knots[i + 1]) for i in range(n)]
        left = self.start[0].exp() / self.rates[0] if math.isfinite(self.rates[0]) else arb(0)
        last = arb(float(own.end[-1])).exp()
        right = -last / self.rates[1] if math.isfinite(self.rates[1]) else arb(0)
        self.right = list(itertools.accumulate([right, *whole[::-1]]))[::-1]
        self.left = list(itertools.accumulate([left, *whole]))
        self.total = self.left[-1] + right

    def _piece(self, i: int, a: arb, b: arb) -> arb:
        if not self.alive[i]:
            return arb(0)
        s, height = self.slope[i], (self.start[i] + self.slope[i] * (a - self.knots[i])).exp()
        return height * (b - a) if s == 0 else height * ((s * (b - a)).expm1()) / s

    def _find(self, z: arb) -> int:
        return int(np.searchsorted(self.own.knots, float(z.mid()), side="right")) - 1

    def log(self, z: arb) -> arb:
        i = self._find(z)
        if i < 0:
            return self.start[0] + self.rates[0] * (z - self.knots[0]) - self.total.log()
        if i >= len(self.slope):
            end = arb(float(self.own.end[-1]))
            return end + self.rates[1] * (z - self.knots[-1]) - self.total.log()
        return self.start[i] + self.slope[i] * (z - self.knots[i]) - self.total.log()

    def sf(self, z: arb) -> arb:
        i = self._find(z)
        if i >= len(self.slope):
            return -self.log(z).exp() / self.rates[1] if math.isfinite(self.rates[1]) else arb(0)
        if i < 0:
            left = math.isfinite(self.rates[0])
            return 1 - (self.log(z).exp() / self.rates[0] if left else arb(0))
        return (self.right[i + 1] + self._piece(i, z, self.knots[i + 1])) / self.total

    def mass(self, a: arb, b: arb) -> arb:
        return self.sf(a) - self.sf(b)


def gennorm(beta: float) -> Exact:
    order, b = 1 / arb(beta), arb(beta)
    log_norm = (2 * (1 + order).gamma()).log()

    def tail(z: arb) -> arb:
        return ((z**b).gamma_upper(order, regularized=1) if z > 0 else arb(1)) / 2

    return Exact(tail, lambda z: -(abs(z) ** b) - log_norm)


def gaussian() -> Exact:
    half = arb(2 * arb.pi()).sqrt().log()
    return Exact(lambda z: (z / arb(2).sqrt()).erfc() / 2, lambda z: -z * z / 2 - half)


def cauchy() -> Exact:
    return Exact(
        lambda z: arb(1) / 2 - z.atan() / arb.pi(), lambda z: -(1 + z * z).log() - arb.pi().log()
    )


def pareto(beta: float) -> Exact:
    b = arb(beta)
    return Exact(
        lambda z: (1 + z) ** -b / 2, lambda z: (b / 2).log() - (b + 1) * (1 + abs(z)).log()
    )


def sech() -> Exact:
    return Exact(lambda z: 2 / arb.pi() * (-z).exp().atan(), lambda z: (z.sech() / arb.pi()).log())


def lapgauss(beta: float) -> Exact:
    b, root = arb(beta), arb.pi().sqrt()
    mass = 2 * b + (1 - b) * root
    return Exact(
        lambda z: (b * (-z).exp() + (1 - b) * root / 2 * z.erfc()) / mass,
        lambda z: ((b * (-abs(z)).exp() + (1 - b) * (-z * z).exp()) / mass).log(),
    )


def expmix(beta: float) -> Exact:
    b, c = arb(beta), 1 - arb(beta)
    root, shift = c.sqrt(), arb(beta) / (2 * (1 - arb(beta)).sqrt())

    def raw(z: arb) -> arb:
        return (shift * shift).exp() * arb.pi().sqrt() / (2 * root) * (root * z + shift).erfc()

    half = raw(arb(0))
    return Exact(
        lambda z: raw(z) / (2 * half), lambda z: -abs(z) * (b + c * abs(z)) - (2 * half).log()
    )


FORMULAS: dict[str, Callable[..., Exact]] = {
    "gaussian(sigma=1)": gaussian,
    "cauchy(scale=1)": cauchy,
    "sech(scale=1)": sech,
    "laplace(scale=1)": lambda: gennorm(1.0),
}
RANGED: dict[str, tuple[Callable[[float], Exact], tuple[float, float]]] = {
    "gennorm": (gennorm, (0.3, 12.0)),
    "pareto": (pareto, (0.6, 30.0)),
    "lapgauss": (lapgauss, (0.05, 0.95)),
    "expmix": (expmix, (0.05, 0.95)),
}


def random_family(rng: np.random.Generator) -> tuple[IID, Exact]:
    """A built-in family with random numbers, and its law in balls."""
    names = [*FORMULAS, *RANGED]
    name = names[int(rng.integers(len(names)))]
    if name in FORMULAS:
        return parse(name), FORMULAS[name]()
    make, (low, high) = RANGED[name]
    beta = round(float(rng.uniform(low, high)), 3)
    return parse(f"{name}(beta={beta}, scale=1)"), make(beta)


def parse(text: str) -> IID:
    one = noise.parse(text).iid
    assert one is not None
    return one


def random_table(rng: np.random.Generator) -> tuple[IID, Exact]:
    """A density of somebody's own: bumps, notches, kinks, ends."""
    a, b, c = rng.uniform(-2, 2), rng.uniform(0.05, 1.5), rng.uniform(0, 1)
    power = rng.uniform(0.7, 4)

    def log_density(x: Array) -> Array:
        bump = c * np.exp(-0.5 * ((x - a) / b) ** 2)
        result: Array = -(np.abs(x) ** power) + np.log1p(bump * (1 if rng_sign > 0 else -0.7))
        return result

    rng_sign = int(rng.integers(2)) * 2 - 1
    kind = int(rng.integers(3))
    if kind == 0:
        one = noise.from_density(log_density)
    elif kind == 1:
        one = noise.from_density(log_density, support=(-1.5, math.inf))
    else:
        one = noise.from_scipy(stats.t(3 + 5 * c)).truncated(-2 - b, 3)
    return one, ExactPieces(one)


def check_cells(one: IID, law: Exact, shift: float, rng: np.random.Generator, most: int) -> int:
    """Masses of cells within their charge, and the log-ratio inside their ranges, everywhere."""
    cells, _ = _refine(one, shift, 1e-3)
    some = np.flatnonzero((cells.p > UNSURE_MASS) & (cells.q > UNSURE_MASS))
    some = rng.permutation(some)[:most]
    u = arb(shift)
    for i in some.tolist():
        a, b = arb(float(cells.left[i])), arb(float(cells.right[i]))
        for found, low, high in ((cells.p[i], a, b), (cells.q[i], a - u, b - u)):
            true = law.mass(low, high)
            # the smaller of both tails, before digits of 1 − tail are lost
            tail = max(min(float(t.mid()) for t in (law.sf(e), 1 - law.sf(e))) for e in (low, high))
            # an edge that was moved is right to a rounding
            edge = (
                2
                * EPS
                * (abs(float(b.mid())) + abs(shift))
                * max(float(law.log(end).exp().mid()) for end in (low, high))
            )
            error = float((arb(float(found)) - true).abs_upper())
            assert error <= MASS_UNITS * EPS * tail + edge, (one, shift, a, b, error, tail, edge)
        if cells.contradicted[i]:
            continue
        for share in rng.uniform(0.001, 0.999, 2):
            z = arb(float(cells.left[i] + share * (cells.right[i] - cells.left[i])))
            ratio = law.log(z - u) - law.log(z)
            assert not ratio < arb(float(cells.low[i]))
            assert not ratio > arb(float(cells.high[i]))
    return int(some.size)


def check_excess(one: IID, law: Exact, rng: np.random.Generator) -> int:
    """No event lies above its chord by more than χ: intervals are events."""
    width, share = 10 ** rng.uniform(-4, 0.5), float(rng.choice([0.5, 0.25, 0.4]))
    centre, half = float(one.ppf(rng.uniform(0.02, 0.98))), width * 10 ** rng.uniform(-1, 1)
    event = [arb(centre - half), arb(centre + half)]
    back, on = arb(share) * arb(width), (1 - arb(share)) * arb(width)
    middle, left, right = (
        law.sf(event[0] + move) - law.sf(event[1] + move) for move in (arb(0), back, -on)
    )
    excess = middle - (1 - arb(share)) * left - arb(share) * right
    assert not excess > arb(bound_excess(one, width))
    return 1


def check_closed_form(one: IID, law: Exact, rng: np.random.Generator) -> int:
    """(b) and (d): F at the radius is at most p_A, also a hair above ½."""
    p_a = 0.5 + 10 ** rng.uniform(-12, -0.31) if rng.integers(2) else 1 - 10 ** rng.uniform(-12, -1)
    found = certified_radius(one, 1, 3, p_a=p_a)
    if not found.theorem.startswith(("(b)", "(d)")):
        return 0
    assert not law.sf(arb(found.proved)) < 1 - arb(p_a)
    return 1


def check_uniform(rng: np.random.Generator) -> int:
    """(k): the overlap of boxes at the radius is at least 1 − (p_A − p_B)/2."""
    dim = int(rng.choice([1, 3, 784, 150_528]))
    p_a = float(rng.uniform(0.5001, 0.999999))
    p_b = float(rng.uniform(0, 1 - p_a))
    radius = certified_radius(noise.uniform(scale=1), "inf", dim, p_a=p_a, p_b=p_b).proved
    overlap = (1 - arb(radius) / 2) ** dim
    assert not overlap < 1 - (arb(p_a) - arb(p_b)) / 2
    return 1


def check_composition(rng: np.random.Generator) -> int:
    """H of a sum of two-point log-ratios is a binomial sum: within the charge of a composition."""
    count = int(rng.choice([2, 7, 60, 900]))
    u = float(rng.uniform(0.3, 2)) / math.sqrt(count)
    high = 1 / (1 + math.exp(-u))  # randomised response: L = ±u
    law = RatioLaw(np.array([-u, u]), np.array([1 - high, high]), 0.0)
    lines = compose([(law, count)])
    charge = COMPOSED + 2 * OUTSIDE_WINDOW + count * ROUNDING_EACH
    q = [arb(float(mass)) for mass in law.mass]
    q = [one / (q[0] + q[1]) for one in q]
    binomials = list(
        itertools.accumulate(range(count), lambda c, k: c * (count - k) // (k + 1), initial=1)
    )
    inside = np.flatnonzero((lines.t > -4) & (lines.t < 4))
    for i in rng.permutation(inside)[:3].tolist():
        t = arb(float(lines.t[i]))
        true = arb(0)
        for k, ways in enumerate(binomials):
            gain = 1 - (t - (2 * k - count) * arb(u)).exp()
            if gain > 0:
                true += ways * q[1] ** k * q[0] ** (count - k) * gain
        # the charge is inside h: without it h is the sum itself, or above it by what spreads it
        assert not true > arb(float(lines.h[i]))
        assert not arb(float(lines.h[i]) - charge) > true + arb(1e-3)
    return 1


def check_sampler(one: IID, law: Exact, rng: np.random.Generator) -> int:
    """τ is at least the total variation between the thresholds and the law, outcome by outcome."""
    step = float(2.0 ** -rng.integers(4, 9))
    found = integer_law(one, step)
    ends = [0, *(int(end) for end in found.ends), 1 << 64]
    apart, seen = arb(0), set()
    for k in range(found.starts.size):
        outcome = (int(found.starts[k]), int(found.widths[k]))
        if outcome in seen:
            continue
        seen.add(outcome)
        same = (found.starts == outcome[0]) & (found.widths == outcome[1])
        drawn = sum(ends[i + 1] - ends[i] for i in np.flatnonzero(same).tolist())
        low = (arb(outcome[0]) - 0.5) * arb(step)
        high = (arb(outcome[0] + 2 ** outcome[1]) - 0.5) * arb(step)
        apart += abs(arb(drawn) / arb(2) ** 64 - law.mass(low, high))
    assert not apart / 2 > arb(found.tau)
    return int(found.starts.size)


def check_stencil(rng: np.random.Generator) -> int:
    """A normal density between two mesh points lies below its stencil, wherever one looks."""
    step, parts = float(10 ** rng.uniform(-3, -1)), 4
    smooth = step * float(rng.choice([2.5, 3.0]))
    table = find_stencils(step, smooth, parts)
    m = int(rng.integers(parts))
    h, s = arb(step), arb(smooth)

    def bell(z: arb) -> arb:
        return (-(z * z) / (2 * s * s)).exp() / (s * (2 * arb.pi()).sqrt())

    def below(z: arb) -> arb:
        return (-z / (s * arb(2).sqrt())).erfc() / 2

    def smear(low: arb, high: arb, y: arb) -> tuple[arb, arb]:
        """∫ φ_s(y − v) dv and ∫ e^v φ_s(y − v) dv."""
        tilt = (y + s * s / 2).exp()
        tilted = tilt * (below(high - y - s * s) - below(low - y - s * s))
        return below(high - y) - below(low - y), tilted

    def tent(j: int, y: arb) -> arb:
        """1 at jh, 0 at its neighbours, straight in e^v between; smeared, over h."""
        flat, tilted = smear((j - 1) * h, j * h, y)
        rising = (tilted * (-(j - 1) * h).exp() - flat) / h.expm1()
        flat, tilted = smear(j * h, (j + 1) * h, y)
        falling = flat - (tilted * (-j * h).exp() - flat) / h.expm1()
        return (rising + falling) / h

    for x in rng.uniform(-30, 30, 4):
        y = arb(float(x)) * s
        terms = [
            arb(float(c)) * tent(int(j), y) for j, c in zip(POINTS, table[m], strict=True) if c != 0
        ]
        assert not bell(y - m * h / parts) > sum(terms, arb(0))
    return 1


def check_kernel(one: IID, shift: float, rng: np.random.Generator) -> int:
    """∫K over parts of a mesh cell, term by term: within the charge for K at any point."""
    check_profile(make_ratio_law(one, shift, 3e-4), float(10 ** rng.uniform(-3, -1.5)), rng)
    return 1


def check_profile(law: RatioLaw, step: float, rng: np.random.Generator) -> None:
    """See `check_kernel`."""
    profile = Profile(law, step, 60)
    width = arb(step) / PARTS
    charge = KERNEL_ROUNDING + 8 * LONG_UNIT * law.loss.size
    for side, sign in ((profile.up, 1), (profile.down, -1)):
        for i in rng.integers(len(side[0]), size=2).tolist():
            low, high = i * width, (i + 1) * width
            true = lost = arb(0)
            for mass, loss in zip(law.mass.tolist(), law.loss.tolist(), strict=True):
                q, far = arb(mass), sign * arb(loss)
                p = q * (-arb(loss)).exp()
                lost += p
                end = high if far >= high else far
                if end > low:
                    # ∫ ±(q − e^w p) dw, |w| from `low` to `end`
                    true += sign * q * (end - low)
                    true -= p * ((sign * end).exp() - (sign * low).exp())
            if sign < 0 and lost < 1:
                true += (1 - lost) * ((-low).exp() - (-high).exp())
            error = abs(arb(float(side[0][i])) - true) / width
            assert not error > arb(charge), (step, i, sign, error)


def run(count: int, seed: int, most: int) -> dict[str, int]:
    """So many random cases of every kind: how many numbers were enclosed, by kind."""
    rng = np.random.default_rng(seed)
    kinds = ("cells", "excess", "closed", "uniform", "stencils", "kernels", "composed", "sampler")
    seen = dict.fromkeys(kinds, 0)
    for k in range(count):
        one, law = random_table(rng) if k % 3 == 2 else random_family(rng)
        shift = float(10 ** rng.uniform(-4, 0.7)) * (1 if rng.integers(2) else -1)
        seen["cells"] += check_cells(one, law, shift, rng, most)
        seen["excess"] += check_excess(one, law, rng)
        if one.facts.symmetric and one.facts.log_concave:
            seen["closed"] += check_closed_form(one, law, rng)
        seen["uniform"] += check_uniform(rng)
        seen["stencils"] += check_stencil(rng)
        if k % 4 == 0:
            seen["kernels"] += check_kernel(one, shift, rng)
            seen["composed"] += check_composition(rng)
            seen["sampler"] += check_sampler(one, law, rng)
    return seen


def test_a_sample_of_what_proofs_take_from_floating_point() -> None:
    seen: dict[str, Any] = run(9, 1, 12)
    assert all(seen.values())


@pytest.mark.parametrize("step", [1e-2, 2e-4, 5e-6])
def test_mass_that_only_the_first_law_has_is_right_within_every_part(step: float) -> None:
    """A fifth of P lies where Q has nothing; parts of a mesh cell may be as short as one likes."""
    law = RatioLaw(np.array([-0.5, 0.1, 0.4]), np.array([0.3, 0.1, 0.4]), 0.2)
    p = float(np.sum(law.mass * np.exp(-law.loss)))
    law = RatioLaw(law.loss + math.log(p / 0.8), law.mass, law.infinite)
    for seed in range(4):
        check_profile(law, step, np.random.default_rng(seed))


@pytest.mark.slow
def test_the_whole_campaign() -> None:
    seen = run(400, 2, 40)
    assert sum(seen.values()) > 10_000
    assert min(seen.values()) > 50
