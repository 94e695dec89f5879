"""All n samples, one bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unicr.binomial import lower_bound
from unicr.smoothing._plan import Plan, Rule, Votes

if TYPE_CHECKING:
    from unicr.smoothing._radii import Radii


@dataclass(frozen=True)
class Fixed(Rule):
    """p_A from below by Clopper–Pearson at α; every other class gets the rest."""

    name = "fixed"
    proof = "P(Binomial(n, p) ≥ k) ≤ α for every p below the bound (Clopper–Pearson)"

    def conclude(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """(p_A, 1 − p_A) at α (docs/theory.md#estimating-p_a-and-p_b: fixed n)."""
        p_a = lower_bound(votes.top, votes.n, plan.alpha)
        return p_a, 1.0 - p_a
