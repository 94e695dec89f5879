"""(h) for a scale per coordinate: ‖δ/s‖_p ≤ ‖δ‖_p/min s, so R_p ≥ min s·R_p of the base noise."""

from __future__ import annotations

from unicr.radius._grade import find_weakest
from unicr.radius._question import Question, replace_noise
from unicr.radius.theorems._base import BestBound, ScaledBound, Theorem


def match(question: Question) -> BestBound | None:
    """What is proved for the i.i.d. base, times the smallest scale."""
    from unicr.radius.theorems import list_bounds

    base, scales = question.noise.coordinate, question.noise.scales
    if base is None or scales is None:
        return None
    found = tuple(
        ScaledBound(
            theorem=f"{inner.theorem}, smallest scale",
            grade=inner.grade,
            engine=inner.engine,
            inner=inner,
            factor=float(scales.min()) * base.scale,
        )
        for inner in list_bounds(replace_noise(question, base.unit))
    )
    if not found:
        return None
    grade = find_weakest(*(one.grade for one in found))
    return BestBound(theorem=THEOREM.name, grade=grade, bounds=found)


THEOREM = Theorem(
    "h", "smallest scale", "a scale per coordinate, and a theorem for the base noise", match
)
