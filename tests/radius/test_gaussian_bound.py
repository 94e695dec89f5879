"""Proved radii by comparison with Gaussians: never too large, and tight enough to be useful."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special

from unicr import noise
from unicr.noise import IID
from unicr.radius._gaussian_bound import proved_l2, proved_lp
from unicr.radius._gaussian_law import gaussian_hockey_stick, half_laws, nodes
from unicr.radius._gaussian_shift import shift_table, steepest_shift
from unicr.radius._gaussian_slack import slack_table
from unicr.values import Array

LAPLACE: IID = noise.laplace(sigma=1)
GN15: IID = noise.gennorm(beta=1.5, sigma=1)
GN3: IID = noise.gennorm(beta=3, sigma=1)
SECH: IID = noise.sech(sigma=1)
MIXED: IID = noise.lapgauss(beta=0.5, sigma=1)
GAUSSIAN: IID = noise.gaussian(sigma=1)

FISHER = {LAPLACE: 2.0, GN15: 1.09577, GN3: 1.13211, SECH: math.pi**2 / 8, GAUSSIAN: 1.0}
SEARCHED = {
    (LAPLACE, 0.6): 0.15779,
    (LAPLACE, 0.7): 0.35981,
    (LAPLACE, 0.9): 0.90968,
    (LAPLACE, 0.99): 1.65652,
    (LAPLACE, 0.999): 2.20559,
    (GN15, 0.6): 0.21691,
    (GN15, 0.9): 1.21651,
    (GN15, 0.99): 2.2226,
    (GN15, 0.999): 2.9527,
    (GN3, 0.6): 0.23812,
    (GN3, 0.9): 1.20451,
    (GN3, 0.99): 2.12666,
    (GN3, 0.999): 2.63087,
}
BARS = {LAPLACE: 0.92, GN15: 0.92, GN3: 0.87, SECH: 0.9}


def above(law: IID, p_a: float) -> float:
    """An upper bound of the true l2 radius: the one-hot and the (infinitely) spread direction.

    A spread over d = 3072 coordinates is within 1 % of the limit for these families.
    """
    return min(float(law.ppf(p_a)), 1.01 * float(special.ndtri(p_a)) / math.sqrt(FISHER[law]))


@pytest.mark.parametrize("law", [LAPLACE, GN15, GN3, SECH], ids=str)
def test_l2_is_close_to_the_searched_radius_and_never_above(law: IID) -> None:
    for p_a in (0.6, 0.7, 0.8, 0.9, 0.99, 0.999):
        ceiling = min(above(law, p_a), SEARCHED.get((law, p_a), math.inf))
        proved = proved_l2(law, p_a, 1 - p_a)
        assert BARS[law] * ceiling <= proved <= ceiling


def test_l2_just_above_a_half_stays_below_the_one_hot_radius() -> None:
    for law in (LAPLACE, GN15, SECH):
        for p_a in (0.505, 0.52, 0.55):
            one_hot = float(law.ppf(p_a))
            assert 0.97 * one_hot <= proved_l2(law, p_a, 1 - p_a) <= one_hot


def test_l2_of_gaussian_noise_is_nearly_exact() -> None:
    for p_a, p_b in ((0.6, 0.4), (0.99, 0.01), (0.5, 0.2)):
        exact = 0.5 * float(special.ndtri(p_a) - special.ndtri(p_b))
        assert 0.995 * exact <= proved_l2(GAUSSIAN, p_a, p_b) <= exact


def test_l2_grows_with_p_a_and_falls_with_p_b() -> None:
    values = [proved_l2(LAPLACE, p, 1 - p) for p in (0.5, 0.55, 0.65, 0.75, 0.85, 0.95, 0.995)]
    assert values[0] == 0
    assert all(x < y for x, y in itertools.pairwise(values))
    tighter = [proved_l2(LAPLACE, 0.7, q) for q in (0.3, 0.2, 0.1, 0.01)]
    assert all(x < y for x, y in itertools.pairwise(tighter))
    one_hot = 0.5 * float(LAPLACE.ppf(0.7) - LAPLACE.ppf(0.1))
    assert tighter[2] <= one_hot


def test_a_radius_scales_with_the_noise() -> None:
    for law in (LAPLACE, GN3):
        assert proved_l2(law * 3, 0.9, 0.1) == pytest.approx(3 * proved_l2(law, 0.9, 0.1), rel=1e-9)
        assert proved_lp(law * 3, 1, 50, 0.9, 0.1) == pytest.approx(
            3 * proved_lp(law, 1, 50, 0.9, 0.1), rel=1e-9
        )


@pytest.mark.parametrize("p", [0.5, 1, 2, 3, math.inf])
@pytest.mark.parametrize("dim", [1, 10, 3072, 150_528])
def test_lp_is_exact_for_gaussian_noise(p: float, dim: int) -> None:
    for p_a, p_b in ((0.6, 0.4), (0.99, 0.01), (0.8, 0.05)):
        l2 = 0.5 * float(special.ndtri(p_a) - special.ndtri(p_b))
        exact = l2 if p <= 2 else dim ** (1 / p - 0.5) * l2
        assert (1 - 1e-3) * exact <= proved_lp(GAUSSIAN, p, dim, p_a, p_b) <= exact


def test_lp_reaches_the_published_share_of_the_l2_radius() -> None:
    assert proved_lp(GN15, 2, 3072, 0.99, 0.01) >= 0.87 * SEARCHED[GN15, 0.99]
    assert proved_lp(LAPLACE, 2, 3072, 0.99, 0.01) >= 0.79 * SEARCHED[LAPLACE, 0.99]


@pytest.mark.parametrize("law", [LAPLACE, GN15, GN3, SECH], ids=str)
def test_lp_stays_below_the_exact_one_hot_radius(law: IID) -> None:
    for p_a in (0.55, 0.9, 0.999):
        one_hot = float(law.ppf(p_a))
        for dim in (1, 3072):
            assert 0 < proved_lp(law, 1, dim, p_a, 1 - p_a) <= one_hot


def test_a_heavy_tail_is_not_vacuous_for_lp() -> None:
    for law in (noise.cauchy(scale=1), noise.gennorm(beta=0.75, sigma=1)):
        assert 0.2 < proved_lp(law, 1, 3072, 0.9, 0.1) <= float(law.ppf(0.9))


def test_bounded_or_cusped_noise_gives_nothing_rather_than_something_wrong() -> None:
    assert proved_l2(noise.uniform(sigma=1), 0.9, 0.1) == 0
    assert proved_l2(LAPLACE.truncated(3), 0.9, 0.1) == 0
    assert proved_l2(noise.gennorm(beta=0.75, sigma=1), 0.9, 0.1) == 0
    assert proved_lp(noise.uniform(sigma=1), 2, 10, 0.9, 0.1) == 0


def smoothed_stick(law: IID, s: float, u: float, t: float) -> float:
    """H_{e^t}(G_s ⊗ T_u) by adaptive quadrature over the shifted noise."""

    def integrand(y: float) -> float:
        ratio = float(law.logpdf(y) - law.logpdf(y + u))
        return float(law.pdf(y)) * float(gaussian_hockey_stick(np.asarray(t - ratio), s))

    reach = float(law.isf(1e-15))
    corners = [-u, -0.5 * u, 0.0]
    value, _ = integrate.quad(
        integrand, -reach, reach, points=corners, limit=400, epsabs=1e-13, epsrel=1e-12
    )
    return float(value)


@pytest.mark.parametrize("law", [LAPLACE, GN15, GN3, MIXED], ids=str)
def test_the_slack_table_bounds_the_true_slack(law: IID) -> None:
    unit = law.unit
    table = slack_table(unit)
    assert table is not None
    rng = np.random.default_rng(7)
    for _ in range(40):
        i = int(rng.integers(len(table.smoothing) - 8, len(table.smoothing)))
        j = int(rng.integers(len(table.rate)))
        s, k = float(table.smoothing[i]), float(table.rate[j])
        u = float(np.exp(rng.uniform(math.log(0.02 * s), math.log(2)))) / math.sqrt(
            table.information
        )
        sigma = math.sqrt(s * s + k * u * u)
        t = abs(float(rng.normal())) * sigma
        gap = smoothed_stick(unit, s, u, t) - float(gaussian_hockey_stick(np.asarray(t), sigma))
        assert gap <= float(table.up_to(np.array([u]))[i, j, 0]) * u * u + 1e-12


def test_half_laws_see_a_step_between_their_points() -> None:
    """Against the raw density on a fine grid; five points between quantiles saw a constant."""

    def step(x: Array) -> Array:
        return -special.expit((np.abs(x) - 0.7) / 1e-4) - np.maximum(np.abs(x) - 1.5, 0)

    one = noise.from_density(step, points=(-1.5, 1.5))
    x = np.asarray((np.arange(-1_200_000, 1_200_000) + 0.5) * 2e-5, dtype=np.float64)
    shifts = np.array([2e-4, 0.01, 0.3])
    laws = half_laws(one, shifts, nodes(0.035, 8.2, 0.02))
    log_gamma = np.array([0.0, 0.05, 0.3, 0.8])
    for row, shift in enumerate(shifts.tolist()):
        p, q = np.exp(step(x)), np.exp(step(x - shift))
        truth = [np.sum(np.maximum(q - math.exp(t) * p, 0)) / np.sum(p) for t in log_gamma]
        assert np.all(laws.hockey_stick(row, log_gamma) >= np.array(truth) - 1e-6)


@pytest.mark.parametrize("law", [LAPLACE, GN15, GN3, SECH], ids=str)
def test_half_laws_bound_the_exact_hockey_stick_closely(law: IID) -> None:
    """For log-concave noise H_γ = P(ε > x − u) − γ P(ε > x) where L(x) = log γ."""
    shifts = np.array([0.01, 0.3, 2.0])
    laws = half_laws(law, shifts, nodes(0.035, 8.2, 0.02))
    for row, u in enumerate(shifts):
        x = np.linspace(0.5 * u, 0.5 * u + 3, 37)
        w = law.logpdf(x - u) - law.logpdf(x)
        exact = law.sf(x - u) - np.exp(w) * law.sf(x)
        bound = laws.hockey_stick(row, w)
        assert np.all(bound >= exact - 1e-15)
        assert np.all(bound <= exact + 1e-3 * u)


def test_the_gaussian_shift_dominates_the_noise() -> None:
    """m(u) ≥ h(x) − h(x − u) with h = Φ⁻¹∘F, and m is close to its supremum."""
    for law in (LAPLACE, GN15, SECH):
        table = shift_table(law)
        steepest = steepest_shift(law)
        assert table is not None
        assert steepest is not None
        for u in (1e-3, 0.1, 0.7, 3.0):
            x = np.linspace(-8, 8 + u, 4001)
            differences = special.ndtri(law.sf(x - u)) - special.ndtri(law.sf(x))
            largest = float(np.max(differences[(law.sf(x) > 1e-14) & (law.sf(x - u) < 1 - 1e-14)]))
            assert largest <= table.at(u) <= 1.01 * largest
            assert table.at(u) <= steepest.slope * u * (1 + 1e-12)


def composed_power(law: IID, spectrum: list[tuple[float, int]], alpha: float) -> float:
    """T_δ(α) by FFT composition on a fine lattice of L, independent of the package's atoms."""
    step, size = 2e-3, 1 << 15
    transform = np.ones(size // 2 + 1, dtype=complex)
    for u, count in spectrum:
        edges = np.unique(
            np.concatenate([np.linspace(-9, 9 + u, 20001), [0.0, u], np.linspace(0, u, 2001)])
        )
        mass = np.diff(law.cdf(edges))
        middle = 0.5 * (edges[1:] + edges[:-1])
        place = (law.logpdf(middle - u) - law.logpdf(middle)) / step
        below = np.floor(place).astype(int)
        part = place - below
        lattice = np.zeros(size)
        np.add.at(lattice, below % size, mass * (1 - part))
        np.add.at(lattice, (below + 1) % size, mass * part)
        transform = transform * np.fft.rfft(lattice / lattice.sum()) ** count
    p = np.maximum(np.fft.irfft(transform, size), 0.0)
    loss = step * np.concatenate([np.arange(size // 2), np.arange(-size // 2, 0)])
    order = np.argsort(-loss)
    p, loss = p[order], loss[order]
    keep = p > 1e-15
    type_one = np.concatenate([[0.0], np.cumsum(p[keep])])
    power = np.concatenate([[0.0], np.cumsum(p[keep] * np.exp(loss[keep]))])
    return float(1 - np.interp(alpha, type_one, power))


@pytest.mark.parametrize(
    ("law", "p_a"),
    [(LAPLACE, 0.6), (LAPLACE, 0.9), (GN15, 0.9), (SECH, 0.99), (MIXED, 0.8)],
    ids=str,
)
def test_no_random_spectrum_inside_the_proved_ball_breaks_the_certificate(
    law: IID, p_a: float
) -> None:
    r = proved_l2(law, p_a, 1 - p_a)
    rng = np.random.default_rng(3)
    spectra: list[list[tuple[float, int]]] = [[(1.0, 1)], [(1.0, 3072)], [(1.0, 2)]]
    for _ in range(9):
        levels = int(rng.integers(1, 4))
        spectra.append(
            [(float(rng.exponential()), int(2 ** rng.uniform(0, 11))) for _ in range(levels)]
        )
    for spectrum in spectra:
        length = math.sqrt(sum(n * u * u for u, n in spectrum))
        scaled = [(r * u / length, n) for u, n in spectrum]
        assert composed_power(law, scaled, 1 - p_a) >= 0.5 - 2e-3
