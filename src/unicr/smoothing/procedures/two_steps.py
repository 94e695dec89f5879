"""Select what to claim, then bound it: Cohen et al.'s two steps, by any sampling rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unicr.noise import Noise
from unicr.smoothing._certificate import ABSTAIN, Certificate
from unicr.smoothing._plan import Plan, Procedure, Votes
from unicr.smoothing._question import (
    BOUND,
    CHOOSE,
    CLASSES,
    Counts,
    Measure,
    Request,
    Steps,
    add,
    at,
)

if TYPE_CHECKING:
    from unicr.smoothing._radii import Curves, Radii


@dataclass(frozen=True)
class TwoSteps(Procedure):
    """n0 samples choose the class, fresh ones bound its probability until the rule has enough."""

    name = "two_steps"
    counted: ClassVar[Measure] = CLASSES

    def steps(self, plan: Plan, noise: Noise, curves: Curves) -> Steps[Certificate]:
        """Samples 0 … n0 − 1 choose, those from n0 on bound: with probability ≥ 1 − α over these
        the certificate holds (the rule's proof; the radius theorem;
        docs/theory.md#estimating-p_a-and-p_b).
        """
        radii = curves.of(noise)
        selection = yield Request(plan.n0, 0, None, self.counted, CHOOSE)
        counts: Counts = np.zeros(0, dtype=np.int64)
        while more := plan.rule.next(votes := self.tally(selection, counts), plan, radii):
            # Never a sample that chose the class: given the choice, the votes are binomial.
            start = plan.n0 + votes.n
            counts = add(counts, (yield Request(more, start, None, self.counted, BOUND)))
        return self.conclude(plan, radii, selection, counts)

    def choose(self, selection: Counts) -> int:
        """The claim to test, as a number, by the selection samples alone: the class with the most
        votes, the first of equals.
        """
        return int(np.argmax(selection))

    def tally(self, selection: Counts, counts: Counts) -> Votes:
        """Fresh votes for the chosen class and for its runner-up on the selection."""
        order = np.argsort(-selection, kind="stable")
        second = at(counts, int(order[1])) if len(order) > 1 else None
        top = at(counts, int(order[0]))
        return Votes(top, second, int(counts.sum()), tuple(selection.tolist()))

    def conclude(
        self,
        plan: Plan,
        radii: Radii,
        selection: Counts,
        counts: Counts,
        noise: Noise | None = None,
    ) -> Certificate:
        """What the counts of an input are worth; `noise` is given where it was chosen for it.

        At confidence 1 − α over the fresh samples (the rule's proof) the radii hold
        (docs/certificates.md#the-claim).
        """
        votes = self.tally(selection, counts)
        # by the rule for the sampler, then for the law of the noise
        p_a, p_b = radii.charge_bounds(*plan.rule.conclude(votes, plan, radii))
        return self.certificate(
            predict=self.choose(selection) if p_a > p_b else ABSTAIN,
            p_a=p_a,
            p_b=p_b,
            n0=plan.n0,
            n=votes.n,
            alpha=plan.alpha,
            radii=radii.at(p_a, p_b),
            noise=None if noise is None else noise.text,
            lattice=None if radii.lattice is None else radii.lattice.text,
            between_points=not radii.any_change,
            charge=radii.charge,
        )
