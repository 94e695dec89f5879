"""All n samples, three bounds: the top class, its runner-up, and all others together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unicr.binomial import lower_bound, upper_bound
from unicr.smoothing._plan import Plan, Rule, Votes

if TYPE_CHECKING:
    from unicr.smoothing._radii import Radii


@dataclass(frozen=True)
class ThreeTests(Rule):
    """p_A from below, and from above the runner-up and all remaining classes together.

    Top class and runner-up were chosen on other samples, so their counts are binomial.
    """

    name = "three"
    bounds_p_b = True
    proof = (
        "three Clopper–Pearson bounds at α/3 hold together with probability ≥ 1 − α, and the "
        "larger upper one bounds every class but the top one"
    )

    def conclude(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """(p_A, p_B) at α/3 each; where there is one class only, one bound at α.

        docs/theory.md#estimating-p_a-and-p_b: both bounds.
        """
        if votes.second is None:
            p_a = lower_bound(votes.top, votes.n, plan.alpha)
            return p_a, 1.0 - p_a
        third = plan.alpha / 3  # three tests share α: by the union bound all hold with 1 − α
        p_a = lower_bound(votes.top, votes.n, third)
        second = upper_bound(votes.second, votes.n, third)
        rest = upper_bound(votes.n - votes.top - votes.second, votes.n, third)
        return p_a, min(max(second, rest), 1.0 - p_a)

    def best(self, plan: Plan) -> float:
        """Unanimous votes at α/3."""
        return math.exp(math.log(plan.alpha / 3) / plan.n)
