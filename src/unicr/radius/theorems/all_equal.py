"""(c) ℓ∞, or one dimension, symmetric unimodal noise: all coordinates move equally."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unicr.noise import IID
from unicr.radius._grade import Grade, grade_proof
from unicr.radius._question import Evidence, Question
from unicr.radius._spectrum import equal_spectrum
from unicr.radius.theorems._base import Theorem, TradeOffBound, is_linf
from unicr.tradeoff import TradeOff, compute_tradeoff
from unicr.tradeoff.internal import guess_radius
from unicr.values import Array

MOST_GROUPS = 48  # scales that are composed one by one: a composition costs as many transforms

Groups = tuple[tuple[float, int], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class AllEqualBound(TradeOffBound):
    """R by d-fold composition of equal shifts, by groups of equal scales where these differ.

    H_γ between p and its shift by u grows with u: for γ ≥ 1 its derivative is γ·Σ(p(a) − p(b)) ≥ 0
    over the intervals (a, b), all beyond the mode, where p(z − u) > γ·p(z). So every T_u falls with
    |u|, products keep the order, and (a, …, a) is worst. Log-concavity is not needed
    (docs/theory.md#theorem-c). `groups` are (scale, coordinates).
    """

    law: IID
    groups: Groups

    def tradeoff(self, r: float) -> TradeOff:
        return compute_tradeoff(self.law, [(r / s, n) for s, n in self.groups])

    def guess(self, evidence: Evidence) -> float:
        total = math.sqrt(sum(n / s**2 for s, n in self.groups))
        return self.law.scale * guess_radius(evidence.p_a, evidence.p_b) / total


def match(question: Question) -> AllEqualBound | None:
    """Exact, unless there are so many scales that some are rounded down.

    See docs/theory.md#theorem-c.
    """
    noise, law = question.noise, question.noise.coordinate
    if law is None or not (law.facts.symmetric and law.facts.unimodal and is_linf(question)):
        return None
    exact = True
    groups: Groups = ((1.0, question.dim),)
    if noise.scales is not None:
        exact, groups = len(np.unique(noise.scales)) <= MOST_GROUPS, group_scales(noise.scales)
    return AllEqualBound(
        theorem=THEOREM.name,
        grade=grade_proof(Grade.FLOATING_POINT, noise, ranges=True),
        engine="composition",
        exact=exact,
        directions=(equal_spectrum(question.dim),),
        law=law,
        groups=groups,
    )


def group_scales(scales: Array) -> Groups:
    """(scale, how many coordinates), at most GROUPS of them: others are rounded down to a grid.

    A smaller scale makes a shift easier to see, so rounding down is safe.

    See docs/theory.md#theorem-c.
    """
    values, counts = np.unique(scales, return_counts=True)
    if len(values) > MOST_GROUPS:
        grid = np.geomspace(values[0], values[-1], MOST_GROUPS)
        grid[0], grid[-1] = values[0], values[-1]
        at = np.maximum(np.searchsorted(grid, values, side="right") - 1, 0)
        counts = np.bincount(at, weights=counts, minlength=MOST_GROUPS).astype(np.int64)
        values = grid
    return tuple((float(s), int(n)) for s, n in zip(values, counts, strict=True) if n)


THEOREM = Theorem(
    "c",
    "all-equal, unimodal",
    "ℓ∞, or one dimension; symmetric unimodal coordinates",
    match,
    computed_in=(
        "unicr.tradeoff._compose",
        "unicr.tradeoff._ratio",
    ),
)
