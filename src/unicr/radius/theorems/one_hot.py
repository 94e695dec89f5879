"""(b) ℓp with p ≤ 1, or one dimension, symmetric log-concave noise: one coordinate takes it all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unicr.noise import IID
from unicr.radius._grade import Grade, grade_proof
from unicr.radius._question import Evidence, Question
from unicr.radius._rounding import raise_tail
from unicr.radius._spectrum import equal_spectrum
from unicr.radius.theorems._base import Bound, Theorem, compute_half_gap
from unicr.values import Array


@dataclass(frozen=True, eq=False, kw_only=True)
class OneHotBound(Bound):
    """R = (F⁻¹(p_A) − F⁻¹(p_B))/2, times the smallest scale where coordinates have their own.

    Walk from 0 to δ one coordinate at a time: T_δ ≥ T_u, u = Σ|δ_i|/s_i ≤ ‖δ‖_1/min s, with
    equality for one-hot δ (docs/theory.md#theorem-b).
    """

    law: IID
    least: float

    def radius(self, evidence: Evidence) -> float:
        return self.least * compute_half_gap(lambda u: float(self.law.ppf(u)), evidence)

    @property
    def closed_form(self) -> Callable[[Array], Array]:
        return lambda alpha: self.least * self.law.isf(raise_tail(alpha))


def match(question: Question) -> OneHotBound | None:
    """Each coordinate symmetric and log-concave, up to its scale."""
    noise, law = question.noise, question.noise.coordinate
    if law is None or not (question.norm.p <= 1 or question.dim == 1):
        return None
    if not (law.facts.symmetric and law.facts.log_concave):
        return None
    return OneHotBound(
        theorem=THEOREM.name,
        grade=grade_proof(Grade.FLOATING_POINT if law.tabulated else Grade.CLOSED_FORM, noise),
        engine="closed form",
        exact=True,
        directions=(equal_spectrum(1),),
        law=law,
        least=1.0 if noise.scales is None else float(noise.scales.min()),
    )


THEOREM = Theorem(
    "b",
    "one-hot, log-concave",
    "ℓp, p ≤ 1, or one dimension; symmetric log-concave coordinates",
    match,
    rank=1,
)
