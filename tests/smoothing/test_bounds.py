"""Binomial bounds against scipy, their coverage exactly, and anytime bounds by simulation."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from unicr.errors import CertifyError
from unicr.noise import gaussian
from unicr.smoothing import (
    Plan,
    Radii,
    Rule,
    Votes,
    anytime_lower_bound,
    log_wealth,
    lower_bound,
    read_norms,
    upper_bound,
)
from unicr.smoothing.rules import Fixed, ThreeTests, Union


@pytest.mark.parametrize("n", [1, 10, 1000, 100_000])
def test_clopper_pearson_against_scipy(n: int) -> None:
    for k in sorted({0, 1, n // 3, n - 1, n}):
        for alpha in (0.05, 0.001):
            exact = stats.binomtest(k, n).proportion_ci(1 - 2 * alpha, method="exact")
            assert lower_bound(k, n, alpha) == pytest.approx(exact.low, abs=1e-12)
            assert upper_bound(k, n, alpha) == pytest.approx(exact.high, abs=1e-12)


@pytest.mark.parametrize(("k", "n"), [(1, 9), (60, 100), (99, 100), (990, 1000)])
@pytest.mark.parametrize("alpha", [0.05, 1e-3, 1e-6])
def test_rounding_is_outwards(k: int, n: int, alpha: float) -> None:
    """To 40 digits: at a lower bound k or more successes are no likelier than α."""
    with mpmath.workdps(40):
        low, high = (mpmath.mpf(bound(k, n, alpha)) for bound in (lower_bound, upper_bound))
        at_least = mpmath.betainc(k, n - k + 1, 0, low, regularized=True)
        at_most = mpmath.betainc(k + 1, n - k, high, 1, regularized=True)
        assert alpha * (1 - 1e-4) < at_least <= alpha
        assert alpha * (1 - 1e-4) < at_most <= alpha


@pytest.mark.parametrize(
    ("k", "n"), [(7, 9), (1000, 1000), (90_000, 100_000), (10**7, 10**7), (7 * 10**6, 10**7)]
)
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_anytime_rounding_is_outwards(k: int, n: int, alpha: float) -> None:
    """To 40 digits: at the bound the mixture is at least 1/α times the likelihood."""
    p = anytime_lower_bound(k, n, alpha)
    with mpmath.workdps(40):
        half = mpmath.mpf("0.5")

        def log_beta(a: mpmath.mpf, b: mpmath.mpf) -> mpmath.mpf:
            return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)

        mixture = log_beta(k + half, n - k + half) - log_beta(half, half)
        rest = (n - k) * mpmath.log1p(-mpmath.mpf(p)) if n > k else mpmath.mpf(0)
        ratio = mixture - k * mpmath.log(mpmath.mpf(p)) - rest
        allowed = mpmath.log(1 / mpmath.mpf(alpha))
        assert allowed <= ratio < allowed + mpmath.mpf("1e-5")


def test_all_successes_is_the_classic_formula() -> None:
    assert lower_bound(100_000, 100_000, 0.001) == pytest.approx(0.001 ** (1 / 100_000))


@pytest.mark.parametrize("p", [0.02, 0.5, 0.9, 0.999])
def test_exact_coverage(p: float) -> None:
    n, alpha = 60, 0.05
    k = np.arange(n + 1)
    weights = stats.binom.pmf(k, n, p)
    wrong_low = sum(w for i, w in enumerate(weights) if lower_bound(i, n, alpha) > p)
    wrong_high = sum(w for i, w in enumerate(weights) if upper_bound(i, n, alpha) < p)
    assert wrong_low <= alpha + 1e-12
    assert wrong_high <= alpha + 1e-12


def test_bad_counts_are_refused() -> None:
    for bad in ((5, 4, 0.1), (-1, 4, 0.1), (1, 4, 0.0), (1, 4, 1.0), (1, 4, math.nan)):
        with pytest.raises(CertifyError):
            lower_bound(*bad)
        with pytest.raises(CertifyError):
            upper_bound(*bad)


RADII = Radii(gaussian(sigma=1), read_norms(2), 2)


def concluded(rule: Rule, votes: Votes, alpha: float) -> tuple[float, float]:
    return rule.conclude(votes, Plan(n=votes.n, alpha=alpha, rule=rule), RADII)


def test_one_bound_leaves_the_rest_to_the_others() -> None:
    p_a, p_b = concluded(Fixed(), Votes(95, 5, 100), 0.01)
    assert p_a == lower_bound(95, 100, 0.01)
    assert p_b == 1 - p_a
    assert concluded(Union(10), Votes(95, 5, 100), 0.01)[0] == lower_bound(95, 100, 0.001)


def test_three_bounds_hold_together_by_simulation() -> None:
    """4 classes, 20,000 repetitions at α = 0.05: false alarm rate 1e-6 (binomial quantile)."""
    rng = np.random.default_rng(1)
    p = np.array([0.5, 0.25, 0.15, 0.1])
    alpha, repeats = 0.05, 20_000
    wrong = 0
    for counts in rng.multinomial(150, p, size=repeats):
        p_a, p_b = concluded(ThreeTests(), Votes(int(counts[0]), int(counts[1]), 150), alpha)
        wrong += p_a > p[0] or p_b < p[1:].max()
    assert wrong <= stats.binom.isf(1e-6, repeats, alpha)


def test_three_bounds_cover_a_class_that_was_not_the_runner_up() -> None:
    _, p_b = concluded(ThreeTests(), Votes(60, 1, 100), 0.01)
    assert p_b > 0.39


def test_three_bounds_are_clipped_and_one_class_needs_one_only() -> None:
    p_a, p_b = concluded(ThreeTests(), Votes(99, 1, 100), 0.01)
    assert p_b <= 1 - p_a
    assert concluded(ThreeTests(), Votes(100, None, 100), 0.01)[0] == lower_bound(100, 100, 0.01)


@pytest.mark.parametrize("p", [0.6, 0.95])
def test_anytime_bound_holds_at_every_n_at_once(p: float) -> None:
    """1,500 paths of 600 samples, looked at after each sample, α = 0.05; false alarm 1e-6."""
    rng = np.random.default_rng(2)
    alpha, paths, steps = 0.05, 1500, 600
    successes = np.cumsum(rng.random((paths, steps)) < p, axis=1)
    looks = [1, 2, 3, 5, 8, *range(10, steps + 1, 10)]
    wrong = 0
    for path in successes:
        wrong += any(anytime_lower_bound(int(path[n - 1]), n, alpha) > p for n in looks)
    assert wrong <= stats.binom.isf(1e-6, paths, alpha)


def test_anytime_bound_is_below_the_fixed_one_but_close() -> None:
    for k, n in ((99_000, 100_000), (950, 1000), (100, 100)):
        fixed = lower_bound(k, n, 0.001)
        anytime = anytime_lower_bound(k, n, 0.001)
        assert anytime < fixed
        assert 1 - anytime < 3 * (1 - fixed)
    assert anytime_lower_bound(0, 10, 0.001) == 0


def test_wealth_is_a_martingale_under_its_hypothesis() -> None:
    """Exact: E[wealth after one more sample] equals the wealth, under p itself."""
    for k, n, p, above in ((3, 5, 0.6, True), (50, 80, 0.7, False), (0, 0, 0.5, True)):
        now = math.exp(log_wealth(k, n, p, above=above))
        up = math.exp(log_wealth(k + 1, n + 1, p, above=above))
        down = math.exp(log_wealth(k, n + 1, p, above=above))
        assert p * up + (1 - p) * down == pytest.approx(now, rel=1e-9)


def test_wealth_grows_under_the_alternative() -> None:
    assert log_wealth(990, 1000, 0.95, above=True) > math.log(1000)
    assert log_wealth(900, 1000, 0.95, above=False) > math.log(1000)
    assert log_wealth(900, 1000, 0.95, above=True) < 0
    assert log_wealth(10, 100_000, 0.9, above=True) == -math.inf
