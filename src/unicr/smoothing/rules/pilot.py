"""The votes that choose the class choose the sample size too: nothing of α is spent on looking."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from unicr.binomial import lower_bound
from unicr.errors import CertifyError
from unicr.smoothing._plan import Plan, Rule, Votes

if TYPE_CHECKING:
    from unicr.smoothing._radii import Radii

# They decide the cost alone: whatever size the n0 votes choose, the bound holds.
FEWEST = 60  # samples: of fewer nothing worth having is certified
POINTS = 16  # quantiles of p_A that stand for its distribution
PRIOR = 0.5  # of both parameters of the Beta distribution before the n0 votes


@dataclass(frozen=True)
class Pilot(Rule):
    """The fewest samples that are expected to lose at most this `share` of the largest radius.

    The expectation is over what p_A may be after the n0 votes, for Gaussian radii. Sizes are n,
    n/√2, n/2, …. They follow from the votes and Φ⁻¹ alone, so that `verify` finds the same ones
    with any other curves.
    """

    share: float = 0.01
    name = "pilot"
    proof = (
        "the n0 votes alone choose the sample size, so the fresh votes are binomial given it, and "
        "Clopper–Pearson errs with probability ≤ α"
    )

    def check_plan(self, plan: Plan) -> None:
        """A share, not negative."""
        if not 0 <= self.share < math.inf:
            raise CertifyError(f"share={self.share!r} must be a finite number of at least 0")

    def size(self, votes: Votes, plan: Plan) -> int:
        """The fewest samples whose radius is expected to be little below that of all n."""
        top, n0 = max(votes.selection, default=0), sum(votes.selection)
        u = (np.arange(POINTS) + 0.5) / POINTS
        chances = special.betaincinv(top + PRIOR, n0 - top + PRIOR, u).tolist()

        def expected(n: int) -> float:
            bounds = [lower_bound(round(p * n), n, plan.alpha) for p in chances]
            return float(np.mean(np.maximum(special.ndtri(bounds), 0.0)))

        enough = expected(plan.n) - self.share * float(special.ndtri(self.best(plan)))
        low, high = 0, 0
        while int(plan.n / 2 ** ((high + 1) / 2)) >= FEWEST:
            high += 1
        while low < high:  # sizes fall with the number; the last one that is enough
            middle = (low + high + 1) // 2
            good = expected(int(plan.n / 2 ** (middle / 2))) >= enough
            low, high = (middle, high) if good else (low, middle - 1)
        return int(plan.n / 2 ** (low / 2))

    def next(self, votes: Votes, plan: Plan, radii: Radii) -> int:
        """All of them at once."""
        return max(self.size(votes, plan) - votes.n, 0)

    def conclude(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """(p_A, 1 − p_A); p_A = 0 if the number of votes is not the one that the n0 votes chose.

        Otherwise the size could be chosen by the fresh votes, and the bound would not hold
        (docs/theory.md#estimating-p_a-and-p_b: fewer samples).
        """
        asked = votes.n == self.size(votes, plan)
        p_a = lower_bound(votes.top, votes.n, plan.alpha) if asked else 0.0
        return p_a, 1.0 - p_a
