"""(h) Inclusions between norms: what another theorem gives in ℓ1, ℓ2 or ℓ∞, carried over."""

from __future__ import annotations

import math

from unicr.radius._grade import find_weakest
from unicr.radius._question import Question
from unicr.radius.theorems._base import BestBound, ScaledBound, Theorem, factor_of_inclusion

HOMES = (1.0, 2.0, math.inf)  # norms in which some theorem is exact


def match(question: Question) -> BestBound | None:
    """‖δ‖_q ≤ ‖δ‖_p for p ≤ q, so R_p ≥ R_q; and ‖δ‖_q ≤ d^(1/q − 1/p)·‖δ‖_p beyond.

    Only theorems that say nothing in the norm itself are asked (docs/theory.md#theorem-h).
    """
    from unicr.radius.theorems import list_theorems

    homes = [question.in_norm(p) for p in HOMES if p != question.norm.p]
    bounds = tuple(
        ScaledBound(
            theorem=f"{bound.theorem} + (h) inclusion",
            grade=bound.grade,
            engine=bound.engine,
            inner=bound,
            factor=factor_of_inclusion(question.norm, home.norm, question.dim),
        )
        for theorem in list_theorems()
        if theorem is not THEOREM and theorem.match(question) is None
        for home in homes
        if (bound := theorem.match(home)) is not None
    )
    if not bounds:
        return None
    grade = find_weakest(*(bound.grade for bound in bounds))
    return BestBound(theorem=THEOREM.name, grade=grade, bounds=bounds)


THEOREM = Theorem(
    "h", "inclusion", "any norm for which another theorem has a radius in ℓ1, ℓ2 or ℓ∞", match
)
