"""From votes to probabilities: exact binomial bounds.

Every bound is Clopper–Pearson, one-sided: it errs with probability at most its α, whatever n and p.
"""

from __future__ import annotations

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
