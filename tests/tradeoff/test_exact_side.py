"""Lower bounds of trade-off functions are below the exact ones: closed forms, no tolerance."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import accumulate

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from scipy import integrate, optimize, special

from unicr import noise
from unicr.noise import IID, from_radial_density
from unicr.norms import Norm
from unicr.radius import certified_radius
from unicr.tradeoff import ClosedForm, RatioLaw, compute_tradeoff, make_ratio_law
from unicr.tradeoff._compose import ROUNDING_EACH
from unicr.tradeoff._falling import _bend_of_table, cross_chance, levels
from unicr.tradeoff._ratio import _Cells, _make_finite
from unicr.tradeoff.internal import (
    ball_tradeoff,
    compute_margin,
    cross_tradeoff,
    cube_tradeoff,
    make_envelope,
    make_ratio_cells,
)
from unicr.values import Array

ALPHA = np.concatenate([np.geomspace(1e-9, 0.5, 25), np.linspace(0.55, 0.999, 12)])


@pytest.mark.parametrize("dim", [1, 2, 300])
def test_uniform_noise_overlaps_by_the_product_of_sides(dim: int) -> None:
    """T(α) = max(v − α, 0) with v = Π(1 − u/2λ), to sixty digits: none may be above."""
    rng = np.random.default_rng(dim)
    for _ in range(6):
        share = float(rng.random() ** 3) / dim
        with mpmath.workdps(60):
            exact = mpmath.power(1 - mpmath.mpf(share), dim)
            found = compute_tradeoff(noise.uniform(scale=0.5), [(share, dim)], closed=False)
            for alpha in (0.0, 0.3):
                beta, truth = float(found.beta(alpha)), exact - mpmath.mpf(alpha)
                assert beta <= max(truth, 0)
                assert beta >= max(truth, 0) - 1e-10
                half = float(found.alpha(0.5))
                assert half <= max(exact - mpmath.mpf(1) / 2, 0)


@pytest.mark.parametrize("dim", [1, 2, 9, 400, 1000, 100_000])
def test_gaussian_noise_by_composition_is_below_its_closed_form(dim: int) -> None:
    for length in (0.02, 0.7, 2.5):
        found = compute_tradeoff(
            noise.gaussian(sigma=1), [(length / math.sqrt(dim), dim)], closed=False
        )
        exact = special.ndtr(-special.ndtri(ALPHA) - length)
        beta = found.beta(ALPHA)
        assert np.all(beta <= exact)
        assert np.all(beta >= exact - 1e-4)
        back = special.ndtr(-special.ndtri(ALPHA) - length)
        assert np.all(found.alpha(ALPHA) <= back)


@pytest.mark.parametrize("text", ["laplace(scale=1)", "sech(scale=1)", "gennorm(beta=3, scale=1)"])
def test_one_coordinate_by_composition_is_below_its_closed_form(text: str) -> None:
    law = noise.parse(text)
    assert isinstance(law, IID)
    for u in (0.01, 0.6, -1.7):
        found, exact = compute_tradeoff(law, [(u, 1)], closed=False), ClosedForm(law, u)
        assert np.all(found.beta(ALPHA) <= exact.beta(ALPHA) * (1 + 1e-15))
        assert np.all(found.beta(ALPHA) >= exact.beta(ALPHA) - 1e-4)
        threshold = float(law.isf(0.3)) - abs(u)
        assert float(exact.beta(0.3)) == pytest.approx(float(law.cdf(threshold)), rel=1e-12)


def stick(law: IID, u: float, t: float) -> float:
    """∫(p(z − u) − e^t·p(z))₊ dz between all places where the difference changes sign."""

    def gap(z: float) -> float:
        return float(law.pdf(z - u)) - math.exp(t) * float(law.pdf(z))

    tail = special.ndtr(np.linspace(-7.4, 0, 3000))
    own = getattr(law.unit_law, "pieces", None)
    kinks = np.empty(0) if own is None else own.knots
    z = np.concatenate([law.ppf(tail), law.isf(tail), law.ppf(tail) + u, law.isf(tail) + u])
    z = np.unique([*z, *(b for b in (*law.breakpoints, *law.support) if math.isfinite(b))])
    z = np.unique([*z, *(b + u for b in law.breakpoints if math.isfinite(b)), *kinks, *(kinks + u)])
    value = law.pdf(z - u) - math.exp(t) * law.pdf(z)
    roots = [
        optimize.brentq(gap, z[i], z[i + 1], xtol=1e-14)
        for i in np.flatnonzero(value[:-1] * value[1:] < 0)
    ]
    edges = np.unique([*z[::8], *kinks, *(kinks + u), *roots, *law.breakpoints, z[-1]])
    edges = edges[np.isfinite(edges)]
    node, weight = np.polynomial.legendre.leggauss(16)
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    at = middle[:, None] + half[:, None] * node
    parts = (law.pdf(at - u) - math.exp(t) * law.pdf(at)) @ weight * half
    return float(np.sum(np.maximum(parts, 0.0)))


def two_bumps(x: Array) -> Array:
    return np.asarray(np.logaddexp(-0.5 * (x - 1) ** 2, -0.5 * (x / 0.3 + 3) ** 2))


@pytest.mark.parametrize("u", [0.03, 0.5, -2.0])
def test_the_atoms_of_any_density_are_easier_to_tell_apart(u: float) -> None:
    """H of the atoms is at least ∫(q − e^t·p)₊: a density of two bumps, where L is not monotone."""
    for law in (noise.from_density(two_bumps), noise.cauchy(scale=1)):
        atoms = make_ratio_law(law, u)
        for t in (-1.0, -0.1, -0.004, 0.0, 0.004, 0.3, 1.0):
            gain = np.maximum(-np.expm1(t - atoms.loss), 0.0)
            found = float(atoms.mass @ gain) + atoms.infinite
            exact = stick(law, u, t)
            assert found >= exact - 2e-13
            assert found <= exact + 1e-4 * abs(u) + 1e-9


@pytest.mark.parametrize("u", [0.2, -1.5])
def test_cells_hold_their_masses_and_all_of_the_line(u: float) -> None:
    for law in (
        noise.from_density(two_bumps),
        noise.uniform(scale=1),
        noise.pareto(beta=3, scale=1),
    ):
        cells = make_ratio_cells(law, u)
        with np.errstate(divide="ignore"):
            ratio = np.log(cells.q) - np.log(cells.p)
        assert np.all(cells.low <= ratio)
        assert np.all(ratio <= cells.high)
        assert float(np.sum(cells.q)) + cells.infinite == pytest.approx(1, abs=1e-12)
        atoms = cells.law()
        assert float(np.sum(atoms.mass)) + atoms.infinite == pytest.approx(1, abs=1e-12)
        assert float(np.sum(atoms.mass * np.exp(-atoms.loss))) <= 1 + 1e-12


def test_mass_where_the_ratio_is_infinite_is_told_apart_for_sure() -> None:
    """Cells whose ratio reaches ±∞: what P or Q cannot carry at the finite end goes there."""
    up, down = [0.1, 0.5, math.log(2.0), math.inf], [0.6, 0.3, -math.inf, -math.log(4.0)]
    both, lost = [0.3, 0.1, -math.inf, math.inf], [0.0, 0.1, 1.0, 2.0]
    p, q, low, high = (np.array(column) for column in zip(up, down, both, lost, strict=True))
    edges, right = np.zeros(4), np.zeros(4, dtype=bool)
    cells, infinite = _make_finite(_Cells(edges, edges, p, q, low, high, right))
    # up: Q keeps 2·p = .2 of .5 at L = log 2; the two last cells keep nothing
    assert infinite == pytest.approx(0.3 + 0.1 + 0.1, rel=1e-15)
    assert cells.q.tolist() == pytest.approx([0.2, 0.3], rel=1e-15)
    assert cells.p.tolist() == pytest.approx([0.1, 0.6], rel=1e-15)  # ratio −log 2 lies within
    assert np.all(cells.low <= np.log(cells.q / cells.p) + 1e-15)


def test_an_envelope_is_above_each_of_its_laws() -> None:
    law = noise.parse("laplace(scale=1).truncated(-0.5, 3)")
    assert isinstance(law, IID)
    both = [make_ratio_law(law, u) for u in (0.3, -0.3)]
    joint = make_envelope(both)
    for t in np.linspace(-1.2, 1.2, 97):
        sticks = [
            float(one.mass @ np.maximum(-np.expm1(t - one.loss), 0.0)) + one.infinite
            for one in (joint, *both)
        ]
        assert sticks[0] >= max(sticks[1:]) - 1e-12
        assert sticks[0] <= max(sticks[1:]) + 2e-3


class ExactSticks:
    """H(t) of a law in ball arithmetic."""

    def __init__(self, law: RatioLaw) -> None:
        ctx.prec = 150
        self.law = law
        mass = [arb(one) for one in law.mass.tolist()]
        lost = [q * (-arb(one)).exp() for q, one in zip(mass, law.loss.tolist(), strict=True)]
        self.above, self.weighted = (
            list(accumulate(one[::-1], initial=arb(0)))[::-1] for one in (mass, lost)
        )

    def __call__(self, t: float) -> arb:
        first = int(np.searchsorted(self.law.loss, t, side="right"))
        return self.above[first] - arb(t).exp() * self.weighted[first] + arb(self.law.infinite)


@pytest.mark.parametrize(
    ("text", "shift"),
    [
        ("laplace(scale=1).truncated(-0.5, 3)", 3e-3),
        ("scipy.gumbel_r(0,1)", 0.02),
        ("scipy.gamma(3)", 0.01),
    ],
)
def test_the_charge_of_an_envelope_pays_for_slopes_that_were_raised(
    text: str, shift: float
) -> None:
    """At nodes and between them, both sides enclosed: what lacks is within charge and roundings."""
    law = noise.parse(text).iid
    assert law is not None
    both = [make_ratio_law(law, u) for u in (shift, -shift)]
    joint = make_envelope(both)
    sticks, mine = [ExactSticks(one) for one in both], ExactSticks(joint)
    low, high = float(joint.loss[0]), float(joint.loss[-1])
    between = np.random.default_rng(1).uniform(low, high, 500)
    for t in [*joint.loss.tolist(), *between.tolist()]:
        for one in sticks:
            assert not one(t) - mine(t) > arb(joint.charge + ROUNDING_EACH)


@pytest.mark.parametrize("shift", [1e-5, 1e-4, 1e-3])
def test_what_is_composed_of_an_envelope_is_charged_too(shift: float) -> None:
    """A composition divides masses by their sum: raised slopes must not make that more than 1."""
    law = noise.parse("scipy.gumbel_r(0,1)").iid
    assert law is not None
    both = [make_ratio_law(law, u) for u in (shift, -shift)]
    joint = make_envelope(both)
    total = math.fsum(joint.mass.tolist())
    shares = replace(joint, mass=joint.mass * ((1.0 - joint.infinite) / total))
    sticks, mine = [ExactSticks(one) for one in both], ExactSticks(shares)
    for t in joint.loss[::7].tolist():
        for one in sticks:
            assert not one(t) - mine(t) > arb(joint.charge + ROUNDING_EACH)


def test_tails_that_are_cut_off_are_told_apart_for_sure() -> None:
    """A shift by 10^9: but for the overlap of far tails, mass 10^-9, all of Q is beyond P."""
    law = noise.cauchy(scale=1)
    cells = make_ratio_cells(law, 1e9)
    assert float(np.sum(cells.q)) + cells.infinite >= 1 - 1e-12
    power = noise.gennorm(beta=0.1, scale=1)
    far = make_ratio_cells(power, 1e-3)
    assert float(np.sum(far.q)) + far.infinite >= 1 - 1e-15


def wavy(r: Array) -> Array:
    return np.asarray(-3.0 * r - 0.28 * np.sin(10 * r))


def test_a_wavy_density_is_below_its_own_integral() -> None:
    """φ falls, and neither bends one way: P(L > 0 | r) by 200 angles at 4,000 lengths."""
    dim, s = 2, 0.4
    law = from_radial_density(wavy, dim=dim)
    u = (np.arange(20_000) + 0.5) / 20_000
    r = law.length.ppf(u)[:, None]
    angle = np.pi * (np.arange(400) + 0.5) / 400
    rho = np.sqrt(r * r - 2 * r * s * np.cos(angle) + s * s)
    overlap = float(np.mean(np.minimum(np.exp(wavy(rho) - wavy(r)), 1.0)))
    found = ball_tradeoff(law, s)
    least = optimize.minimize_scalar(
        lambda a: float(found.beta(a)) + a, bounds=(1e-3, 0.9), method="bounded"
    ).fun
    assert overlap - 4e-3 <= least <= overlap + 2e-6


def test_a_bend_is_seen_wherever_it_lies_among_the_points() -> None:
    """A dent narrower than 24 points, and too weak for neighbours."""
    v: Array = np.linspace(1.0, 2.0, 60_001)
    assert _bend_of_table(v, v * 1e-6) == 1  # straight: both, of which one is said
    assert (_bend_of_table(v, v * v), _bend_of_table(v, -v * v)) == (1, -1)
    for place in range(30_000, 30_024):
        dent = 1e-13 * np.exp(-0.5 * ((np.arange(v.size) - place) / 3) ** 2)
        assert _bend_of_table(v, v * 1e-6 + dent) == 0


def bell(r: Array) -> Array:
    return np.asarray(-0.5 * r * r)


@pytest.mark.parametrize("dim", [2, 5, 60])
def test_a_radial_gaussian_is_below_the_gaussian(dim: int) -> None:
    law = from_radial_density(bell, dim=dim)
    for length in (0.1, 1.0, 3.0):
        found = ball_tradeoff(law, length)
        exact = special.ndtr(-special.ndtri(ALPHA) - length)
        for beta in (found.beta(ALPHA), np.array([float(found.beta(a)) for a in ALPHA[::6]])):
            truth = exact if beta.size == ALPHA.size else exact[::6]
            assert np.all(beta <= truth)
            assert np.all(beta >= truth - 4e-3)
        assert float(found.alpha(0.5)) <= special.ndtr(-length)


@pytest.mark.parametrize("dim", [2, 40])
def test_a_laplace_noise_of_its_length_is_below_laplace(dim: int) -> None:
    law, exact = noise.l1_exp(k=1, j=0, scale=1, dim=dim), noise.laplace(scale=1)
    for u in (0.05, 0.8, 2.5):
        found = cross_tradeoff(law, u)
        truth = ClosedForm(exact, u).beta(ALPHA)
        assert np.all(found.beta(ALPHA) <= truth * (1 + 1e-13))
        single = np.array([float(found.beta(a)) for a in ALPHA[::5]])
        assert np.all(single <= truth[::5] * (1 + 1e-13))
        assert np.all(single >= truth[::5] - 4e-3)
        assert float(found.alpha(0.5)) <= 0.5 * math.exp(-u)


@pytest.mark.parametrize("dim", [2, 6])
def test_cubes_that_are_all_alike_overlap_by_their_sides(dim: int) -> None:
    """∫ min(p, p_δ) of φ(‖z‖_∞) by its levels: every overlap is a product of sides."""
    law = noise.linf_exp(k=1, j=0, scale=1, dim=dim)
    delta = np.array([0.7, 0.2, 0.4, 0.1, 0.3, 0.6])[:dim]

    def side(b: float) -> float:  # density of the half side: P(cube) ∝ b^d e^−b
        return float(np.prod(np.maximum(1 - delta / (2 * b), 0))) * b**dim * math.exp(-b)

    kinks = sorted({d / 2 for d in delta})
    overlap = integrate.quad(side, 0, 60, points=kinks, limit=400)[0] / math.gamma(dim + 1)
    found = cube_tradeoff(law, [(float(d), 1) for d in delta])
    # T(α) + α is least where the slope of T is −1, and there it is the overlap
    least = optimize.minimize_scalar(
        lambda a: float(found.beta(a)) + a, bounds=(1e-3, 0.9), method="bounded"
    ).fun
    assert overlap - 6e-3 <= least <= overlap * (1 + 1e-9)


def test_the_margin_is_zero_at_the_boundary_and_falls_beyond() -> None:
    law = noise.gaussian(sigma=1)
    for p_a, p_b in ((0.9, 0.1), (0.9, 0.05), (0.55, 0.4)):
        edge = 0.5 * float(special.ndtri(p_a) - special.ndtri(p_b))
        assert compute_margin(ClosedForm(law, edge * (1 - 1e-9)), p_a, p_b) > 0
        assert compute_margin(ClosedForm(law, edge * (1 + 1e-9)), p_a, p_b) < 0


def test_norms_carry_a_radius_by_their_constants() -> None:
    law = from_radial_density(bell, dim=9)
    two = certified_radius(law, 2, 9, p_a=0.9).proved
    for p, factor in ((1.0, 1.0), (1.5, 1.0), (4.0, 9 ** (0.25 - 0.5)), (math.inf, 1 / 3)):
        found = certified_radius(law, Norm(p), 9, p_a=0.9).proved
        assert found == pytest.approx(two * factor, rel=1e-4)


@pytest.mark.parametrize("t", [-0.7, 0.3])
def test_the_chance_in_a_cell_of_a_cross_is_that_of_its_left_end(t: float) -> None:
    """For e^(−r), ρ = r − t: the chance (1 − (s + t)/2r)^(d−1)/2 grows with r."""
    dim, s = 5, 1.2
    table = levels(noise.l1_exp(k=1, j=0, scale=1, dim=dim))
    chance = cross_chance(table, s)(*table.gaps(t))
    left, right = table.edges[:-1], table.edges[1:]
    least, most = (0.5 * np.maximum(1 - (s + t) / (2 * r), 0.0) ** (dim - 1) for r in (left, right))
    inside = (left > t + 1e-3) & (least > 1e-3)  # where ρ is positive
    assert np.all(chance[inside] <= least[inside] * (1 + 1e-13))
    assert np.all(chance[inside] >= least[inside] * (1 - 1e-7))
    assert np.any(most[inside] > least[inside] * (1 + 1e-4))
