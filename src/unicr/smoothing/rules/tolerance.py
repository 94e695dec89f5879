"""Stop when the samples that are left could raise the radius by little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unicr.smoothing._anytime import anytime_lower_bound
from unicr.smoothing._rule import Allowance, EarlyRule, Votes

if TYPE_CHECKING:
    from unicr.smoothing._plan import Plan
    from unicr.smoothing._radii import Radii


@dataclass(frozen=True)
class Tolerance(Allowance, EarlyRule):
    """At most `radius` (in the first norm) is given away, or a `share` of the largest radius."""

    name = "tolerance"
    proof = (
        "the bound lies below p_A at every sample size at once, with probability ≥ 1 − α (Robbins)"
    )

    def decided(self, votes: Votes, plan: Plan, radii: Radii) -> bool:
        """Even if all samples that are left vote for the class, little is won."""
        now = radii.first(anytime_lower_bound(votes.top, votes.n, plan.alpha))
        most = anytime_lower_bound(votes.top + plan.n - votes.n, plan.n, plan.alpha)
        return radii.first(most) - now <= self.allowed(lambda: radii.first(self.best(plan)))

    def conclude(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """(p_A, 1 − p_A), wherever it stopped."""
        p_a = anytime_lower_bound(votes.top, votes.n, plan.alpha)
        return p_a, 1.0 - p_a
