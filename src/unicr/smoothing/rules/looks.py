"""A few looks at fixed sample sizes: stop when all samples would raise the radius by little."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unicr.binomial import lower_bound
from unicr.smoothing._rule import Allowance, Rule, Votes

if TYPE_CHECKING:
    from unicr.smoothing._plan import Plan
    from unicr.smoothing._radii import Radii

FACTOR, FEWEST = 2, 60
LAST = 0.7  # the last look's share of α; the others have the rest in equal parts


@dataclass(frozen=True)
class Looks(Allowance, Rule):
    """At most `radius` (in the first norm) is given away, or a `share` of the largest radius.

    Looks are at n, n/2, n/4, …. At each the radius of the votes so far is held against the one
    that all n samples would give if they went on voting as they did.
    """

    name = "looks"
    proof = (
        "the look sizes are fixed and their failure probabilities add up to α, so all bounds hold "
        "together (Clopper–Pearson, union), wherever the votes say to stop"
    )

    def sizes(self, plan: Plan) -> dict[int, float]:
        """The sample sizes at which it looks, rising, with the α of each."""
        sizes = [plan.n]
        while sizes[-1] // FACTOR >= FEWEST:
            sizes.append(sizes[-1] // FACTOR)
        if len(sizes) == 1:
            return {plan.n: plan.alpha}
        rest = plan.alpha * (1 - LAST) / (len(sizes) - 1)
        return {n: plan.alpha * LAST if n == plan.n else rest for n in reversed(sizes)}

    def next(self, votes: Votes, plan: Plan, radii: Radii) -> int:
        """Samples up to the next look."""
        sizes = self.sizes(plan)
        if votes.n in sizes and self._decided(votes, plan, radii, sizes):
            return 0
        return next((n - votes.n for n in sizes if n > votes.n), 0)

    def _decided(self, votes: Votes, plan: Plan, radii: Radii, sizes: dict[int, float]) -> bool:
        now = radii.first(lower_bound(votes.top, votes.n, sizes[votes.n]))
        # as they voted, with the doubt of one more vote
        likely = min(round(plan.n * (votes.top + 1) / (votes.n + 1)), plan.n)
        later = radii.first(lower_bound(likely, plan.n, sizes[plan.n]))
        return later - now <= self.allowed(lambda: radii.first(self.best(plan)))

    def conclude(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """(p_A, 1 − p_A) at the α of the look; 0 where the votes do not end at one."""
        alpha = self.sizes(plan).get(votes.n)
        p_a = 0.0 if alpha is None else lower_bound(votes.top, votes.n, alpha)
        return p_a, 1.0 - p_a

    def best(self, plan: Plan) -> float:
        """Unanimous votes at the last look."""
        return math.exp(math.log(self.sizes(plan)[plan.n]) / plan.n)
