"""Trade-offs of spherical noise against 30 digits, closed forms and samples."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

from unicr.errors import RadiusError
from unicr.noise import RadialNoise, ball, spherical_exp, spherical_gg
from unicr.noise.internal import within
from unicr.radius import certified_radius
from unicr.tradeoff import TradeOff, _falling
from unicr.tradeoff._angle import Angle
from unicr.tradeoff._falling import Levels
from unicr.tradeoff.internal import ball_steps, ball_tradeoff
from unicr.values import Array

ALPHA = np.array([0.4, 0.1, 0.01, 1e-3])
SAMPLES = 120_000


def check_by_sampling(tradeoff: TradeOff, loss: Array) -> None:
    """H(t) = E_P[(1 − e^{t+L})⁺] from both sides, at eight t: T(α) = sup 1 − H(t) − e^t·α.

    T at α = P(L > t) equals that line; sixteen tests of six standard errors: false alarms < 1e-7.
    """
    for t in np.quantile(-loss, [0.02, 0.2, 0.35, 0.5, 0.6, 0.75, 0.9, 0.99]).tolist():
        sample = np.maximum(-np.expm1(np.minimum(t + loss, 0.0)), 0.0)
        alpha = float(np.mean(loss > t))
        value = 1 - float(np.mean(sample)) - math.exp(t) * alpha
        # the line at t has the slope −e^t, so that an error of α costs e^t of it and nothing more
        error = 6 * (float(np.std(sample)) + 0.5 * math.exp(t)) / math.sqrt(SAMPLES) + 1e-6
        beta = float(tradeoff.beta(alpha))
        assert value - error - 1e-3 <= beta <= value + error


def distances(r: Array, shift: float, dim: int, rng: np.random.Generator) -> Array:
    cosine = 2 * rng.beta((dim - 1) / 2, (dim - 1) / 2, r.size) - 1
    return np.sqrt(np.maximum(r * r + shift * shift - 2 * r * shift * cosine, 0.0))


@pytest.mark.parametrize("dim", [2, 3, 4, 5, 7, 24, 199, 200, 3072, 150_528, 10**12])
def test_the_angle_is_enclosed_to_eleven_digits(dim: int) -> None:
    """Against the integral of cos^m by 40 digits."""
    rng = np.random.default_rng(dim)
    wide = rng.uniform(-8, 8, 8) / math.sqrt(dim) if dim > 100 else rng.uniform(-1, 1, 8)
    low, high = (Angle(dim).beyond(wide, above=above) for above in (False, True))
    with mp.workdps(40):
        ratio = mp.exp(mp.loggamma(mp.mpf(dim) / 2) - mp.loggamma(mp.mpf(dim - 1) / 2))
        for i, x in enumerate(wide.tolist()):
            start = mp.asin(abs(mp.mpf(x)))
            end = min(mp.pi / 2, start + 26 / mp.sqrt(dim))
            part = mp.quad(lambda y: mp.cos(y) ** (dim - 2), mp.linspace(start, end, 10))
            tail = ratio / mp.sqrt(mp.pi) * part
            exact = tail if x > 0 else 1 - tail
            assert low[i] <= exact <= high[i]
            assert high[i] - low[i] <= 4e-9 * exact


def exact_masses(noise: RadialNoise, edges: Array) -> Array:
    """P(‖z‖ in the cell) by scipy's gamma law, at unit scale."""
    if noise.family == "spherical_gg":
        law, value = stats.gamma(noise.dim / 2 - noise.numbers["k"]), edges**2 / 2
    else:
        law, value = stats.gamma(noise.dim / noise.numbers["k"]), edges ** noise.numbers["k"]
    upper = value[:-1] > law.median()
    return np.where(upper, -np.diff(law.sf(value)), np.diff(law.cdf(value)))


@pytest.mark.parametrize(
    "noise",
    [
        spherical_gg(k=0, scale=1, dim=2),
        spherical_gg(k=1.2, scale=1, dim=3),
        spherical_gg(k=1530, scale=1, dim=3072),
        spherical_exp(k=0.5, scale=1, dim=10),
        spherical_exp(k=5, scale=1, dim=784),
    ],
    ids=str,
)
def test_masses_of_the_length_lie_below_the_gamma_law(noise: RadialNoise) -> None:
    cells = Levels(noise)
    assert cells.outward
    exact = exact_masses(noise, cells.edges)
    assert np.all(cells.mass <= exact * (1 + 1e-11) + 1e-17)
    assert 0 <= 1 - cells.mass.sum() <= 3e-8
    assert 0 <= 1 - cells.mixed.sum() <= 1e-7


def mp_stick(noise: RadialNoise, s: float, t: float) -> float:
    """H(t) by 30 digits: P(L > t) is an integral over r of an incomplete beta function.

    φ and its inverse are written again here, so that nothing of the engine is used.
    """
    dim, k = noise.dim, mp.mpf(noise.numbers["k"])
    singular = noise.family == "spherical_gg"

    def log_phi(r: Any) -> Any:
        return -2 * k * mp.log(r) - r * r / 2 if singular else -(r**k)

    def inverse(value: Any) -> Any:
        if not singular:
            return (-value) ** (1 / k) if value < 0 else mp.mpf(0)
        # v/2 + k·log v = −value has the root v = 2k·W(e^(−value/k)/2k)
        return mp.sqrt(2 * k * mp.lambertw(mp.exp(-value / k) / (2 * k)).real)

    lower = [float(noise.length.ppf(u)) for u in (1e-13, 1e-6, 0.02, 0.2, 0.5)]
    ends = [mp.mpf(r) for r in (*lower, *(float(noise.length.isf(u)) for u in (0.2, 1e-6, 1e-13)))]
    top = (dim - 1) * mp.log(ends[4]) + log_phi(ends[4])

    def weight(r: Any) -> Any:
        return mp.exp((dim - 1) * mp.log(r) + log_phi(r) - top)

    def chance(r: Any, level: float) -> Any:
        x = (s * s - inverse(log_phi(r) + level) ** 2 + r * r) / (2 * s * r)
        a, x = mp.mpf(dim - 1) / 2, min(max(x, -1), 1)
        return mp.betainc(a, a, 0, (1 - x) / 2, regularized=True)

    def probability(level: float) -> Any:
        return mp.quad(lambda r: weight(r) * chance(r, level), ends) / mp.quad(weight, ends)

    with mp.workdps(30):
        return float(1 - probability(-t) - mp.exp(t) * probability(t))


@pytest.mark.parametrize(
    ("noise", "shift", "t"),
    [
        (spherical_gg(k=1.2, scale=1, dim=4), 0.8, 0.7),
        (spherical_gg(k=6.5, scale=1, dim=15), 0.5, 0.4),
        (spherical_exp(k=1, scale=1, dim=6), 2.0, 0.5),
        (spherical_exp(k=3, scale=1, dim=9), 0.3, 1.5),
        (spherical_exp(k=0.5, scale=1, dim=5), 9.0, 0.02),
    ],
    ids=str,
)
def test_hockey_sticks_lie_above_thirty_digits(noise: RadialNoise, shift: float, t: float) -> None:
    """H is never below the true one, and T, the highest line, not much below the true line."""
    exact = mp_stick(noise, shift, t)
    found = ball_tradeoff(noise, shift)
    assert exact <= found._h(t) <= exact + 3e-4  # type: ignore[attr-defined]
    alpha = np.array([0.0, 0.05, 0.3])
    assert np.all(found.beta(alpha) >= 1 - exact - math.exp(t) * alpha - 3e-4)


@pytest.mark.parametrize("dim", [2, 3, 24, 784, 150_528])
@pytest.mark.parametrize("mu", [2.5e-4, 0.1, 1.0, 4.0])
def test_without_a_power_it_is_the_gaussian_and_never_above_it(dim: int, mu: float) -> None:
    tradeoff = ball_tradeoff(spherical_gg(k=0, sigma=0.5, dim=dim), 0.5 * mu)
    reached = special.ndtri(1 - ALPHA) - special.ndtri(tradeoff.beta(ALPHA))
    excess = np.append(reached, special.ndtri(tradeoff.find_least_p_a())) / mu - 1
    assert tradeoff.bound == "lower"
    assert np.all(excess >= 0)
    assert excess[-1] <= (1.2e-3 if dim < 24 else 3e-4 if mu < 0.01 else 2e-4)


@pytest.mark.parametrize("dim", [2, 3, 50, 3072])
@pytest.mark.parametrize("p_a", [0.6, 0.9, 0.99])
def test_the_ball_has_its_closed_form(dim: int, p_a: float) -> None:
    """T(α) = V − α, V by 30 digits."""
    a = (dim + 1) / 2
    radius = 1.5 * (2 - 4 * float(special.betaincinv(a, a, 0.75 - p_a / 2)))
    tradeoff = ball_tradeoff(ball(scale=1.5, dim=dim), radius)
    with mp.workdps(30):
        overlap = 2 * mp.betainc(a, a, 0, mp.mpf(1) / 2 - mp.mpf(radius) / 6, regularized=True)
        for alpha in (0.0, 0.2):
            assert 0 <= overlap - alpha - mp.mpf(float(tradeoff.beta(alpha))) <= 2e-11
    assert abs(tradeoff.find_least_p_a() - p_a) <= 2e-11
    steps, radii = ball_steps(ball(scale=1.5, dim=dim), 0.9 * radius, radius)
    assert radii[-1] >= radius
    assert 1 - p_a <= np.interp(radius, radii, steps) + 1e-3 * (p_a - 0.5)


@pytest.mark.parametrize("dim", [2, 5, 10, 11])
def test_an_atom_of_the_ratio_is_counted_once(dim: int) -> None:
    """L is 0 on the overlap of two balls, so that t = 0 is the worst line to be careless about.

    Uniform noise in a ball has a closed form; the same kept within a smaller ball has not.
    """
    law, shift = within(ball(scale=1, dim=dim), 0.5), 0.1
    a = (dim + 1) / 2
    overlap = 2 * float(special.betainc(a, a, 0.5 - shift / 4 / law.unit_length.window[1]))
    tradeoff = ball_tradeoff(law, shift)
    for t in (0.0, 1e-300, 1e-15, 1e-9):
        assert tradeoff._h(t) >= 1 - overlap  # type: ignore[attr-defined]
    assert tradeoff.find_least_p_a() >= 1.5 - overlap


def cone_stick(s: float, t: float) -> float:
    """H(t) of e^(−‖z‖) in R³: cos θ is uniform and the length has the density r²e^(−r)/2.

    x = t/s + (s² − t²)/2sr < 1 where r > c = (s + t)/2, so P(L > t) is an elementary integral.
    """

    def probability(level: float) -> float:
        c = 0.5 * (s + level)
        first = (1 - level / s) * (c * c + 2 * c + 2) / 2
        return 0.5 * math.exp(-c) * (first - (s * s - level * level) / (2 * s) * (c + 1) / 2)

    return 1 - probability(-t) - math.exp(t) * probability(t)


def test_steep_lines_lose_little() -> None:
    """Where t is nearly s only a narrow cone of directions counts, and e^t is large."""
    noise = spherical_exp(k=1, scale=1, dim=3)
    for s, t in ((0.5, 0.4), (4.0, 3.9), (9.0, 8.5), (14.0, 13.7)):
        h = ball_tradeoff(noise, s)._h(t)  # type: ignore[attr-defined]
        assert cone_stick(s, t) <= h <= cone_stick(s, t) + 2e-3

    def needed(s: float) -> float:
        lines = [(0.5 - cone_stick(s, t)) * math.exp(-t) for t in np.linspace(0, s, 20_001)]
        return 1 - max(lines)

    radius = float(certified_radius(noise, 2, p_a=0.9999).proved)
    assert needed(radius) <= 0.9999 <= needed(radius * 1.0015)


def test_disjoint_balls_are_told_apart() -> None:
    assert np.all(ball_tradeoff(ball(scale=1, dim=5), 2.5).beta([0.0, 0.3]) == 0)


@pytest.mark.parametrize("dim", [2, 5, 50, 3072])
@pytest.mark.parametrize("shift", [0.7, 2.5])
def test_the_first_power_agrees_with_samples(dim: int, shift: float) -> None:
    noise = spherical_exp(k=1, sigma=1, dim=dim)
    rng = np.random.default_rng(dim)
    r = rng.gamma(dim, noise.scale, SAMPLES)
    loss = (r - distances(r, shift, dim, rng)) / noise.scale
    check_by_sampling(ball_tradeoff(noise, shift), loss)


@pytest.mark.parametrize(("dim", "k"), [(3, 1.2), (50, 19.0), (3072, 1530.0)])
@pytest.mark.parametrize("shift", [0.4, 2.0])
def test_a_singular_centre_agrees_with_samples(dim: int, k: float, shift: float) -> None:
    noise = spherical_gg(k=k, sigma=1, dim=dim)
    rng = np.random.default_rng(dim + 1)
    r = noise.scale * np.sqrt(2 * rng.gamma(dim / 2 - k, size=SAMPLES))
    rho = distances(r, shift, dim, rng)
    loss = 2 * k * np.log(r / rho) + (r * r - rho * rho) / (2 * noise.scale**2)
    check_by_sampling(ball_tradeoff(noise, shift), loss)


def test_it_scales_with_the_noise() -> None:
    small = ball_tradeoff(spherical_exp(k=1, scale=1, dim=20), 3.0)
    large = ball_tradeoff(spherical_exp(k=1, scale=4, dim=20), -12.0)
    assert np.allclose(small.beta(ALPHA), large.beta(ALPHA), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dim", [2, 14, 3072])
def test_it_is_decreasing_below_the_diagonal_and_falls_with_the_shift(dim: int) -> None:
    noise = spherical_exp(k=1, sigma=1, dim=dim)
    alpha = np.linspace(0.001, 0.999, 200)
    before = 1 - alpha
    for shift in (0.3, 0.8, 1.6, 3.2):
        beta = ball_tradeoff(noise, shift).beta(alpha)
        assert np.all(np.diff(beta) <= 0)
        assert np.all(beta <= before)
        before = beta


def test_no_shift_is_no_information() -> None:
    tradeoff = ball_tradeoff(spherical_gg(k=3, sigma=1, dim=50), 0.0)
    assert np.allclose(tradeoff.beta(ALPHA), 1 - ALPHA, atol=1e-15)
    assert tradeoff.find_least_p_a() == 0.5


@pytest.mark.parametrize("shift", [math.nan, math.inf])
def test_a_shift_must_be_finite(shift: float) -> None:
    with pytest.raises(RadiusError, match="finite number"):
        ball_tradeoff(ball(scale=1, dim=3), shift)


@pytest.mark.parametrize("dim", [3, 3072])
def test_steps_of_a_curve_lie_below_the_gaussian_and_close_to_it(dim: int) -> None:
    """Every step (1 − p, r), also between the nodes: r ≤ σ·Φ⁻¹(p), and 0.1 % less at most."""
    alpha, radius = ball_steps(spherical_gg(k=0, scale=1, dim=dim), 0.0025, 6.7)
    used = radius > 0.0025
    exact = -special.ndtri(alpha[used])
    assert np.all(radius[used] <= exact * (1 + 1e-12))
    assert np.all(radius[used] >= exact * (1 - 1e-3))


def test_steps_of_a_curve_lie_below_single_radii() -> None:
    noise = spherical_gg(k=6.5, scale=1, dim=15)
    alpha, radius = ball_steps(noise, 0.003, 5.0)
    for i in np.flatnonzero(radius > 0.01)[:: radius.size // 12].tolist():
        direct = float(ball_tradeoff(noise, float(radius[i])).alpha(0.5))
        assert alpha[i] <= direct * (1 + 1e-4)  # the direct search may miss the best t by so much
        assert special.ndtri(alpha[i]) >= special.ndtri(direct) * (1 + 2e-3)


def test_a_chord_between_distant_nodes_is_lowered_by_its_sag(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Any distance between nodes is sound. The overlap of two nearly uniform balls is convex in
    their distance, so its chord alone would lie above it, by one to three per cent here.
    """
    monkeypatch.setattr(_falling, "LOSS", 1e3)
    monkeypatch.setattr(_falling, "WIDEST", 30.0)
    noise = spherical_exp(k=100, scale=1, dim=2)
    alpha, radius = ball_steps(noise, 0.05, 0.55)
    for r in (0.45, 0.52):
        i = int(np.searchsorted(radius, r))
        assert 0 < alpha[i] <= float(ball_tradeoff(noise, float(radius[i])).alpha(0.5))
