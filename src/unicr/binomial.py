"""From votes to probabilities: exact binomial bounds.

Every bound is Clopper–Pearson, one-sided: it errs with probability at most its α, whatever n and p
(docs/theory.md#estimating-p_a-and-p_b).
"""

from __future__ import annotations

from scipy import special

from unicr.errors import CertifyError

# Relative, off a lower and onto an upper bound: inverses of the Beta function are right to some
# 1e-14 of their value (tests/smoothing/test_bounds.py compares with 40 digits).
BETA_CHARGE = 1e-13


def _check_counts(k: int, n: int, alpha: float) -> None:
    if not 0 <= k <= n:
        raise CertifyError(
            f"{k} successes in {n} trials: the number of successes must lie between 0 and n"
        )
    if not 0 < alpha < 1:
        raise CertifyError(f"alpha={alpha!r} must lie strictly between 0 and 1")


def lower_bound(k: int, n: int, alpha: float) -> float:
    """p with P(p > true probability) ≤ α, from k successes in n trials (Clopper–Pearson)."""
    _check_counts(k, n, alpha)
    if k == 0:
        return 0.0
    return float(special.betaincinv(k, n - k + 1, alpha)) * (1.0 - BETA_CHARGE)


def upper_bound(k: int, n: int, alpha: float) -> float:
    """p with P(p < true probability) ≤ α, from k successes in n trials (Clopper–Pearson)."""
    _check_counts(k, n, alpha)
    if k == n:
        return 1.0
    return min(float(special.betainccinv(k + 1, n - k, alpha)) * (1.0 + BETA_CHARGE), 1.0)
