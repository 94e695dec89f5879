"""Bounds that hold at every sample size at once, so that sampling may stop when it likes.

Both are mixtures of likelihood ratios (Robbins; Ville's inequality): under the hypothesis a mixture
is a martingale that starts at 1, so it ever reaches 1/α with probability at most α.
"""

from __future__ import annotations

import math

from scipy import special

PRIOR = 0.5


def _log_mixture(k: int, n: int) -> float:
    """log of ∫ p^k (1 − p)^(n−k) under the Beta(1/2, 1/2) prior."""
    return float(special.betaln(k + PRIOR, n - k + PRIOR) - special.betaln(PRIOR, PRIOR))


def anytime_lower_bound(k: int, n: int, alpha: float) -> float:
    """p such that, with probability ≥ 1 − α, it is below the true one at every n simultaneously."""
    if k == 0:
        return 0.0
    goal = _log_mixture(k, n) + math.log(alpha)

    def excess(p: float) -> float:
        return float(special.xlogy(k, p) + special.xlog1py(n - k, -p)) - goal

    low = 1e-300
    if excess(low) >= 0:
        return 0.0
    if k == n:
        return math.exp(goal / n)
    from scipy import optimize  # a third of the time that `unicr certify --help` would take

    found = float(optimize.brentq(excess, low, k / n, xtol=1e-15, rtol=1e-14))
    return max(0.0, found - 1e-13)


def log_wealth(k: int, n: int, p: float, *, above: bool) -> float:
    """log of the evidence against "true probability ≤ p" (`above`) or "≥ p" (not `above`).

    A mixture over the alternatives only; reaching log(1/α) at any n refutes the hypothesis at α.
    """
    a, b = k + PRIOR, n - k + PRIOR
    share, prior = (
        (special.betaincc(a, b, p), special.betaincc(PRIOR, PRIOR, p))
        if above
        else (special.betainc(a, b, p), special.betainc(PRIOR, PRIOR, p))
    )
    if share <= 0:
        return -math.inf
    null = float(special.xlogy(k, p) + special.xlog1py(n - k, -p))
    return _log_mixture(k, n) + math.log(float(share) / float(prior)) - null
