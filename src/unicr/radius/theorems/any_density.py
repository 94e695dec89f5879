"""(q) One dimension, any density: shifts one after the other, with a bound for all between two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unicr.noise import IID
from unicr.radius._grade import Grade, grade_proof
from unicr.radius._question import Evidence, Question
from unicr.radius.bellman import bound_excess
from unicr.radius.theorems._base import Bound, Theorem
from unicr.tradeoff import compute_tradeoff
from unicr.tradeoff.internal import guess_radius
from unicr.values import Array

# Nothing here can make a radius wrong: every interval of shifts is proved. They say where to stop.
FINEST = 1e-6  # of the radius: an interval so short that fails ends the search
MOST_SHIFTS = 4000  # at which T is asked: what is proved by then is the answer
LONGEST = 0.25  # of what is proved so far, the longest next interval
# Beyond the distance of these two quantiles a shift is told from none for every p_A < 1 − 1e-13;
# for p_A = 1, where T may never fail, the walk ends there.
LAST_TAIL = 1e-13


@dataclass(frozen=True, eq=False, kw_only=True)
class AnyDensityBound(Bound):
    """Every test errs, as a function of the shift, at least as much as its chord between two
    shifts says, less χ of their distance. So T does, at every shift between them
    (docs/theory.md#theorem-q).
    """

    law: IID

    def radius(self, evidence: Evidence) -> float:
        if evidence.abstains:
            return 0.0
        proved = self._walk(evidence, 1.0, np.inf)
        if self.law.facts.symmetric:
            return proved
        return min(proved, self._walk(evidence, -1.0, proved))

    def _walk(self, evidence: Evidence, sign: float, enough: float) -> float:
        """How far every shift of this sign is certified, up to `enough` or a little beyond.

        See docs/theory.md#theorem-q.
        """
        levels = np.array(
            [1.0 - evidence.p_a] if evidence.binary else [1.0 - evidence.p_a, evidence.p_b]
        )
        wanted = 0.5 * len(levels)

        def ask(r: float) -> Array:
            return compute_tradeoff(self.law, [(sign * r, 1)], closed=False).beta(levels)

        guess = guess_radius(evidence.p_a, evidence.p_b) * self.law.scale
        enough = min(enough, float(self.law.isf(LAST_TAIL) - self.law.ppf(LAST_TAIL)))
        low, here, step = 0.0, 1.0 - levels, 0.01 * guess
        for _ in range(MOST_SHIFTS):
            there = ask(low + step)
            least = np.minimum(here, there) - bound_excess(self.law, step)
            if float(np.sum(least)) >= wanted:
                low, here = low + step, there
                if low >= enough:
                    break
                step = min(2.0 * step, max(LONGEST * low, 0.01 * guess))
            elif step <= FINEST * low or step <= 1e-9 * guess:
                break
            else:
                step *= 0.4
        return low


def match(question: Question) -> AnyDensityBound | None:
    """One dimension where (a) does not serve, because the density may rise and fall again."""
    law = question.noise.iid
    if law is None or question.dim != 1 or law.facts.unimodal:
        return None
    return AnyDensityBound(
        theorem=THEOREM.name,
        grade=grade_proof(Grade.FLOATING_POINT, law, ranges=True),
        engine="composition",
        law=law,
    )


THEOREM = Theorem(
    "q",
    "one dimension, any density",
    "one dimension; any density",
    match,
    rank=3,
    computed_in=(
        "unicr.tradeoff._compose",
        "unicr.radius.bellman._chord",
    ),
)
