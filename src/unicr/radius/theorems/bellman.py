"""(j) Every finite p, any i.i.d. noise: a supersolution of the adversary's game, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass

from unicr.noise import IID
from unicr.norms import Norm
from unicr.radius._grade import Grade, grade_proof
from unicr.radius._question import Evidence, Question
from unicr.radius.bellman import bellman_curve, bellman_radius
from unicr.radius.theorems import few
from unicr.radius.theorems._base import Bound, Steps, Theorem


@dataclass(frozen=True, eq=False, kw_only=True)
class BellmanBound(Bound):
    """H_γ(T_δ) ≤ Φ for every δ, where Φ grows fast enough for any next coordinate.

    The argument: docs/theory.md#theorem-j. `closer` says that (n) covers the question:
    its single radii are closer and ten times as fast, so this one gives none beside its curve.
    """

    law: IID
    norm: Norm
    dim: int
    closer: bool

    def radius(self, evidence: Evidence) -> float:
        if self.closer:
            return 0.0
        return bellman_radius(self.law, self.norm, self.dim, evidence.p_a, evidence.p_b)

    def curve(self) -> Steps:
        return bellman_curve(self.law, self.norm, self.dim)


def match(question: Question) -> BellmanBound | None:
    """Any i.i.d. noise in two dimensions or more."""
    law = question.noise.iid
    if law is None or not math.isfinite(question.norm.p) or question.dim < 2:
        return None
    return BellmanBound(
        theorem=THEOREM.name,
        grade=grade_proof(Grade.FLOATING_POINT, law, ranges=True),
        law=law,
        norm=question.norm,
        dim=question.dim,
        closer=few.match(question) is not None,
    )


THEOREM = Theorem(
    "j",
    "Bellman bound",
    "finite p, dimension of at least 2; any i.i.d. noise",
    match,
    rank=3,
    computed_in=(
        "unicr.radius.bellman._radius",
        "unicr.radius.bellman._sheet",
        "unicr.radius.bellman._verify",
        "unicr.radius.bellman._kernel",
        "unicr.radius.bellman._chord",
        "unicr.tradeoff._ratio",
    ),
)
