"""Votes under noise φ(‖z‖) and under the same within a ball (DSRS, Li et al. 2022).

Samples 0 … n0 − 1 of each law choose the class and whether the second law pays; nothing is bounded
with them. If it pays, half of n goes to each law, each bound at α/2, and the radius is that of both
bounds together (theorem (o)); if not, all n go to the first law at α, as ever.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from unicr.binomial import lower_bound
from unicr.errors import CertifyError
from unicr.noise import Noise
from unicr.noise.internal import within
from unicr.norms import Norm
from unicr.radius import Evidence, Question, RadiusCurve, SecondLaw
from unicr.radius.internal import check_two_laws, prove
from unicr.smoothing._certificate import Certificate
from unicr.smoothing._measure import Counts, as_tuple, at
from unicr.smoothing.measures.classes import ClassVotes

if TYPE_CHECKING:
    from unicr.smoothing._certify import Ask
    from unicr.smoothing._plan import Plan
    from unicr.smoothing._radii import Radii

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


def _both_laws(noise: Noise, norm: Norm | float, p_a: float, q_a: float, share: float) -> float:
    """What both bounds together prove; 0 where that is nothing."""
    evidence = Evidence(p_a, second=SecondLaw(q_a, share))
    return prove(Question(noise, norm), evidence, laws=2).radius


@dataclass(frozen=True)
class TwoLawCertificate(Certificate):
    """`selection` and `counts` are of the first law, `hint` and `second` of the second one.

    `q_a` is a lower bound of the class's probability within the ball, None where the second law
    was not asked; `n` counts the fresh votes under both.
    """

    q_a: float | None = None
    hint: tuple[int, ...] = ()
    second: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("hint", "second"):
            votes = tuple(map(int, getattr(self, name)))
            if min(votes, default=0) < 0:
                raise CertifyError(f"{name}={list(votes)} are no votes")
            object.__setattr__(self, name, votes)


@dataclass(frozen=True)
class TwoLawVotes(ClassVotes):
    """Votes by class, under the noise and under the part of it that a ball of `share` holds."""

    name = "two_laws"
    certificate = TwoLawCertificate
    share: float = 0.5

    def check(self, plan: Plan, radii: Radii) -> None:
        """Noise of a length and the fixed rule; tables are made here, once."""
        if plan.rule.name != "fixed" or not 0 < self.share < 1:
            raise CertifyError(
                f"two laws share {self.share!r} and the rule {plan.rule.text}: a share between 0 "
                "and 1 is needed, and no early stopping"
            )
        check_two_laws(radii.noise)
        _both_laws(radii.noise, _home(radii.noise), 0.6, 0.6, self.share)

    def pays(self, selection: Counts, hint: Counts, plan: Plan, radii: Radii) -> bool:
        """Whether both laws promise more, if the votes go on as the n0 of each began."""
        chosen, half, n0 = self.chosen(selection), plan.n // 2, plan.n0
        p, q = ((at(votes, chosen) + 0.5) / (n0 + 1) for votes in (selection, hint))
        first, law = plan.n - half, radii.noise
        one = _first_law(law, lower_bound(round(p * plan.n), plan.n, plan.alpha))
        p_a = lower_bound(round(p * first), first, plan.alpha / 2)
        q_a = lower_bound(round(q * half), half, plan.alpha / 2) if half else 0.0
        both = _both_laws(law, _home(law), p_a, q_a, self.share)
        return max(both, _first_law(law, p_a)) > WORTH * one

    def walk(
        self, plan: Plan, radii: Radii, noise: Noise | None
    ) -> Generator[Ask, Counts, Certificate]:
        """All samples have numbers of their own, so fresh ones know nothing of the choice."""
        from unicr.smoothing._certify import Ask

        law, n0, n = within(radii.noise, self.share), plan.n0, plan.n
        selection = yield Ask(n0, 0, noise, measure=self)
        hint = yield Ask(n0, n0 + n, law, measure=self)
        more = n // 2 if self.pays(selection, hint, plan, radii) else 0
        counts = yield Ask(n - more, n0, noise, measure=self)
        second: Counts = np.zeros(0, dtype=np.int64)
        if more:
            second = yield Ask(more, 2 * n0 + n, law, measure=self)
        return self._joined(plan, radii, (selection, counts, hint, second), noise)

    def _joined(
        self,
        plan: Plan,
        radii: Radii,
        votes: tuple[Counts, Counts, Counts, Counts],
        noise: Noise | None,
    ) -> Certificate:
        """Both bounds hold with probability ≥ 1 − α (union), and with them the radius."""
        selection, counts, hint, second = votes
        asked, q_a = int(second.sum()), None
        share = replace(plan, alpha=plan.alpha / 2) if asked else plan
        found = self.conclude(share, radii, selection, counts, noise)
        if asked:
            top = at(second, self.chosen(selection))
            q_a = lower_bound(top, asked, plan.alpha / 2)
        assert isinstance(found, TwoLawCertificate)
        return replace(
            found, alpha=plan.alpha, n=found.n + asked, q_a=q_a,
            hint=as_tuple(hint), second=as_tuple(second),
            radii=radii.at(found.p_a, found.p_b, lambda norm: 0.0 if q_a is None else _both_laws(
                radii.noise, norm, found.p_a, q_a, self.share)),
        )  # fmt: skip

    def again(
        self, c: Certificate, plan: Plan, radii: Radii, noise: Noise | None
    ) -> Certificate | str:
        """From the votes of both laws; their numbers must be what the first ones ask for."""
        assert isinstance(c, TwoLawCertificate)
        votes = [np.asarray(v, np.int64) for v in (c.selection, c.counts, c.hint, c.second)]
        sizes = [int(v.sum()) for v in votes]
        if not len(votes[0]) or sizes[0] != plan.n0 or sizes[2] != plan.n0:
            return f"{sizes[0]} and {sizes[2]} votes that choose where n0 = {plan.n0}"
        more = plan.n // 2 if self.pays(votes[0], votes[2], plan, radii) else 0
        if (sizes[1], sizes[3]) != (plan.n - more, more):
            return f"{sizes[1]} and {sizes[3]} votes where {plan.n - more} and {more} are asked for"
        four = (votes[0], votes[1], votes[2], votes[3])
        return self._joined(plan, radii.when(moved=c.moved), four, noise)
