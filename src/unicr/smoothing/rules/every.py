"""All offsets of splitting noise: nothing is drawn, so there is no α."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from unicr.errors import CertifyError
from unicr.noise import Lattice, Noise
from unicr.smoothing._plan import Plan, Rule, Votes

if TYPE_CHECKING:
    from unicr.smoothing._radii import Radii

CLOSE = 1e-12  # how far from a whole number of steps 2λ may be written
# Taken off p_A and added to p_B: 2λ may be written 1e-12 beside a whole number of steps (CLOSE),
# and a division is rounded.
SHAVE = 2e-12


def count_offsets(noise: Noise, lattice: Lattice | None) -> int:
    """How many offsets there are, W; refused where not all of them can be counted."""
    if noise.interval is None or lattice is None:
        raise CertifyError(
            "every offset can be counted only for splitting noise on a lattice, not for "
            f"{noise.text}{'' if lattice else ' on real numbers'}: use --noise "
            "'splitting(scale=0.5)' and --lattice 1/255"
        )
    width = Fraction(noise.interval) / lattice.step
    whole = max(round(width), 1)
    if abs(width - whole) > CLOSE * whole:
        raise CertifyError(
            f"{noise.text} on the lattice {lattice.text} has {float(width):.6g} steps in an "
            "interval, but a whole number is needed: use "
            f"scale={float(whole * lattice.step / 2)!r} for {whole} steps"
        )
    return whole


@dataclass(frozen=True)
class Every(Rule):
    """All offsets once: the shares of the votes are the probabilities themselves."""

    name = "every"
    proof = "nothing is drawn: all W values of the one offset are counted, so there is no α"
    exact = True

    def check_plan(self, plan: Plan) -> None:
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
