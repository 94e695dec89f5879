"""Splitting noise without α (Levine & Feizi 2021): every offset is counted, nothing is sampled.

Values a and b lie in one interval for all but |a − b| of the W copies (`measures/offsets.py`), so
two inputs look alike in all but ‖δ‖₁ of them, whatever f is: no share of the votes moves by more
than ‖δ‖₁/2λ, and R = λ(p_A − p_B).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from unicr.errors import CertifyError
from unicr.noise import Noise
from unicr.smoothing._certificate import Certificate
from unicr.smoothing._plan import Plan, Votes
from unicr.smoothing._question import BOUND, Request, Steps
from unicr.smoothing.measures import Counts, OffsetVotes, at, count_offsets
from unicr.smoothing.procedures.two_steps import TwoSteps
from unicr.smoothing.rules.every import Every

if TYPE_CHECKING:
    from unicr.classifier import Classifier
    from unicr.smoothing._radii import Curves, Radii


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
