"""All offsets of splitting noise: nothing is drawn, so there is no α."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unicr.errors import CertifyError
from unicr.smoothing._plan import Plan, Rule, Votes
from unicr.smoothing.measures import count_offsets

if TYPE_CHECKING:
    from unicr.smoothing._radii import Radii

# Taken off p_A and added to p_B: 2λ may be written 1e-12 beside a whole number of steps (CLOSE),
# and a division is rounded.
SHAVE = 2e-12


@dataclass(frozen=True)
class Every(Rule):
    """All offsets once: the shares of the votes are the probabilities themselves."""

    name = "every"
    proof = "nothing is drawn: all W values of the one offset are counted, so there is no α"
    exact = True

    def check(self, plan: Plan) -> None:
        """Offsets are what is counted."""
        if plan.procedure.name != "offsets":
            raise CertifyError("--rule every works only for splitting noise")

    def conclude(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """The two largest shares, rounded outwards; nothing if not every offset was counted.

        docs/certificates.md#on-a-real-machine: the one exception.
        """
        if votes.n != count_offsets(radii.noise, radii.lattice):
            return 0.0, 1.0
        return votes.top / votes.n - SHAVE, (votes.second or 0) / votes.n + SHAVE

    def best(self, plan: Plan) -> float:
        """Every vote for one class."""
        return 1.0 - SHAVE
