"""All n samples, one bound with a random tie-breaker: exact confidence (Stevens; Voráček 2024)."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy import special

from unicr.binomial import lower_bound
from unicr.errors import CertifyError
from unicr.smoothing._plan import Plan, Rule, Votes

if TYPE_CHECKING:
    from unicr.smoothing._radii import Radii

LEAST = 0.05  # a smaller draw counts as this one: no bound of 1 from finitely many votes
SHAVE = 1e-13  # off the root: the root finder leaves 1e-15 + 1e-14·p, the Beta function 1e-14


def randomised_lower_bound(k: int, n: int, alpha: float, u: float) -> float:
    """p with P(X > k) + u·P(X = k) = α, X ~ Binomial(n, p): P(p > true probability) ≤ α.

    For u uniform the probability is α exactly; u = 1 is Clopper–Pearson, and a larger u than the
    one drawn is always allowed.
    """
    if not 0 <= k <= n or not 0 <= u <= 1:
        raise CertifyError(
            f"{k} successes in {n} trials with u={u!r}: k must lie between 0 and n, and u between "
            "0 and 1"
        )
    u = max(u, LEAST)
    if k == n:
        return min(math.exp(math.log(alpha / u) / n), 1.0) - SHAVE
    low, high = lower_bound(k, n, alpha), lower_bound(k + 1, n, alpha)

    def excess(p: float) -> float:
        beyond = float(special.betainc(k + 1, n - k, p))  # P(X > k)
        from_k = float(special.betainc(k, n - k + 1, p)) if k else 1.0  # P(X >= k)
        return beyond + u * (from_k - beyond) - alpha

    if excess(low) >= 0 or excess(high) <= 0:
        return low
    from scipy import optimize  # a third of the time that `unicr certify --help` would take

    found = float(optimize.brentq(excess, low, high, xtol=1e-15, rtol=1e-14))
    return max(low, found - SHAVE)


@dataclass(frozen=True)
class Randomised(Rule):
    """p_A from below at exactly α; every other class gets the rest.

    u is a digest of `seed` and of the selection votes, so it knows nothing of the fresh ones. A
    chosen seed is a chosen u, which may err with more than α: a run takes it from its nonce, which
    nobody chose (`with_key`). Inputs with equal selection votes have the same u: each certificate
    errs with at most α, together they are not independent.
    """

    name = "randomised"
    proof = (
        "P(X > k) + u·P(X = k) with u uniform and independent of X is uniform, so it falls below α "
        "with probability α (randomised Clopper–Pearson)"
    )
    seed: int = 0

    def check_plan(self, plan: Plan) -> None:
        """A whole number."""
        if not isinstance(self.seed, int) or self.seed < 0:
            raise CertifyError(f"seed={self.seed!r} must be a whole number of at least 0")

    def with_key(self, *words: object) -> Randomised:
        """With the seed that follows from these words, whatever it was."""
        digest = hashlib.sha256("|".join(map(str, words)).encode()).digest()
        return Randomised(int.from_bytes(digest[:6], "big"))

    def conclude(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """(p_A, 1 − p_A) at exactly α (docs/certificates.md#how-samples-are-used)."""
        words = f"randomised|{self.seed}|{','.join(map(str, votes.selection))}"
        digest = hashlib.sha256(words.encode()).digest()
        u = int.from_bytes(digest[:6], "big") / 2**48
        p_a = randomised_lower_bound(votes.top, votes.n, plan.alpha, u)
        return p_a, 1.0 - p_a

    def best(self, plan: Plan) -> float:
        """Unanimous votes and the luckiest draw."""
        return randomised_lower_bound(plan.n, plan.n, plan.alpha, 0.0)
