"""Votes under noise φ(‖z‖) and under the same within a ball (DSRS, Li et al. 2022).

Samples 0 … n0 − 1 of each law choose the class and whether the second law pays; nothing is bounded
with them. If it pays, half of n goes to each law, each bound at α/2, and the radius is that of both
bounds together (theorem (o)); if not, all n go to the first law at α, as ever.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import numpy as np

from unicr.binomial import lower_bound
from unicr.errors import CertifyError
from unicr.noise import Noise
from unicr.noise.internal import within
from unicr.norms import Norm
from unicr.radius import Evidence, Question, RadiusCurve, SecondLaw
from unicr.radius.internal import NOTHING_PROVED, Proof, check_two_laws, prove
from unicr.smoothing._certificate import Certificate
from unicr.smoothing._plan import Plan
from unicr.smoothing._question import BOUND, CHOOSE, SUPPORT, Counts, Request, Steps, at
from unicr.smoothing.procedures.two_steps import TwoSteps
from unicr.smoothing.rules.fixed import Fixed

if TYPE_CHECKING:
    from unicr.classifier import Classifier
    from unicr.smoothing._radii import Curves, Radii

WORTH = 1.01  # the second law is asked where it promises this many times the radius


def _first_law(noise: Noise, p_a: float) -> float:
    """The proved radius of p_A alone, in the norm of the density."""
    return float(_curve(noise)(p_a))


@lru_cache(maxsize=8)
def _curve(noise: Noise) -> RadiusCurve:
    return RadiusCurve(noise, _home(noise))


def _home(noise: Noise) -> float:
    """The p of the norm that the density looks at."""
    assert noise.radial is not None, "check_two_laws lets only radial noise pass"
    return noise.radial.order


def _both_laws(noise: Noise, norm: Norm | float, p_a: float, q_a: float, share: float) -> Proof:
    """What both bounds together prove."""
    evidence = Evidence(p_a, second=SecondLaw(q_a, share))
    return prove(Question(noise, norm), evidence, laws=2)


@dataclass(frozen=True, repr=False)
class TwoLawCertificate(Certificate):
    """`q_a` is a lower bound of the class's probability within the ball, None if the second law
    was not asked; `n` counts the fresh votes under both, `selection` and `counts` are of the first.
    """

    q_a: float | None = None

    @property
    def hint(self) -> tuple[int, ...]:
        """The votes under the second law that helped to choose."""
        return next(e.counts for e in self.transcript if e.purpose == CHOOSE and e.noise)

    @property
    def second(self) -> tuple[int, ...]:
        """The fresh votes under the second law; empty if it was not asked."""
        return next((e.counts for e in self.transcript if e.purpose == SUPPORT), ())


@dataclass(frozen=True)
class TwoLawVotes(TwoSteps):
    """Votes by class, under the noise and under the part of it that a ball of `share` holds."""

    name = "two_laws"
    certificate = TwoLawCertificate
    share: float = 0.5

    def check_plan(self, plan: Plan) -> None:
        """The fixed rule, and a share."""
        if plan.rule != Fixed() or not 0 < self.share < 1:
            raise CertifyError(
                "two_laws needs a share between 0 and 1 and a rule without early stopping, not "
                f"share={self.share!r} and the rule {plan.rule.text}"
            )

    def check(self, plan: Plan, radii: Radii, model: Classifier | None = None) -> None:
        """Noise of a length; tables are made here, once."""
        check_two_laws(radii.noise)
        _both_laws(radii.noise, _home(radii.noise), 0.6, 0.6, self.share)

    def pays(self, selection: Counts, hint: Counts, plan: Plan, radii: Radii) -> bool:
        """Whether both laws promise more, if the votes go on as the n0 of each began."""
        chosen, half, n0 = self.choose(selection), plan.n // 2, plan.n0
        p, q = ((at(votes, chosen) + 0.5) / (n0 + 1) for votes in (selection, hint))
        first, law = plan.n - half, radii.noise
        alone = _first_law(law, lower_bound(round(p * plan.n), plan.n, plan.alpha))
        p_a = lower_bound(round(p * first), first, plan.alpha / 2)
        q_a = lower_bound(round(q * half), half, plan.alpha / 2) if half else 0.0
        both = _both_laws(law, _home(law), p_a, q_a, self.share)
        return max(both.radius, _first_law(law, p_a)) > WORTH * alone

    def steps(self, plan: Plan, noise: Noise, curves: Curves) -> Steps[Certificate]:
        """All samples have numbers of their own, so fresh ones know nothing of the choice.

        Both bounds, and with them the radius, hold with probability ≥ 1 − α
        (docs/theory.md#two-laws).
        """
        radii = curves.of(noise)
        law, n0, n = within(noise, self.share), plan.n0, plan.n
        # 0 … n0 − 1 and n0 + n … 2n0 + n − 1 choose; n0 … n0 + n − 1 and what follows bound.
        selection = yield Request(n0, 0, None, self.counted, CHOOSE)
        hint = yield Request(n0, n0 + n, law, self.counted, CHOOSE)
        more = n // 2 if self.pays(selection, hint, plan, radii) else 0
        counts = yield Request(n - more, n0, None, self.counted, BOUND)
        second: Counts = np.zeros(0, dtype=np.int64)
        if more:
            second = yield Request(more, 2 * n0 + n, law, self.counted, SUPPORT)
        return self._join(plan, radii, selection, counts, second)

    def _join(
        self, plan: Plan, radii: Radii, selection: Counts, counts: Counts, second: Counts
    ) -> Certificate:
        """Both bounds hold with probability ≥ 1 − α (union), and with them the radius."""
        asked, q_a = int(second.sum()), None
        # Two bounds share α in halves; without votes under the second law the first has all of it.
        half = replace(plan, alpha=plan.alpha / 2) if asked else plan
        certificate = cast("TwoLawCertificate", self.conclude(half, radii, selection, counts))
        if asked:
            top = at(second, self.choose(selection))
            q_a = lower_bound(top, asked, plan.alpha / 2)

        def more(norm: Norm) -> Proof:
            if q_a is None:
                return NOTHING_PROVED
            return _both_laws(radii.noise, norm, certificate.p_a, q_a, self.share)

        return replace(
            certificate, alpha=plan.alpha, n=certificate.n + asked, q_a=q_a,
            radii=radii.at(certificate.p_a, certificate.p_b, more),
        )  # fmt: skip
