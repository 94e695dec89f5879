"""(p) A part of the noise: what is proved for ξ holds for Bξ + η, η independent of the input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

from unicr.noise import Noise
from unicr.norms import Norm, l2
from unicr.radius._grade import Grade, find_weakest
from unicr.radius._question import Question
from unicr.radius.theorems._base import BestBound, Bound, ScaledBound, Theorem, factor_of_inclusion


@dataclass(frozen=True)
class Part:
    """A noise whose radius in `norm`, times `factor`, is one of the noise that was asked for."""

    noise: Noise
    norm: Norm
    factor: float
    words: str
    grade: Grade
    exact: bool = False


def list_parts(question: Question) -> Iterator[Part]:
    """The noises that a sum or a stretched noise is made of, at unit scale.

    ‖B⁻¹δ‖_p ≤ ‖δ‖_p/c, so c·R_p(ξ) is a radius of Bξ; and R(ξ) is one of ξ + η
    (docs/theory.md#theorem-p).
    """
    noise, norm, frame = question.noise, question.norm, question.noise.frame
    if noise.parts:
        for part in noise.certifying:
            yield Part(part.unit, norm, part.scale, "part of a sum", Grade.CLOSED_FORM)
    if frame is None:
        return
    core, words = noise.core, "smallest scale" if noise.scales is not None else "least stretch"
    grade = Grade.CLOSED_FORM if noise.scales is not None else Grade.FLOATING_POINT
    if (least := frame.inner_factor(norm.p)) > 0:
        normal = core.iid is not None and core.iid.normal_sigma is not None
        exact = noise.scales is None and normal and norm == l2
        yield Part(core.unit, norm, least * core.scale, words, grade, exact)
    if noise.scales is None and norm != l2:
        # a matrix is known best in ℓ2
        factor = factor_of_inclusion(norm, l2, question.dim) * frame.inner_factor(2.0) * core.scale
        yield Part(core.unit, l2, factor, f"{words} in ℓ2", grade)


def match(question: Question) -> Bound | None:
    """The best of what is proved for the parts (docs/theory.md#theorem-p)."""
    from unicr.radius.theorems import list_bounds

    several: list[list[ScaledBound]] = []
    for part in list_parts(question):
        about = Question(part.noise, part.norm, question.dim)
        several.append([])
        for inner in list_bounds(about):
            bound = ScaledBound(
                theorem=f"{inner.theorem}, {part.words}",
                grade=find_weakest(inner.grade, part.grade),
                engine=inner.engine,
                inner=inner,
                factor=part.factor,
            )
            if part.exact and inner.exact:
                return replace(bound, exact=True)
            several[-1].append(bound)
    # what takes long stands last for each part: the first of every part are asked first
    rows = zip_longest(*several)
    bounds = [bound for row in rows for bound in row if bound is not None]
    if not bounds:
        return None
    grade = find_weakest(*(bound.grade for bound in bounds))
    return BestBound(theorem=THEOREM.name, grade=grade, bounds=tuple(bounds))


THEOREM = Theorem(
    "p",
    "part of the noise",
    "a sum of noises, a scale per coordinate or a matrix, and a theorem for one part",
    match,
)
