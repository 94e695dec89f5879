"""From votes to probabilities: exact binomial bounds, and how α is shared among several of them.

Every bound is Clopper–Pearson, one-sided: it errs with probability at most its α, whatever n and p.
"""

from __future__ import annotations

from collections.abc import Sequence

from scipy import special

from unicr.errors import CertifyError


def _check(k: int, n: int, alpha: float) -> None:
    if not 0 <= k <= n:
        raise CertifyError(f"{k} successes in {n} trials: the count must lie between 0 and n")
    if not 0 < alpha < 1:
        raise CertifyError(f"alpha={alpha!r} must lie strictly between 0 and 1")


def lower_bound(k: int, n: int, alpha: float) -> float:
    """p with P(p > true probability) ≤ α, from k successes in n trials (Clopper–Pearson)."""
    _check(k, n, alpha)
    return 0.0 if k == 0 else float(special.betaincinv(k, n - k + 1, alpha))


def upper_bound(k: int, n: int, alpha: float) -> float:
    """p with P(p < true probability) ≤ α, from k successes in n trials (Clopper–Pearson)."""
    _check(k, n, alpha)
    return 1.0 if k == n else float(special.betainccinv(k + 1, n - k, alpha))


def binary_bounds(counts: Sequence[int], top: int, alpha: float) -> tuple[float, float]:
    """(p_A, 1 − p_A): one bound at α, every other class gets the rest."""
    p_a = lower_bound(int(counts[top]), int(sum(counts)), alpha)
    return p_a, 1.0 - p_a


def three_bounds(
    counts: Sequence[int], top: int, runner_up: int, alpha: float
) -> tuple[float, float]:
    """(p_A, p_B) by three tests at α/3: the top class from below, and from above the runner-up
    and all remaining classes together.

    `top` and `runner_up` must have been chosen on other samples. The larger upper bound holds for
    every class but the top one, with total failure probability at most α.
    """
    if top == runner_up:
        raise CertifyError(f"the runner-up must differ from the top class {top}")
    n = int(sum(counts))
    p_a = lower_bound(int(counts[top]), n, alpha / 3)
    rest = n - int(counts[top]) - int(counts[runner_up])
    second = upper_bound(int(counts[runner_up]), n, alpha / 3)
    p_b = max(second, upper_bound(rest, n, alpha / 3))
    return p_a, min(p_b, 1.0 - p_a)
