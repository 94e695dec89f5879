"""Tightness validation: a published radius held against the bracket, over p_A.

Below `proved` a formula is loose (or the same within 0.1 %: tight); above `searched` it claims what
no certificate can give, because a classifier on the robustness boundary breaks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from unicr.noise import Noise
from unicr.norms import Norm
from unicr.radius import certified_radius
from unicr.tightness._formula import Formula

Verdict = Literal["tight", "loose", "WRONG", "inside the bracket"]
TIGHT = 1e-3  # of the searched radius: a formula so near to it counts as tight


@dataclass(frozen=True)
class Judgement:
    """One p_A: the formula's radius, the bracket, and what that says about the formula."""

    p_a: float
    formula: float
    proved: float
    searched: float
    verdict: Verdict
    loss: float

    @property
    def text(self) -> str:
        """The verdict in words, with the size of the loss."""
        if self.verdict == "loose":
            return f"loose by {100 * self.loss:.1f} %"
        if self.verdict == "WRONG":
            return f"WRONG: {-100 * self.loss:.1f} % above what is possible"
        return self.verdict


def judge(formula: float, proved: float, searched: float) -> tuple[Verdict, float]:
    """Return the verdict on a formula and its loss: the share of the true radius given away.

    The loss of a loose formula is counted from `proved`, so it is at least that large. That of a
    wrong one is counted from `searched`, where it is negative.
    """
    if formula > searched * (1 + TIGHT):
        return "WRONG", 1 - formula / searched if searched > 0 else -1.0
    if formula >= searched * (1 - TIGHT):
        return "tight", 0.0
    if formula >= proved:
        return "inside the bracket", 1 - formula / searched
    return "loose", 1 - formula / proved


def validate(
    formula: Formula, noise: Noise, norm: Norm, dim: int, probabilities: Sequence[float]
) -> list[Judgement]:
    """Compare a formula with the bracket at each p_A (binary case, p_B = 1 − p_A).

    Parameters
    ----------
    formula
        A published formula, one of `FORMULAS`.
    noise, norm, dim
        The question; the formula refuses it where it does not cover it.
    probabilities
        The values of p_A.

    Returns
    -------
    list of Judgement
        For each p_A the radius of the formula, the bracket, and the verdict with the loss.
    """
    rows = []
    for p_a in probabilities:
        bracket = certified_radius(noise, norm, dim, p_a=p_a)
        radius = formula.radius(noise, norm, dim, p_a, 1.0 - p_a)
        verdict, loss = judge(radius, bracket.proved, bracket.searched)
        rows.append(Judgement(p_a, radius, bracket.proved, bracket.searched, verdict, loss))
    return rows
