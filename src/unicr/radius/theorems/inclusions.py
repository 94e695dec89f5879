"""(h) Inclusions between norms: what another theorem gives in ℓ1, ℓ2 or ℓ∞, carried over."""

from __future__ import annotations

import math

from unicr.radius._grade import find_weakest
from unicr.radius._question import Question
from unicr.radius.theorems._base import (
    BestBound,
    ScaledBound,
    Theorem,
    factor_of_inclusion,
    is_linf,
)

HOMES = (1.0, 2.0, math.inf)  # norms in which some theorem is exact
LONG = 3  # the rank of what may take minutes


def match(question: Question) -> BestBound | None:
    """‖δ‖_q ≤ ‖δ‖_p for p ≤ q, so R_p ≥ R_q; and ‖δ‖_q ≤ d^(1/q − 1/p)·‖δ‖_p beyond.

    Only theorems that say nothing in the norm itself are asked (docs/theory.md#theorem-h).
    """
    from unicr.radius.theorems import list_theorems

    homes = [question.in_norm(p) for p in HOMES if p != question.norm.p]
    # In ℓ∞ (c) and (f) compose exactly what the kernels of (j) are above, and (j) takes long.
    law = question.noise.iid
    composed = is_linf(question) and law is not None and law.facts.unimodal
    carried: list[ScaledBound] = []
    for theorem in list_theorems():
        if theorem is THEOREM or (composed and theorem.rank == LONG):
            continue
        if theorem.match(question) is not None:
            continue
        bounds = {home.norm.p: (home.norm, theorem.match(home)) for home in homes}
        # beyond ℓ2 what a theorem gives in ℓ1 loses another √d
        if question.norm.p > 2 and bounds[2.0][1] is not None:
            del bounds[1.0]
        carried += [
            ScaledBound(
                theorem=f"{bound.theorem} + (h) inclusion",
                grade=bound.grade,
                engine=bound.engine,
                inner=bound,
                factor=factor_of_inclusion(question.norm, home, question.dim),
            )
            for home, bound in bounds.values()
            if bound is not None
        ]
    if not carried:
        return None
    grade = find_weakest(*(bound.grade for bound in carried))
    # For finite p there is a curve in the norm itself, or radii that are larger one by one. A law
    # that is 0 somewhere has larger ones too (docs/theory.md#jumps-apart).
    whole = math.isinf(question.norm.p) and law is not None and law.facts.positive
    return BestBound(theorem=THEOREM.name, grade=grade, bounds=tuple(carried), whole=whole)


THEOREM = Theorem(
    "h", "inclusion", "any norm for which another theorem has a radius in ℓ1, ℓ2 or ℓ∞", match
)
