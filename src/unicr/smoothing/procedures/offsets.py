"""Splitting noise without α (Levine & Feizi 2021): every offset is counted, nothing is sampled.

Values a and b lie in one interval for all but |a − b| of the W copies (`OffsetVotes`), so
two inputs look alike in all but ‖δ‖₁ of them, whatever f is: no share of the votes moves by more
than ‖δ‖₁/2λ, and R = λ(p_A − p_B).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from unicr.errors import CertifyError
from unicr.extras import torch
from unicr.noise import Lattice, Noise
from unicr.smoothing._certificate import Certificate
from unicr.smoothing._plan import Plan, Votes
from unicr.smoothing._question import BOUND, ClassVotes, Counts, Request, Steps, at
from unicr.smoothing.procedures.two_steps import TwoSteps
from unicr.smoothing.rules.every import Every, count_offsets

if TYPE_CHECKING:
    from unicr.classifier import Classifier
    from unicr.smoothing._radii import Curves, Radii


@dataclass(frozen=True)
class OffsetVotes(ClassVotes):
    """Copies number s, s + 1, … have the offsets s, s + 1, … (mod W); W of them are all."""

    name = "offsets"

    def copies(
        self, noise: Noise, lattice: Lattice | None, x: torch.Tensor, key: bytes
    ) -> Callable[[torch.Tensor, int], object]:
        """What fills a batch from number `start` on; the places follow from the key of g."""
        width = count_offsets(noise, lattice)
        assert lattice is not None
        if not lattice.holds(x.cpu().numpy()):
            raise CertifyError(
                f"the input is not on the grid {lattice.text}, and counting every offset works "
                "only for inputs on the grid: leave --rule every out"
            )
        base = lattice.integers(x.cpu().numpy()).ravel()
        digest = hashlib.shake_256(b"offsets" + key).digest(8 * base.size)
        places = (np.frombuffer(digest, "<u8") % np.uint64(width)).astype(np.int64)
        half = float(lattice.step) / 2

        def fill(out: torch.Tensor, start: int) -> None:
            number = np.arange(start, start + len(out), dtype=np.int64)[:, None]
            end = (number + places) % width  # the interval begins at end + ½ + W·(whole number)
            begin = end + width * ((base - end - 1) // width)
            middle = (2 * begin + 1 + width) * half
            seen = noise.see(torch.from_numpy(middle))
            out.copy_(seen.to(torch.float32).reshape(out.shape))

        return fill


@dataclass(frozen=True)
class Offsets(TwoSteps):
    """One question: the votes at all W offsets."""

    name = "offsets"
    counted = OffsetVotes()
    on_own_grid = True

    def fit(self, plan: Plan) -> Plan:
        """No α, and no votes that choose: n0 is not used."""
        return replace(plan, n0=1, alpha=0.0, rule=Every(), procedure=self)

    def check_plan(self, plan: Plan) -> None:
        """Nothing but counting every offset is exact."""
        if not plan.rule.exact:
            raise CertifyError(f"counting every offset needs the rule every, not {plan.rule.text}")

    def check(self, plan: Plan, radii: Radii, model: Classifier | None = None) -> None:
        """What counting every offset can prove, and no more."""
        wrong = next((norm for norm in radii.norms if norm.p > 1), None)
        if wrong is not None:
            raise CertifyError(
                f"counting every offset gives radii in lp with p <= 1, but not in {wrong}"
            )
        total = count_offsets(radii.noise, radii.lattice)
        if total > plan.n:
            raise CertifyError(
                f"n={plan.n} is too small to count every offset: use n={total} or more"
            )

    def steps(self, plan: Plan, noise: Noise, curves: Curves) -> Steps[Certificate]:
        """R = λ(p_A − p_B) in ℓp with p ≤ 1, for certain: ‖δ‖₁ ≤ ‖δ‖_p there.

        All offsets can be counted on a coarse grid only, and the radius is between its points
        (docs/theory.md#splitting-noise).
        """
        radii = curves.of(noise).without_sampling()
        self.check(plan, radii)
        width = count_offsets(noise, curves.lattice)
        counts = yield Request(width, 0, None, self.counted, BOUND)
        return replace(self.conclude(plan, radii, counts, counts), n0=0)

    def tally(self, selection: Counts, counts: Counts) -> Votes:
        """The two largest counts: nothing was drawn, so nothing need be chosen beforehand."""
        order = [int(i) for i in np.argsort(-counts, kind="stable")]
        top, second = (at(counts, i) for i in (*order, len(counts), len(counts))[:2])
        return Votes(top, second, int(counts.sum()), tuple(selection.tolist()))
