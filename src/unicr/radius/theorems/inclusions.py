"""(h) Inclusions between norms: what another theorem gives in ℓ1, ℓ2 or ℓ∞, carried over."""

from __future__ import annotations

import math

from unicr.radius._grade import find_weakest
from unicr.radius._question import Question
from unicr.radius.theorems._base import BestBound, ScaledBound, Theorem, factor_of_inclusion

HOMES = (1.0, 2.0, math.inf)  # norms in which some theorem is exact


def match(question: Question) -> BestBound | None:
    """‖δ‖_q ≤ ‖δ‖_p for p ≤ q, so R_p ≥ R_q; and ‖δ‖_q ≤ d^(1/q − 1/p)·‖δ‖_p beyond.

    Asked are the theorems that say nothing in the norm itself
    (docs/theory.md#theorem-h).
    """
    from unicr.radius.theorems import list_theorems

    homes = [question.in_norm(p) for p in HOMES if p != question.norm.p]
    bounds: list[ScaledBound] = []
    for theorem in list_theorems():
        if theorem is THEOREM or theorem.match(question) is not None:
            continue
        matched = {home.norm.p: (home.norm, theorem.match(home)) for home in homes}
        # beyond ℓ2 what a theorem gives in ℓ1 loses another √d
        if question.norm.p > 2 and matched[2.0][1] is not None:
            del matched[1.0]
        bounds += [
            ScaledBound(
                theorem=f"{bound.theorem} + (h) inclusion",
                grade=bound.grade,
                engine=bound.engine,
                inner=bound,
                factor=factor_of_inclusion(question.norm, home, question.dim),
            )
            for home, bound in matched.values()
            if bound is not None
        ]
    if not bounds:
        return None
    grade = find_weakest(*(bound.grade for bound in bounds))
    law = question.noise.iid
    # For finite p there is a curve in the norm itself, or radii that are larger one by one. So are
    # those of a law that is 0 somewhere: docs/theory.md#jumps-apart serves single radii only.
    whole = math.isinf(question.norm.p) and law is not None and law.facts.positive
    return BestBound(theorem=THEOREM.name, grade=grade, bounds=tuple(bounds), whole=whole)


THEOREM = Theorem(
    "h", "inclusion", "any norm for which another theorem has a radius in ℓ1, ℓ2 or ℓ∞", match
)
