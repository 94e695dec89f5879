"""Stronger bounds from the same votes: confidence by counting, and what early looks save."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from unicr.binomial import lower_bound
from unicr.errors import CertifyError
from unicr.noise import gaussian
from unicr.norms import Norm
from unicr.smoothing import Plan, Radii, Votes
from unicr.smoothing.rules import Pilot, Randomised
from unicr.smoothing.rules.randomised import randomised_lower_bound

# p_A of every 25th input published by Li et al. 2022 (github.com/llylly/DSRS), middle of the
# interval: CIFAR-10, sigma 0.5, wrong and right ones
CIFAR = (
    0.8908,
    0.6525,
    0.0718,
    0.9961,
    0.9983,
    0.9559,
    0.8553,
    0.9083,
    0.664,
    0.7932,
    0.6301,
    0.9969,
    0.9976,
    0.0377,
    0.5579,
    0.2146,
    0.01,
    0.2159,
    0.2116,
    0.2462,
    0.9999,
    0.7741,
    0.7034,
    0.667,
    0.5219,
    0.3771,
    0.025,
    0.104,
    0.0865,
    0.9563,
    0.9999,
    0.0002,
    0.9826,
    0.9828,
    0.9649,
    0.9979,
    0.9998,
    0.0591,
    0.939,
    0.9404,
)
RADII = Radii(gaussian(sigma=0.5), (Norm(2.0),), 3072)


@pytest.mark.parametrize(("n", "p"), [(40, 0.5), (40, 0.97), (7, 0.2)])
def test_the_randomised_bound_fails_with_probability_alpha(n: int, p: float) -> None:
    """Every k with every u of a grid, weighted: an exact sum but for the grid of u."""
    alpha, draws = 0.1, (np.arange(400) + 0.5) / 400
    share = [
        np.mean([randomised_lower_bound(k, n, alpha, u) > p for u in draws]) for k in range(n + 1)
    ]
    failure = float(np.sum(stats.binom.pmf(np.arange(n + 1), n, p) * np.array(share)))
    assert failure <= alpha + 1 / 800
    assert failure >= 0.85 * alpha  # draws below 0.05 count as 0.05
    assert failure > float(special.bdtrc(_least(n, p, alpha) - 1, n, p))  # Clopper–Pearson's own


def _least(n: int, p: float, alpha: float) -> int:
    """The fewest votes at which Clopper–Pearson errs; n + 1 where it cannot."""
    return next((k for k in range(n + 1) if lower_bound(k, n, alpha) > p), n + 1)


def test_the_randomised_bound_lies_between_two_counts() -> None:
    for k, n in ((0, 50), (20, 50), (49, 50), (99_990, 100_000)):
        bounds = [randomised_lower_bound(k, n, 0.001, u) for u in (1.0, 0.7, 0.3, 0.0)]
        assert bounds == sorted(bounds)
        assert bounds[0] == pytest.approx(lower_bound(k, n, 0.001), abs=2e-13)
        assert bounds[-1] <= lower_bound(k + 1, n, 0.001)
    assert randomised_lower_bound(1000, 1000, 0.001, 0.5) == pytest.approx(0.002 ** (1 / 1000))
    with pytest.raises(CertifyError, match="5 successes in 4 trials"):
        randomised_lower_bound(5, 4, 0.1, 0.5)


def test_the_draw_does_not_look_at_the_fresh_votes() -> None:
    plan = Plan(n=1000, rule=Randomised(3))
    one = plan.rule.conclude(Votes(990, 5, 1000, (0, 100)), plan, RADII)
    assert one == plan.rule.conclude(Votes(990, 8, 1000, (0, 100)), plan, RADII)
    other = {plan.rule.conclude(Votes(990, 5, 1000, (k, 100 - k)), plan, RADII) for k in range(9)}
    assert len(other) == 9
    assert Randomised(5).with_key("nonce", "m") == Randomised().with_key("nonce", "m")
    assert Randomised().with_key("nonce", "m") != Randomised().with_key("other", "m")
    with pytest.raises(CertifyError, match="whole number"):
        Plan(rule=Randomised(-1))


def chosen(k: int, n0: int) -> tuple[int, ...]:
    """k of n0 selection votes for the class, the rest for five others."""
    return (k, *(len(range(i, n0 - k, 5)) for i in range(5)))


@pytest.mark.parametrize(("n0", "tol", "times"), [(1000, 0.01, 3.3), (100, 0.01, 3.0)])
def test_the_first_votes_save_three_times_at_the_same_average_radius(
    n0: int, tol: float, times: float
) -> None:
    """docs/peers.md: about one per cent less than all votes give, counting the first ones too."""
    rng, n = np.random.default_rng(9), 100_000
    p = np.repeat(CIFAR, 40)
    plan = Plan(n0=n0, n=n)
    plan = replace(plan, rule=Pilot(tol / RADII.first(plan.rule.best(plan))))
    first = rng.binomial(n0, p)
    size = {
        k: plan.rule.next(Votes(0, 0, 0, chosen(k, n0)), plan, RADII)
        for k in np.unique(first).tolist()
    }
    taken = np.array([size[k] for k in first.tolist()])
    radius = [
        np.mean([RADII.first(lower_bound(k, m, 0.001)) for k, m in zip(top, each, strict=True)])
        for top, each in ((rng.binomial(n, p), np.full(p.size, n)), (rng.binomial(taken, p), taken))
    ]
    assert (n + 100) / (taken.mean() + n0) >= times
    assert radius[1] >= 0.989 * radius[0]


@pytest.mark.parametrize("p", [0.55, 0.9, 0.99])
def test_the_sample_size_of_first_votes_costs_no_confidence(p: float) -> None:
    """Given the first votes, whatever they were, the error is counted exactly."""
    n0, alpha = 20, 0.1
    plan = Plan(n0=n0, n=500, alpha=alpha, rule=Pilot(0.03))
    sizes = set()
    for k in range(11, n0 + 1, 3):
        selection = chosen(k, n0)
        n = plan.rule.next(Votes(0, 0, 0, selection), plan, RADII)

        def wrong(top: int, n: int = n, selection: tuple[int, ...] = selection) -> bool:
            return plan.rule.conclude(Votes(top, 0, n, selection), plan, RADII)[0] > p

        low, high = 0, n + 1  # the least top that errs is in (low, high]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if wrong(middle) else (middle, high)
        assert stats.binom.sf(high - 1, n, p) <= alpha
        assert plan.rule.conclude(Votes(n + 7, 0, n + 7, selection), plan, RADII)[0] == 0
        assert plan.rule.next(Votes(n, 0, n, selection), plan, RADII) == 0
        sizes.add(n)
    assert len(sizes) > 1
