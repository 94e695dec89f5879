"""Bounds that hold at every sample size at once, so that sampling may stop when it likes.

Both are mixtures of likelihood ratios (Robbins; Ville's inequality): under the hypothesis a mixture
is a martingale that starts at 1, so it ever reaches 1/α with probability at most α
(docs/theory.md#estimating-p_a-and-p_b).
"""

from __future__ import annotations

import math

from scipy import optimize, special

PRIOR = 0.5  # of both parameters of the Beta prior; any prior has the guarantee
# Relative, of the terms of a log-likelihood, which are below (n + 1)·log(n + 2): logarithms of the
# Gamma function are right to two units of 2e-16, and there are three of them beside two products.
LOG_ROUNDING = 2e-15
ROOT_ROUNDING = 1e-13  # what the root finder leaves (1e-15 + 1e-14·p), and the last exponential


def _log_mixture(k: int, n: int) -> float:
    """log of ∫ p^k (1 − p)^(n−k) under the Beta(1/2, 1/2) prior."""
    return float(special.betaln(k + PRIOR, n - k + PRIOR) - special.betaln(PRIOR, PRIOR))


def _bound_rounding(n: int) -> float:
    """What the logarithms of likelihoods of n votes may be off by."""
    return LOG_ROUNDING * (n + 1) * math.log(n + 2)


def anytime_lower_bound(k: int, n: int, alpha: float) -> float:
    """p such that, with probability ≥ 1 − α, it is below the true one at every n simultaneously."""
    if k == 0:
        return 0.0
    goal = _log_mixture(k, n) + math.log(alpha) - _bound_rounding(n)

    def excess(p: float) -> float:
        return float(special.xlogy(k, p) + special.xlog1py(n - k, -p)) - goal

    low = 1e-300
    if excess(low) >= 0:
        return 0.0
    if k == n:
        return max(0.0, math.exp(goal / n) - ROOT_ROUNDING)
    root = float(optimize.brentq(excess, low, k / n, xtol=1e-15, rtol=1e-14))
    return max(0.0, root - ROOT_ROUNDING)


def log_wealth(k: int, n: int, p: float, *, above: bool) -> float:
    """log of the evidence against "true probability ≤ p" (`above`) or "≥ p" (not `above`).

    A mixture over the alternatives only, from below; reaching log(1/α) at any n refutes the
    hypothesis at α.
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
    evidence = _log_mixture(k, n) + math.log(float(share) / float(prior)) - null
    return evidence - _bound_rounding(n)
