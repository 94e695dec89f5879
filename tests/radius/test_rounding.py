"""Closed forms are rounded down: against 40 digits, in every family, also close to p_A = 1/2."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from scipy import stats

from unicr import noise
from unicr.radius import RadiusCurve, certified_radius
from unicr.radius._rounding import RADIUS_CHARGE, TAIL_CHARGE, lower_radius
from unicr.radius.bellman._kernel import _make_kernel
from unicr.radius.bellman._mesh import Mesh
from unicr.radius.bellman._sheet import SMOOTHING_CHARGE, Sheet, tabulate_gauss
from unicr.radius.bellman._stencil import GRID_END, POINTS, ROUNDING, compute_terms
from unicr.radius.bellman._verify import CONVOLUTION, Rows
from unicr.tradeoff._compose import ROUNDING as CHARGE
from unicr.tradeoff._compose import SMALL_GRID, _hockey_sticks

DIGITS = 40
PROBABILITIES = (0.500000001, 0.50001, 0.51, 0.6, 0.75, 0.9, 0.99, 0.9999, 1 - 1e-9, 1 - 1e-12)
Tail = Callable[[mpmath.mpf], mpmath.mpf]


def general_normal(beta: str) -> Tail:
    b = mpmath.mpf(beta)
    return lambda x: mpmath.gammainc(1 / b, x**b, mpmath.inf, regularized=True) / 2


def exponential_mix(x: mpmath.mpf) -> mpmath.mpf:
    """∝ exp(−x/2 − x²/2), by completing the square."""
    half, root = mpmath.mpf("0.5"), mpmath.sqrt(2)
    return mpmath.erfc((x + half) / root) / mpmath.erfc(half / root) / 2


TAILS: dict[str, Tail] = {
    "gaussian(scale=1)": lambda x: mpmath.erfc(x) / 2,
    "laplace(scale=1)": lambda x: mpmath.exp(-x) / 2,
    "uniform(scale=1)": lambda x: (1 - x) / 2,
    "sech(scale=1)": lambda x: 2 / mpmath.pi * mpmath.atan(mpmath.exp(-x)),
    "gennorm(beta=1.1, scale=1)": general_normal("1.1"),
    "gennorm(beta=3, scale=1)": general_normal("3"),
    "expmix(beta=0.5, scale=1)": exponential_mix,
}


@pytest.mark.parametrize("spec", TAILS)
def test_closed_forms_never_exceed_the_quantile(spec: str) -> None:
    law = noise.parse(spec)
    curve = RadiusCurve(law, 1, 10)
    with mpmath.workdps(DIGITS):
        for p_a in PROBABILITIES:
            proved = certified_radius(law, 1, 10, p_a=p_a).proved
            tail = 1 - mpmath.mpf(p_a)
            true = mpmath.findroot(lambda x, tail=tail: TAILS[spec](x) - tail, proved)
            near = TAIL_CHARGE / (p_a - 0.5)  # what a raised tail costs close to 1/2
            assert proved < true
            assert proved > true * (1 - 2 * RADIUS_CHARGE - near)
            assert float(curve(p_a)) < true


def test_the_scale_is_multiplied_before_rounding() -> None:
    """d^(1/p − 1/2)·σ·Φ⁻¹(p_A), for scales of every size."""
    rng = np.random.default_rng(11)
    with mpmath.workdps(DIGITS):
        for sigma in 10 ** rng.uniform(-6, 6, 40):
            law = noise.gaussian(sigma=float(sigma))
            half = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(0.9) - 1)
            true = mpmath.mpf(float(sigma)) * half / mpmath.mpf(784) ** (mpmath.mpf(1) / 6)
            assert (
                true * (1 - 2 * RADIUS_CHARGE)
                < certified_radius(law, 3, 784, p_a=0.9).proved
                < true
            )


def test_lowering_keeps_zero_and_infinity() -> None:
    assert lower_radius(0.0, 3.0) == 0
    assert lower_radius(math.inf, 0.5) == math.inf
    assert np.all(lower_radius(np.array([1.0, 2.0]), 2.0) < [2.0, 4.0])


@pytest.mark.parametrize("seed", range(5))
def test_cumulated_sums_of_masses_stay_within_their_charge(seed: int) -> None:
    """Ψ at the points of a mesh against 40 digits: masses of every size, signs as of bends."""
    rng = np.random.default_rng(seed)
    mesh = Mesh(0.01, -6.0, 9.0)
    mass = rng.choice([-1, 1, 1, 1], mesh.count) * 10 ** rng.uniform(-12, 0, mesh.count)
    careful = mesh.sum_values(mass)
    allowed = mesh.rounding * float(np.sum(np.abs(mass)))
    with mpmath.workdps(DIGITS):
        above, weighted = mpmath.mpf(0), mpmath.mpf(0)
        for j in range(mesh.count - 1, -1, -1):
            gamma = mpmath.mpf(float(mesh.gamma[j]))
            above += mpmath.mpf(float(mass[j]))
            weighted += mpmath.mpf(float(mass[j])) / gamma
            assert abs(above - gamma * weighted - mpmath.mpf(float(careful[j]))) <= allowed


@pytest.mark.parametrize("p_a", [0.5 + 1e-9, 0.5001, 0.51, 0.9, 0.9999, 1 - 1e-9])
def test_one_dimension_without_symmetry_stays_below_the_quantiles(p_a: float) -> None:
    """Gumbel noise: R is the smaller of Q(p_A) − Q(1/2) and Q(1/2) − Q(1 − p_A), to 40 digits."""
    law = noise.from_scipy(stats.gumbel_r())
    proved, read = certified_radius(law, 2, 1, p_a=p_a).proved, float(RadiusCurve(law, 2, 1)(p_a))
    with mpmath.workdps(DIGITS):
        p = mpmath.mpf(p_a)
        middle, top, bottom = (-mpmath.log(-mpmath.log(q)) for q in (mpmath.mpf("0.5"), p, 1 - p))
        true = min(top - middle, middle - bottom)
    assert proved < true
    assert proved > true * (1 - 1e-4 - 1e-10 / (p_a - 0.5))
    assert read < true


def test_smoothing_by_fft_stays_within_its_charge() -> None:
    """G_s ⊗ Ψ against sums in long double: a point mass, a bell, what a flow looks like."""
    mesh, smooth = Mesh(0.012, -4.8, 5.0), 0.03
    x = mesh.points
    rows = [np.exp(-0.5 * ((x - at) / width) ** 2) for at, width in ((0, 0.04), (0.5, 1), (3, 2))]
    mass = np.array([row / np.sum(row) for row in rows] + [np.eye(mesh.count)[400]])
    sheet = Sheet.__new__(Sheet)
    sheet.mesh, sheet.gauss = mesh, tabulate_gauss(mesh, smooth)
    n, smoothed = mesh.count, sheet._smooth(mass)
    for row, value in zip(mass, smoothed, strict=True):
        exact = np.convolve(row.astype(np.longdouble), sheet.gauss.astype(np.longdouble))
        assert np.max(np.abs(exact[n : 2 * n] - value)) < SMOOTHING_CHARGE / 5
    with mpmath.workdps(DIGITS):
        s = mpmath.mpf(smooth)
        for i in range(0, 2 * n + 1, 97):
            offset = mpmath.mpf((i - n) * mesh.step)
            true = mpmath.ncdf(s / 2 - offset / s) - mpmath.exp(offset) * mpmath.ncdf(
                -s / 2 - offset / s
            )
            assert abs(true - mpmath.mpf(float(sheet.gauss[i]))) < 2e-15


def test_a_convolution_with_a_kernel_stays_within_its_charge() -> None:
    """By FFT and directly, against long double: wide and narrow weights, some of them negative."""
    mesh, rng = Mesh(0.012, -4.8, 5.0), np.random.default_rng(3)
    mass = np.exp(-0.5 * ((mesh.points - 0.3) / 0.04) ** 2)
    mass /= np.sum(mass)
    for reach in (3, 7, 8, 60, 400):
        weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / (1 + reach / 8))
        weights *= 1 + 0.3 * rng.normal(size=weights.size)
        kernel = _make_kernel(np.pad(weights, 2), mesh, 0.0, 0.0)
        left, inside, right = Rows(mass[None], mesh).convolve(kernel, 1)
        exact = np.convolve(mass.astype(np.longdouble), kernel.weights.astype(np.longdouble))
        found = np.concatenate([left[0], inside[0], right[0]])
        assert np.max(np.abs(exact - found)) < CONVOLUTION / 2 * kernel.size_of_terms


def test_terms_of_stencils_are_right_to_their_charge() -> None:
    """e_j against integrals of 40 digits, at the ends of the grid and in its middle."""
    step, smooth, place = 0.4, 1.0, 0.375
    x = np.array([-GRID_END, -3.0, 0.0, GRID_END])
    value, _ = compute_terms(x, place, step, smooth)
    with mpmath.workdps(DIGITS):
        h, q = mpmath.mpf(step), mpmath.mpf(step) / mpmath.mpf(smooth)
        for j in (0, 5, 11):
            node = mpmath.mpf(float(POINTS[j]))
            for k, at in enumerate(x):
                y = mpmath.mpf(float(at))

                def term(v: mpmath.mpf, node: mpmath.mpf = node, y: mpmath.mpf = y) -> mpmath.mpf:
                    rising = mpmath.expm1(h * (v + 1 if v < 0 else v)) / mpmath.expm1(h)
                    tent = rising if v < 0 else 1 - rising
                    t = (node + v - place) * q
                    return tent * mpmath.exp(t * (y - q * (node + v + place) / 2))

                true = mpmath.quad(term, [-1, -0.5, 0]) + mpmath.quad(term, [0, 0.5, 1])
                assert abs(mpmath.mpf(float(value[j, k])) / true - 1) < ROUNDING


@pytest.mark.parametrize("points", [SMALL_GRID, 2 * SMALL_GRID])
def test_hockey_sticks_of_a_grid_stay_within_their_charge(points: int) -> None:
    """Cumulated sums against sums in long double, of a bell and of an even law."""
    s = np.linspace(-3.0, 4.0, points)
    for law in (np.exp(-0.5 * (s - 0.5) ** 2), np.ones(points)):
        q = law / np.sum(law)
        found, long = _hockey_sticks(s, q), q.astype(np.longdouble)
        above = np.append(np.cumsum(long[::-1])[::-1][1:], 0.0)
        weighted = np.append(np.cumsum((long * np.exp(-s))[::-1])[::-1][1:], 0.0)
        assert np.max(np.abs(above - np.exp(s) * weighted - found)) < CHARGE / 10
