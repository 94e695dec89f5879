"""Look once at half of the samples, and stop there if all agree."""

from __future__ import annotations

from dataclasses import dataclass

from unicr.smoothing import Plan, Radii, Rule, Votes, lower_bound


@dataclass(frozen=True)
class Half(Rule):
    """Two looks, each with half of α."""

    name = "half"
    proof = "two Clopper–Pearson bounds at α/2, one for each look, hold together (union)"

    def next(self, votes: Votes, plan: Plan, radii: Radii) -> int:
        """Half of the samples first; the rest where one of them disagreed."""
        half = plan.n // 2
        if votes.n == 0:
            return half
        return 0 if votes.n > half or votes.top == votes.n else plan.n - half

    def conclude(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """(p_A, 1 − p_A)."""
        p_a = lower_bound(votes.top, votes.n, plan.alpha / 2)
        return p_a, 1.0 - p_a
