"""Composition against closed forms, dp-accounting and Monte Carlo."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from unicr import noise
from unicr.errors import RadiusError
from unicr.tradeoff import ClosedForm, Lines, RatioLaw, compose, compute_tradeoff, make_ratio_law
from unicr.tradeoff._envelope import hockey_stick, make_envelope

FAMILIES = [
    noise.gaussian(sigma=1),
    noise.laplace(sigma=1),
    noise.sech(sigma=1),
    noise.gennorm(beta=0.25, sigma=1),
    noise.gennorm(beta=0.75, sigma=1),
    noise.gennorm(beta=1.5, sigma=1),
    noise.gennorm(beta=3, sigma=1),
    noise.cauchy(scale=0.5),
    noise.pareto(beta=3, sigma=1),
    noise.lapgauss(beta=0.5, sigma=1),
    noise.expmix(beta=0.5, sigma=1),
    noise.uniform(sigma=1),
]
LEVELS = np.array([1e-9, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999])


def gaussian_tradeoff(alpha: np.ndarray, mu: float) -> np.ndarray:
    return special.ndtr(-special.ndtri(alpha) - mu)


@pytest.mark.parametrize("count", [1, 2, 5, 40, 784, 3072, 150528])
@pytest.mark.parametrize("mu", [0.02, 1.0, 3.0, 5.9])
def test_equal_gaussian_coordinates_are_one_gaussian(count: int, mu: float) -> None:
    law = make_ratio_law(noise.gaussian(sigma=1), mu / math.sqrt(count))
    composed = compose([(law, count)])
    truth = gaussian_tradeoff(LEVELS, mu)
    assert composed.bound == "lower"
    got = composed.beta(LEVELS)
    assert np.all(got <= truth + 1e-15)
    middle = (truth > 1e-3) & (truth < 0.999)
    lost = special.ndtri(truth[middle]) - special.ndtri(got[middle])
    assert np.all(lost < 1.2e-4 * mu + 1e-9)
    loss = -float(special.ndtri(composed.alpha(0.5))) / mu - 1
    assert 0 <= loss < 7e-5


@pytest.mark.parametrize("one", [n for n in FAMILIES if n.facts.log_concave], ids=str)
@pytest.mark.parametrize("shift", [1e-3, 0.3, 2.0])
def test_one_coordinate_is_the_closed_form(one: noise.IID, shift: float) -> None:
    exact = ClosedForm(one, shift)
    numeric = compute_tradeoff(one, [(shift, 1)], closed=False)
    assert isinstance(numeric, Lines)
    assert numeric.bound == "lower"
    assert exact.bound == "exact"
    truth, got = exact.beta(LEVELS), numeric.beta(LEVELS)
    assert np.all(got <= truth + 1e-12)
    np.testing.assert_allclose(got, truth, rtol=0, atol=2e-5)


@pytest.mark.parametrize("one", [n for n in FAMILIES if n.facts.log_concave], ids=str)
def test_negative_shift_of_an_even_density_is_the_same(one: noise.IID) -> None:
    plus, minus = ClosedForm(one, 0.7), ClosedForm(one, -0.7)
    np.testing.assert_allclose(plus.beta(LEVELS), minus.beta(LEVELS), rtol=1e-12)
    np.testing.assert_allclose(plus.alpha(LEVELS), minus.alpha(LEVELS), rtol=1e-12)


def test_closed_form_refuses_what_is_not_log_concave() -> None:
    with pytest.raises(RadiusError, match="not log-concave"):
        ClosedForm(noise.cauchy(scale=1), 0.5)


@pytest.mark.parametrize("one", FAMILIES, ids=str)
@pytest.mark.parametrize(("shift", "count"), [(1.1, 1), (0.6, 3), (0.1, 200)])
def test_against_monte_carlo(one: noise.IID, shift: float, count: int) -> None:
    """H(t) = E_Q(1 − e^{t−L})₊ from 10,000 samples: |error| ≤ 5.5 standard errors (4e-8 each)."""
    composed = compute_tradeoff(one, [(shift, count)], closed=False)
    assert isinstance(composed, Lines)
    n = 10_000
    total = np.zeros(n)
    for block in range(0, count, 50):
        width = min(50, count - block)
        z = one.sample(n, width, seed=7, input_index=block, dtype=torch.float64).numpy()
        with np.errstate(invalid="ignore", divide="ignore"):
            total += (one.logpdf(z) - one.logpdf(z + shift)).sum(axis=1)
    compared = 0
    for t in (-1.0, 0.0, 0.7, 2.0):
        i = int(np.argmin(np.abs(composed.t - t)))
        at = composed.t[i]
        if abs(at - t) > 1:
            continue
        compared += 1
        values = np.maximum(-np.expm1(at - total), 0.0)
        error = 5.5 * values.std() / math.sqrt(n) + 1e-6
        assert composed.h[i] >= values.mean() - error
        assert composed.h[i] <= values.mean() + error + 2e-4
    assert compared >= 2


def test_agrees_with_dp_accounting_on_laplace() -> None:
    from dp_accounting.pld import privacy_loss_distribution as pld

    scale = noise.laplace(sigma=1).scale
    shift, count = 0.35, 24
    other = pld.from_laplace_mechanism(
        scale / shift, value_discretization_interval=1e-4, use_connect_dots=True
    ).self_compose(count)
    ours = compute_tradeoff(noise.laplace(sigma=1), [(shift, count)])
    assert isinstance(ours, Lines)
    for epsilon in (0.0, 0.5, 1.5, 3.0, 6.0):
        delta = other.get_delta_for_epsilon(epsilon)
        h = np.interp(epsilon, ours.t, ours.h)
        assert h == pytest.approx(delta, abs=5e-5)


def test_agrees_with_prv_accountant_on_gaussian() -> None:
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import GaussianMechanism

    mechanism = GaussianMechanism(noise_multiplier=20.0)
    accountant = PRVAccountant(
        prvs=[mechanism], max_self_compositions=[400], eps_error=0.001, delta_error=1e-10
    )
    low, middle, high = accountant.compute_delta(epsilon=1.0, num_self_compositions=[400])
    ours = compute_tradeoff(noise.gaussian(sigma=20), [(1.0, 400)], closed=False)
    assert isinstance(ours, Lines)
    h = float(np.interp(1.0, ours.t, ours.h))
    assert low <= h <= high
    assert h == pytest.approx(middle, rel=2e-3)


def test_uniform_atoms_and_infinite_mass() -> None:
    """d coordinates of Uniform(−λ, λ) shifted by u: overlap (1 − u/2λ)^d, T(α) = overlap − α."""
    one = noise.uniform(scale=1)
    composed = compute_tradeoff(one, [(0.05, 10)], closed=False)
    overlap = (1 - 0.025) ** 10
    alpha = np.array([0.0, 0.1, 0.5, overlap, 0.99])
    expected = np.maximum(overlap - alpha, 0)
    np.testing.assert_allclose(composed.beta(alpha), expected, atol=1e-9)


def test_laplace_atoms_are_interpolated() -> None:
    """One Laplace coordinate: in the middle T is a straight line of slope −1 (randomised tests)."""
    one = noise.laplace(scale=1)
    numeric = compute_tradeoff(one, [(0.5, 1)], closed=False)
    a = np.array([0.31, 0.4, 0.45, 0.5])
    slope = np.diff(numeric.beta(a)) / np.diff(a)
    exact = np.diff(ClosedForm(one, 0.5).beta(a)) / np.diff(a)
    np.testing.assert_allclose(slope, exact, rtol=1e-3)


def test_not_monotone_along_a_ray() -> None:
    """Uniform on three separated intervals: no overlap at shift 1/2 of a period, 2/3 at shift 1."""

    def comb(x: np.ndarray) -> np.ndarray:
        inside = (np.abs(x) <= 0.2) | (np.abs(np.abs(x) - 1) <= 0.2)
        return np.where(inside, 0.0, -np.inf)

    one = noise.from_density(comb)
    assert float(compute_tradeoff(one, [(0.5, 1)]).beta(0.0)) == pytest.approx(0.0, abs=1e-6)
    assert float(compute_tradeoff(one, [(1.0, 1)]).beta(0.0)) == pytest.approx(2 / 3, abs=1e-6)


def test_levels_compose_like_one_gaussian() -> None:
    one = noise.gaussian(sigma=1)
    composed = compute_tradeoff(one, [(1.5, 1), (0.2, 25), (-0.01, 3000)])
    mu = math.sqrt(1.5**2 + 25 * 0.04 + 3000 * 1e-4)
    assert -float(special.ndtri(composed.alpha(0.5))) == pytest.approx(mu, rel=5e-5)


@pytest.mark.parametrize("one", FAMILIES, ids=str)
def test_upper_bounds_lie_above_lower_bounds(one: noise.IID) -> None:
    lower = compose([(make_ratio_law(one.unit, 0.8), 1)])
    upper = compose([(make_ratio_law(one.unit, 0.8, bound="upper"), 1)])
    assert (lower.bound, upper.bound) == ("lower", "upper")
    assert np.all(lower.beta(LEVELS) <= upper.beta(LEVELS) + 1e-12)
    np.testing.assert_allclose(lower.beta(LEVELS), upper.beta(LEVELS), atol=1e-4)


def test_upper_bounds_of_many_coordinates_are_an_estimate() -> None:
    one = noise.gaussian(sigma=1).unit
    law = make_ratio_law(one, 1e-3, bound="upper")
    composed = compose([(law, 150_528)])
    assert composed.bound == "estimate"
    mu = 1e-3 * math.sqrt(2) * math.sqrt(150_528)
    assert -float(special.ndtri(composed.alpha(0.5))) == pytest.approx(mu, rel=1e-4)


def test_mismatched_directions_cannot_be_composed() -> None:
    one = noise.laplace(scale=1)
    low, high = make_ratio_law(one, 0.5), make_ratio_law(one, 0.5, bound="upper")
    with pytest.raises(RadiusError, match=r"lower.*upper"):
        compose([(low, 2), (high, 1)])


def test_fractional_counts_are_refused() -> None:
    with pytest.raises(RadiusError, match="the number must be whole"):
        compose([(make_ratio_law(noise.laplace(scale=1), 0.5), 2.5)])  # type: ignore[list-item]


def test_no_shift_cannot_be_told_apart() -> None:
    for shifts in ([], [(0.0, 5)]):
        t = compute_tradeoff(noise.laplace(sigma=1), shifts)
        np.testing.assert_allclose(t.beta(LEVELS), 1 - LEVELS, atol=1e-12)


def test_disjoint_supports_are_told_apart() -> None:
    t = compute_tradeoff(noise.uniform(scale=1), [(2.5, 1)], closed=False)
    assert float(t.beta(0.0)) == 0
    assert t.find_least_p_a() == 1


@given(
    index=st.integers(0, len(FAMILIES) - 1),
    shift=st.floats(1e-4, 3.0),
    count=st.sampled_from([1, 2, 7, 100, 3000]),
)
def test_is_a_trade_off_function(index: int, shift: float, count: int) -> None:
    t = compute_tradeoff(FAMILIES[index], [(shift / math.sqrt(count), count)], closed=False)
    alpha = np.linspace(0, 1, 41)
    beta = t.beta(alpha)
    assert np.all(beta <= 1 - alpha + 1e-12)
    assert np.all(np.diff(beta) <= 1e-12)
    assert np.all(np.diff(beta, n=2) >= -1e-12)
    inside = (beta > 1e-9) & (alpha > 0)
    np.testing.assert_allclose(t.alpha(beta[inside]), alpha[inside], atol=1e-9)


def test_envelope_dominates_each_law() -> None:
    gumbel = noise.parse("scipy.gumbel_r(0, 1)")
    assert isinstance(gumbel, noise.IID)
    laws = [make_ratio_law(gumbel, s) for s in (0.4, -0.4)]
    both = make_envelope(laws)
    t = np.linspace(-2, 2, 401)
    worst = np.maximum(hockey_stick(laws[0], t), hockey_stick(laws[1], t))
    got = hockey_stick(both, t)
    assert np.all(got >= worst - 1e-12)
    np.testing.assert_allclose(got, worst, atol=1e-5)


def test_envelope_of_log_ratios_beyond_all_numbers() -> None:
    """e^736 overflows; half of Q lies where P has nothing to speak of, and stays told apart."""
    law = RatioLaw(np.array([-736.0, 0.0, 736.0]), np.array([1e-320, 0.5, 0.5]), 0.0, "lower")
    found = make_envelope([law])
    assert found.infinite >= 0.5 - 1e-12
    at = np.array([-1.0, 0.0, 1.0])
    truth = 0.5 + 0.5 * np.maximum(-np.expm1(at), 0.0)
    assert np.all(hockey_stick(found, at) >= truth * (1 - 1e-12))


def test_envelope_of_one_law_is_that_law() -> None:
    law = make_ratio_law(noise.laplace(scale=1), 0.5)
    same = make_envelope([law])
    t = np.linspace(-1, 1, 101)
    assert np.all(hockey_stick(same, t) >= hockey_stick(law, t) - 1e-15)
    np.testing.assert_allclose(hockey_stick(same, t), hockey_stick(law, t), atol=1e-6)


def test_hockey_stick_of_known_atoms() -> None:
    law = RatioLaw(np.array([0.0, math.log(3)]), np.array([0.25, 0.6]), 0.15)
    np.testing.assert_allclose(
        hockey_stick(law, np.array([0.0, math.log(2)])), [0.15 + 0.6 * 2 / 3, 0.15 + 0.6 / 3]
    )


def test_huge_log_ratios_do_not_overflow() -> None:
    """General Normal 5 at a large shift: L reaches thousands, T stays a number."""
    for count in (1, 2):
        t = compute_tradeoff(noise.gennorm(beta=5, sigma=1), [(6.0, count)], closed=False)
        assert isinstance(t, Lines)
        assert t.t[-1] - t.t[0] > 1000
        assert np.isfinite(t.h).all()
        assert t.find_least_p_a() == pytest.approx(1.0, abs=1e-6)


def test_a_law_without_atoms_tells_everything() -> None:
    """A bounded noise moved by more than its width: its infinite mass may be 1 but for rounding."""
    empty = RatioLaw(np.zeros(0), np.zeros(0), 1.0 - 1.2e-16)
    for parts in (
        [(empty, 1)],
        [(empty, 3)],
        [(empty, 1), (make_ratio_law(noise.laplace(scale=1), 1), 2)],
    ):
        assert compose(parts).alpha(0.5) == 0.0
        assert compose(parts).beta(0.01) == 0.0
