"""What a sampling rule is: how many samples next, and which bounds on (p_A, p_B) follow."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unicr.registry import Catalogue
from unicr.smoothing._anytime import anytime_lower_bound
from unicr.smoothing._named import Registered

if TYPE_CHECKING:
    from unicr.smoothing._plan import Plan
    from unicr.smoothing._radii import Radii

FIRST_LOOK, LOOK_EVERY = 100, 500


@dataclass(frozen=True)
class Votes:
    """Fresh votes so far: for the class that the selection chose, for its runner-up, and all.

    `second` is None where there is no other class. `selection` are the votes that chose the class.
    """

    top: int
    second: int | None
    n: int
    selection: tuple[int, ...] = ()


class Rule(Registered, ABC):
    """Subclasses are frozen dataclasses; `proof` says why `conclude` errs with at most α."""

    kind = "rule"
    proof: ClassVar[str]
    exact: ClassVar[bool] = False
    """Whether nothing is left to chance: α is 0 then."""

    def check(self, plan: Plan) -> None:
        """Raise CertifyError where the settings do not fit the plan."""
        return None

    def next(self, votes: Votes, plan: Plan, radii: Radii) -> int:
        """How many samples to take now; 0 where the votes are enough. All that are left, here."""
        return plan.n - votes.n

    def keyed(self, *words: object) -> Rule:
        """This rule with all that it draws taken from these words; itself where it draws nothing.

        A run gives its nonce among them, so that nobody can choose a lucky draw.
        """
        return self

    @abstractmethod
    def conclude(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """(p_A, p_B) at total failure probability plan.alpha: p_A from below, p_B from above."""

    def best(self, plan: Plan) -> float:
        """The largest p_A that can ever be established: every sample votes for one class."""
        return math.exp(math.log(plan.alpha) / plan.n)


class EarlyRule(Rule):
    """A rule that looks now and then, with bounds that hold at every sample size at once."""

    @abstractmethod
    def decided(self, votes: Votes, plan: Plan, radii: Radii) -> bool:
        """Whether more samples are not worth it."""

    def next(self, votes: Votes, plan: Plan, radii: Radii) -> int:
        """Samples up to the next look."""
        if votes.n and self.decided(votes, plan, radii):
            return 0
        return min(LOOK_EVERY, votes.n or FIRST_LOOK, plan.n - votes.n)

    def best(self, plan: Plan) -> float:
        """Unanimous votes under the bound for every sample size."""
        return anytime_lower_bound(plan.n, plan.n, plan.alpha)


RULES: Catalogue[type[Rule]] = Catalogue("unicr.rules", "unicr.smoothing.rules", Rule, classes=True)
Rule.catalogue = RULES
