"""Splitting noise without α (Levine & Feizi 2021): every offset is counted, nothing is sampled.

On the lattice, x in steps, W = 2λ is whole. Copy number s puts the ends of the intervals of
coordinate i at s + place_i + ½ (mod W); the places are fixed for the whole of g. Values a and b lie
in one interval for all but |a − b| of the W copies, so two inputs look alike in all but ‖δ‖₁ of
them, whatever f is: no share of the votes moves by more than ‖δ‖₁/2λ, and R = λ(p_A − p_B).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from unicr.errors import CertifyError
from unicr.extras import torch
from unicr.noise import Lattice, Noise, Splitting
from unicr.smoothing._certificate import Certificate
from unicr.smoothing._measure import Counts, as_tuple, at
from unicr.smoothing._rule import Rule, Votes
from unicr.smoothing.measures.classes import ClassVotes

if TYPE_CHECKING:
    from unicr.smoothing._plan import Plan
    from unicr.smoothing._radii import Radii

CLOSE = 1e-12  # how far from a whole number of steps 2λ may be written
SHAVE = 2e-12  # taken off the shares: that, and the rounding of a division


def offsets(noise: Noise, lattice: Lattice | None) -> int:
    """How many offsets there are, W; refused where not all of them can be counted."""
    if not isinstance(noise, Splitting) or lattice is None:
        raise CertifyError(
            f"every offset is counted of splitting noise on a lattice, not of {noise.text}"
            f"{'' if lattice else ' on real numbers'}: take --noise 'splitting(scale=0.5)' and "
            "--lattice 1/255"
        )
    width = 2 * Fraction(noise.scale) / lattice.step
    whole = max(round(width), 1)
    if abs(width - whole) > CLOSE * whole:
        raise CertifyError(
            f"{noise.text} on the lattice {lattice.text}: an interval has {float(width):.6g} "
            f"steps, not a whole number: take scale={float(whole * lattice.step / 2)!r} for {whole}"
        )
    return whole


@dataclass(frozen=True)
class Every(Rule):
    """All offsets once: the shares of the votes are the probabilities themselves."""

    name = "every"
    proof = "nothing is drawn: all W values of the one offset are counted, so there is no α"
    exact = True

    def check(self, plan: Plan) -> None:
        """Offsets are what is counted."""
        if not isinstance(plan.measure, OffsetVotes):
            raise CertifyError("--rule every is for the offsets of splitting noise alone")

    def next(self, votes: Votes, plan: Plan, radii: Radii) -> int:
        """Those that are left."""
        return offsets(radii.noise, radii.lattice) - votes.n

    def conclude(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """The two largest shares, rounded outwards."""
        if votes.n != offsets(radii.noise, radii.lattice):
            return 0.0, 1.0
        return votes.top / votes.n - SHAVE, (votes.second or 0) / votes.n + SHAVE

    def best(self, plan: Plan) -> float:
        """Every vote for one class."""
        return 1.0 - SHAVE


@dataclass(frozen=True)
class OffsetVotes(ClassVotes):
    """Copies number s, s + 1, … have the offsets s, s + 1, … (mod W); W of them are all."""

    name = "offsets"

    def copies(
        self, noise: Noise, lattice: Lattice | None, x: torch.Tensor, key: bytes
    ) -> Callable[[torch.Tensor, int], object]:
        """What fills a batch from number `start` on; the places follow from the key of g."""
        width = offsets(noise, lattice)
        assert lattice is not None
        base = lattice.integers(x.cpu().numpy()).ravel()
        digest = hashlib.shake_256(b"offsets" + key).digest(8 * base.size)
        places = (np.frombuffer(digest, "<u8") % np.uint64(width)).astype(np.int64)
        half = float(lattice.step) / 2

        def fill(out: torch.Tensor, start: int) -> None:
            number = np.arange(start, start + len(out), dtype=np.int64)[:, None]
            end = (number + places) % width  # the interval begins at end + ½ + W·(whole number)
            begin = end + width * ((base - end - 1) // width)
            middle = (2 * begin + 1 + width) * half
            seen = noise.seen(torch.from_numpy(middle))
            out.copy_(seen.to(torch.float32).reshape(out.shape))

        return fill

    def votes(self, selection: Counts, counts: Counts) -> Votes:
        """The two largest counts: nothing was drawn, so nothing need be chosen beforehand."""
        order = [int(i) for i in np.argsort(-counts, kind="stable")]
        top, second = (at(counts, i) for i in (*order, len(counts), len(counts))[:2])
        return Votes(top, second, int(counts.sum()), as_tuple(selection))

    def check(self, plan: Plan, radii: Radii) -> None:
        """What counting every offset can prove, and no more."""
        wrong = next((norm for norm in radii.norms if norm.p > 1), None)
        total = offsets(radii.noise, radii.lattice)
        if wrong is not None or not plan.rule.exact:
            what = f"in {wrong}" if wrong else f"by the rule {plan.rule.text}"
            raise CertifyError(f"every offset counted proves radii in lp with p <= 1, none {what}")
        if total > plan.n:
            raise CertifyError(f"n={plan.n} where all {total} offsets are needed: take a larger n")

    def bounds(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """The shares themselves: no sampler, so nothing is paid for its law."""
        return plan.rule.conclude(votes, plan, radii)

    def conclude(
        self,
        plan: Plan,
        radii: Radii,
        selection: Counts,
        counts: Counts,
        noise: Noise | None = None,
    ) -> Certificate:
        """R = λ(p_A − p_B) in ℓp with p ≤ 1, for certain: ‖δ‖₁ ≤ ‖δ‖_p there."""
        self.check(plan, radii)
        found = super().conclude(plan, radii, counts, counts, noise)
        return replace(found, selection=as_tuple(selection), charge=0.0)


def exactly(plan: Plan) -> Plan:
    """A plan that counts every offset: no α, and one vote where others choose a class."""
    return replace(plan, n0=1, alpha=0.0, rule=Every(), measure=OffsetVotes())
