"""How far along one direction a certificate holds with a stated confidence, from samples.

Three ways to accept one perturbation δ with failure probability η: the paper's
Dvoretzky–Kiefer–Wolfowitz form, Clopper–Pearson with thresholds fixed on other samples (the
default), and a Hoeffding bound on hockey-stick divergences. The largest δ is then found by
fixed-sequence testing, which costs no share of η.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unicr.binomial import lower_bound, upper_bound
from unicr.extras import torch
from unicr.montecarlo._logratio import LogRatios
from unicr.montecarlo._settings import Method
from unicr.values import Array

LADDER = (0.5, 0.7, 0.8, 0.87, 0.92, 0.95, 0.97, 0.985, 1.0, 1.015)  # times the proposed λ
HALVINGS = 7  # halvings of the proposed λ, to 1 % of the estimate
HOPED_DEVIATIONS = (
    4.0,
    3.0,
    2.5,
    2.0,
    1.5,
    1.0,
    0.5,
)  # deviations by which a plan may hope to pass
PROPOSED_DEVIATIONS = 1.0  # and by which the proposed λ should


class Ratios(NamedTuple):
    """L of one perturbation under P and Q, each with uniform numbers that break ties."""

    p: Array
    q: Array
    ties_p: Array
    ties_q: Array


class Threshold(NamedTuple):
    """The randomised set {L < t} ∪ {L = t, tie ≤ v}: a Neyman–Pearson test for every t and v."""

    t: float
    v: float

    def below(self, values: Array, ties: Array) -> int:
        """How many samples lie in the set."""
        return int(np.sum(values < self.t) + np.sum((values == self.t) & (ties <= self.v)))


def compute_dkw_width(n: int, failure: float) -> float:
    """Δ such that F_P ≤ F̂_P + Δ and F_Q ≥ F̂_Q − Δ everywhere, except with probability `failure`.

    See docs/theory.md#the-monte-carlo-engine.
    """
    return math.sqrt(math.log(2 / failure) / (2 * n))


def _place_threshold(values: Array, ties: Array, count: int) -> Threshold:
    """The set that holds the first `count` of these samples, which are in order."""
    if count <= 0:
        return Threshold(-math.inf, -1.0)
    return Threshold(float(values[count - 1]), float(ties[count - 1]))


def accept_dkw(fresh: Ratios, p_a: float, p_b: float, failure: float) -> bool:
    """Thresholds and counts from the same samples, bounds uniform in t.

    docs/theory.md#the-monte-carlo-engine.

    A: F̂_P(t_A) + Δ ≤ p_A, a = F̂_Q(t_A) − Δ. B: 1 − F̂_P(t_B⁻) − Δ ≥ p_B, b = 1 − F̂_Q(t_B⁻) + Δ.
    Certified iff a ≥ b, binary iff a ≥ ½. Wrong with probability at most `failure`: two one-sided
    events, which serve B as well.
    """
    n = len(fresh.p)
    width = compute_dkw_width(n, failure)
    if p_a <= width:
        return False
    order = np.lexsort((fresh.ties_p, fresh.p))
    values, ties = fresh.p[order], fresh.ties_p[order]
    at_a = _place_threshold(values, ties, math.floor((p_a - width) * n))
    a = at_a.below(fresh.q, fresh.ties_q) / n - width
    if p_b >= 1.0 - p_a:
        return a >= 0.5
    outside = math.ceil((p_b + width) * n)
    if outside > n:
        return False
    at_b = _place_threshold(values, ties, n - outside)
    b = 1.0 - at_b.below(fresh.q, fresh.ties_q) / n + width
    return a >= b


class Proposal(NamedTuple):
    """Thresholds for Clopper–Pearson, and by how many standard deviations they should pass."""

    at_a: Threshold
    at_b: Threshold
    deviations: float


def _share_failure(binary: bool, failure: float) -> float:
    return failure / (2 if binary else 4)


def choose_thresholds(select: Ratios, n: int, p_a: float, p_b: float, failure: float) -> Proposal:
    """Thresholds from old samples with which tests on n fresh ones pass by the largest margin."""
    binary = p_b >= 1.0 - p_a
    share = _share_failure(binary, failure)
    m = len(select.p)
    order = np.lexsort((select.ties_p, select.p))
    values, ties = select.p[order], select.ties_p[order]
    for deviations in HOPED_DEVIATIONS:
        inside = _choose_count(m, n, p_a, share, deviations)
        at_a = _place_threshold(values, ties, inside)
        at_b = Threshold(math.inf, -1.0)
        if not binary and p_b > 0:
            at_b = _place_threshold(values, ties, _choose_count(m, n, 1.0 - p_b, share, deviations))
        a = _expect_count(at_a.below(select.q, select.ties_q), m, n, -deviations)
        b = _expect_count(m - at_b.below(select.q, select.ties_q), m, n, deviations)
        least = 0.5 if binary else upper_bound(b, n, share)
        if inside > 0 and lower_bound(a, n, share) >= least:
            return Proposal(at_a, at_b, deviations)
    return Proposal(at_a, at_b, -1.0)


def _expect_count(count: int, m: int, n: int, deviations: float) -> int:
    """The count of n fresh samples that lies so many deviations off what m old ones counted."""
    share = count / m
    value = n * share + deviations * math.sqrt(n * share * (1 - share) * (1 + n / m))
    return int(min(max(math.ceil(value) if deviations > 0 else math.floor(value), 0), n))


def accept_clopper_pearson(
    select: Ratios, fresh: Ratios, p_a: float, p_b: float, failure: float
) -> bool:
    """Thresholds from `select`, counts from independent samples: exact binomial bounds.

    Binary: P(L ≤ t_A) ≤ p_A and Q(L ≤ t_A) ≥ ½, each tested at `failure`/2. Otherwise four tests
    at `failure`/4. Wrong with probability at most `failure`, whatever the thresholds are.

    See docs/theory.md#the-monte-carlo-engine.
    """
    binary = p_b >= 1.0 - p_a
    share = _share_failure(binary, failure)
    n = len(fresh.p)
    at_a, at_b, _ = choose_thresholds(select, n, p_a, p_b, failure)
    if upper_bound(at_a.below(fresh.p, fresh.ties_p), n, share) > p_a:
        return False
    a = lower_bound(at_a.below(fresh.q, fresh.ties_q), n, share)
    if binary:
        return a >= 0.5
    if lower_bound(n - at_b.below(fresh.p, fresh.ties_p), n, share) < p_b:
        return False
    return a >= upper_bound(n - at_b.below(fresh.q, fresh.ties_q), n, share)


def _choose_count(m: int, n: int, limit: float, failure: float, deviations: float) -> int:
    """The most of m old samples whose share will still test as ≤ `limit` on n fresh ones."""
    low, high = 0, m
    while high - low > 1:
        middle = (low + high) // 2
        if upper_bound(_expect_count(middle, m, n, deviations), n, failure) <= limit:
            low = middle
        else:
            high = middle
    return low


def accept_hockey_stick(
    select: Ratios, fresh: Ratios, p_a: float, p_b: float, failure: float
) -> bool:
    """T(α) ≥ 1 − H(t) − e^t·α for every t, and H(t) = E_Q[(1 − e^(t − L))₊] is a mean in [0, 1].

    The slopes t are fixed on `select`; one Hoeffding bound on fresh samples then gives K from
    below. Wrong with probability at most `failure`. Uses Q alone, and atoms need no care.

    See docs/theory.md#the-monte-carlo-engine.
    """
    n = len(fresh.q)
    levels = [_choose_slope(select.q, 1.0 - p_a)]
    if p_b < 1.0 - p_a:
        levels.append(_choose_slope(select.q, p_b))
    alphas = (1.0 - p_a, p_b)[: len(levels)]
    mean = cost = 0.0
    for t, alpha in zip(levels, alphas, strict=True):
        with np.errstate(over="ignore"):
            mean += float(np.mean(np.maximum(-np.expm1(t - fresh.q), 0.0)))
        cost += math.exp(t) * alpha
    upper = mean + len(levels) * math.sqrt(math.log(1 / failure) / (2 * n))
    return len(levels) - upper - cost >= 0.5 * (1 if len(levels) == 1 else 2)


def _choose_slope(values: Array, alpha: float) -> float:
    """The t that maximises 1 − Ĥ(t) − e^t·α: where the P-mass above t, weighed from Q, is α."""
    descending = -np.sort(-values)
    with np.errstate(over="ignore"):
        mass = np.cumsum(np.exp(-descending)) / len(values)
    at = min(int(np.searchsorted(mass, alpha)), len(values) - 1)
    return float(np.clip(descending[at], -700.0, 700.0))


def accept(
    method: Method, select: Ratios, fresh: Ratios, p_a: float, p_b: float, failure: float
) -> bool:
    """Whether the perturbation is certified, with failure probability at most `failure`.

    See docs/theory.md#the-monte-carlo-engine.
    """
    if method == "dkw":
        return accept_dkw(fresh, p_a, p_b, failure)
    if method == "hockey-stick":
        return accept_hockey_stick(select, fresh, p_a, p_b, failure)
    return accept_clopper_pearson(select, fresh, p_a, p_b, failure)


def confirm_radius(
    select: LogRatios,
    fresh: LogRatios,
    direction: torch.Tensor,
    estimate: float,
    p_a: float,
    p_b: float,
    *,
    method: Method,
    failure: float,
    seed: int,
) -> float:
    """The largest λ ≤ `estimate` at which λ·`direction` is accepted, with confidence 1 − `failure`.

    The old samples (`select`) propose a ladder of λ and the thresholds at each rung. The fresh ones
    test the rungs upwards and stop at the first that fails: a fixed-sequence test, in which a wrong
    answer needs the first rung beyond the boundary to be accepted, so the total failure probability
    is `failure` and not a sum over rungs. It speaks of this direction and of the rungs: where K is
    not monotone along the ray, a gap between two rungs can hide. 0 if no rung is accepted.

    See docs/theory.md#the-monte-carlo-engine.
    """
    generator = np.random.default_rng([seed & (2**63 - 1), 0x715])
    ties = [generator.random((2, ratios.samples)) for ratios in (select, fresh)]

    def at(ratios: LogRatios, radius: float, which: int) -> Ratios:
        move = direction[None] * radius
        under_q = ratios.under_q(move)[0]
        under_p = under_q if method == "hockey-stick" else ratios.under_p(move)[0]
        return Ratios(under_p, under_q, *ties[which])

    def is_accepted(radius: float) -> bool:
        old = at(select, radius, 0)
        if method == "clopper-pearson":
            return (
                choose_thresholds(old, fresh.samples, p_a, p_b, failure).deviations
                >= PROPOSED_DEVIATIONS
            )
        return accept(method, old, old, p_a, p_b, failure)

    low, high = 0.0, estimate
    if is_accepted(high):
        low = high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if low < high:
            low, high = (middle, high) if is_accepted(middle) else (low, middle)
    low = max(low, estimate / 2**HALVINGS)
    confirmed = 0.0
    rungs = [step * low for step in LADDER if step * low < estimate]
    for radius in [*rungs, *([estimate] if low == high else [])]:
        new = at(fresh, radius, 1)
        old = new if method == "dkw" else at(select, radius, 0)
        if not accept(method, old, new, p_a, p_b, failure):
            break
        confirmed = radius
    return confirmed
