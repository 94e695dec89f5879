"""(f) ℓ∞, unimodal noise that is not symmetric: both signs of every coordinate at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from unicr.noise import IID
from unicr.radius._grade import Grade, grade_proof
from unicr.radius._question import Evidence, Question
from unicr.radius.theorems._base import Steps, Theorem, TradeOffBound
from unicr.tradeoff import TradeOff, compose, make_ratio_law
from unicr.tradeoff.internal import guess_radius, make_envelope


@dataclass(frozen=True, eq=False, kw_only=True)
class EnvelopeBound(TradeOffBound):
    """T_u falls with u on either side of zero, so the larger of the two hockey-stick divergences
    at every γ bounds each |v| ≤ u; that envelope is convex, hence a trade-off function to compose
    (docs/theory.md#theorem-f).
    """

    law: IID
    dim: int

    def tradeoff(self, r: float) -> TradeOff:
        laws = [make_ratio_law(self.law, sign * r) for sign in (1.0, -1.0)]
        return compose([(make_envelope(laws), self.dim)])

    def guess(self, evidence: Evidence) -> float:
        return guess_radius(evidence.p_a, evidence.p_b) / math.sqrt(self.dim)

    def curve(self) -> Steps | None:
        # of a law that is 0 somewhere (h) proves larger radii, one by one
        return self.prove_steps() if self.law.facts.positive else None


def match(question: Question) -> EnvelopeBound | None:
    """Where (c) does not serve for want of symmetry."""
    law = question.noise.iid
    if law is None or not math.isinf(question.norm.p):
        return None
    if law.facts.symmetric or not law.facts.unimodal:
        return None
    return EnvelopeBound(
        theorem=THEOREM.name,
        grade=grade_proof(Grade.FLOATING_POINT, law, ranges=True),
        engine="composition",
        law=law,
        dim=question.dim,
    )


THEOREM = Theorem(
    "f",
    "envelope",
    "ℓ∞; unimodal coordinates without symmetry",
    match,
    computed_in=(
        "unicr.tradeoff._envelope",
        "unicr.tradeoff._compose",
    ),
)
