"""How good is a proof on a computer? Its grade, the weakest of all that it rests on."""

from __future__ import annotations

from enum import StrEnum

from unicr.noise import Noise
from unicr.tradeoff.internal import knows_ranges


class Grade(StrEnum):
    """From the strongest to the weakest; a radius has the weakest one that applies.

    `CLOSED_FORM`: a formula, evaluated and rounded down. `OUTWARD_ROUNDING`: a sum over cells in
    which every term errs on the safe side. `FLOATING_POINT`: a proof whose rounding errors are
    bounded by a charge (docs/theory.md#rounding-charges), not enclosed. `CHECKED_ON_A_GRID`: facts
    of the density that the theorem needs were tested at many points, not proved. `DECLARED`: the
    user says that they hold.
    """

    CLOSED_FORM = "closed form"
    OUTWARD_ROUNDING = "outward rounding"
    FLOATING_POINT = "floating point with a charge"
    CHECKED_ON_A_GRID = "facts checked on a grid"
    DECLARED = "declared by the user"


ORDER = tuple(Grade)
GRADE_OF_FACTS = {
    "analytic": Grade.CLOSED_FORM,
    "table": Grade.CLOSED_FORM,
    "checked": Grade.CHECKED_ON_A_GRID,
    "declared": Grade.DECLARED,
}


def find_weakest(*grades: Grade) -> Grade:
    """The one that counts where a proof rests on all of them."""
    return max(grades, key=ORDER.index)


def grade_proof(grade: Grade, noise: Noise, *, ranges: bool = False) -> Grade:
    """The grade of a proof that would be of this `grade`, and relies on the facts of this noise.

    `ranges`: it also needs the range of the log-ratio in cells. Where neither log-concavity nor
    the law itself tells it, that is taken from some points of each cell (docs/theory.md#lemma-4):
    checked, not proved, whatever is known of the density.
    """
    grades = [grade, GRADE_OF_FACTS[noise.facts.source]]
    law = noise.coordinate
    if ranges and law is not None and not knows_ranges(law.unit):
        grades.append(Grade.CHECKED_ON_A_GRID)
    return find_weakest(*grades)
