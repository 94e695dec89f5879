"""All n samples, for one of several noises: each is bounded as if all were to be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unicr.binomial import lower_bound
from unicr.errors import CertifyError
from unicr.smoothing._plan import Plan, Rule, Votes

if TYPE_CHECKING:
    from unicr.smoothing._radii import Radii


@dataclass(frozen=True)
class Union(Rule):
    """`candidates` noises could have been chosen, with the very samples that certify."""

    name = "union"
    among_noises = True
    proof = "Clopper–Pearson at α/candidates for each noise: all bounds hold together by the union"
    candidates: int

    def check_plan(self, plan: Plan) -> None:
        """A whole number of noises."""
        if not (isinstance(self.candidates, int) and self.candidates >= 1):
            raise CertifyError(f"candidates={self.candidates} must be at least 1")

    def conclude(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """(p_A, 1 − p_A) at α/candidates, so that the bounds of all noises hold together.

        The candidates were fixed before any sample (docs/theory.md#what-optimisation-may-use).
        """
        p_a = lower_bound(votes.top, votes.n, plan.alpha / self.candidates)
        return p_a, 1.0 - p_a

    def best(self, plan: Plan) -> float:
        """Unanimous votes at α/candidates."""
        return math.exp(math.log(plan.alpha / self.candidates) / plan.n)
