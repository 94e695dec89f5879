"""Stop as soon as one radius is certified, or clearly is not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unicr.errors import CertifyError
from unicr.smoothing._anytime import anytime_lower_bound, log_wealth
from unicr.smoothing._plan import Plan, Rule, Votes

if TYPE_CHECKING:
    from unicr.smoothing._radii import Radii

# Samples before the first look at the votes, then between looks. They decide the cost alone: the
# bound holds at every sample size at once, so looking often spends nothing of alpha.
FIRST_LOOK, LOOK_EVERY = 100, 500


@dataclass(frozen=True)
class Target(Rule):
    """One question: is p_A at least what `radius` needs, in the first norm?"""

    name = "target"
    proof = "under p_A ≤ needed the mixture is a martingale: P(it ever reaches 1/α) ≤ α (Ville)"
    radius: float

    def check_plan(self, plan: Plan) -> None:
        """The radius is a number above 0."""
        if not 0 < self.radius < math.inf:
            raise CertifyError(f"the target radius {self.radius!r} must be finite and above 0")

    def next(self, votes: Votes, plan: Plan, radii: Radii) -> int:
        """Samples up to the next look; none where more are not worth it."""
        if votes.n and self.is_decided(votes, plan, radii):
            return 0
        return min(LOOK_EVERY, votes.n or FIRST_LOOK, plan.n - votes.n)

    def is_decided(self, votes: Votes, plan: Plan, radii: Radii) -> bool:
        """The votes refute "p_A is less than needed", or its opposite."""
        needed, limit = radii.find_least_p_a(self.radius), math.log(1 / plan.alpha)
        return (
            log_wealth(votes.top, votes.n, needed, above=True) >= limit
            or log_wealth(votes.top, votes.n, needed, above=False) >= limit
        )

    def conclude(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """p_A is what the target needs where less is refuted at α, and 0 (abstain) elsewhere.

        docs/theory.md#estimating-p_a-and-p_b: stopping early.
        """
        needed = radii.find_least_p_a(self.radius)
        evidence = log_wealth(votes.top, votes.n, needed, above=True)
        p_a = needed if evidence >= math.log(1 / plan.alpha) else 0.0
        return p_a, 1.0 - p_a

    def best(self, plan: Plan) -> float:
        """Unanimous votes under the bound for every sample size."""
        return anytime_lower_bound(plan.n, plan.n, plan.alpha)
