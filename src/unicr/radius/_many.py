"""Radii for many p_A at once: read from curves, which cost one construction for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import RadiusError
from unicr.noise.internal import plainest
from unicr.norms import Norm
from unicr.radius._curve import RadiusCurve
from unicr.radius._grade import Grade, find_weakest
from unicr.radius._question import Question
from unicr.radius._result import Radius, name_guarantee
from unicr.tables import Tabular
from unicr.values import Array

SINGLE_UP_TO = 4  # up to here single radii cost less than curves


@dataclass(frozen=True, eq=False)
class ManyRadii(Tabular):
    """The radii at several p_A: arrays of the shape that p_A had, and a table.

    `radius` is `proved`, or `searched` where that was asked for. `grade` is the weakest of all.
    """

    radius: Array
    proved: Array
    searched: Array
    p_a: Array
    p_b: Array
    grade: Grade | None
    noise: str
    norm: Norm
    dim: int

    def plain_rows(self) -> list[dict[str, Any]]:
        """One row for each p_A."""
        columns = (self.p_a, self.p_b, self.radius, self.proved, self.searched)
        rows = zip(*(values.ravel().tolist() for values in columns), strict=True)
        return [
            {"p_a": p_a, "p_b": p_b, "radius": radius, "proved": proved, "searched": searched}
            | {"guarantee": "abstain" if p_a <= p_b else name_guarantee(proved, searched)}
            | {"grade": self.grade if proved > 0 else None}
            for p_a, p_b, radius, proved, searched in rows
        ]

    def __len__(self) -> int:
        return len(self.radius)


def compute_radii(
    single: Callable[[float, float | None], Radius],
    question: Question,
    p_a: ArrayLike,
    p_b: ArrayLike | None,
    *,
    searched: bool,
    plain: bool,
) -> ManyRadii:
    """Radii at every p_A (and p_B) of an array.

    From curves where p_B = 1 − p_A and nothing special was asked for (`plain`); a reading is at
    most what a theorem gives at that p_A. Otherwise `single` computes each by itself.
    """
    tops = np.asarray(p_a, dtype=np.float64)
    rests = 1.0 - tops if p_b is None else np.broadcast_to(np.asarray(p_b, float), tops.shape)
    if not (np.all((tops >= 0) & (tops <= 1)) and np.all((rests >= 0) & (rests <= 1))):
        raise RadiusError("p_a and p_b must be probabilities between 0 and 1")
    rests = np.minimum(rests, 1.0 - tops)
    curve = _choose_curve(question) if plain and p_b is None and tops.size > SINGLE_UP_TO else None
    if curve is not None:
        proved, grade = curve(tops), curve.grade
        searches = np.maximum(curve(tops, searched=True), proved)
    else:
        pairs = zip(tops.flat, rests.flat, strict=True)
        each = [single(float(p), None if p_b is None else float(q)) for p, q in pairs]
        proved = np.array([single_radius.proved for single_radius in each]).reshape(tops.shape)
        searches = np.array([single_radius.searched for single_radius in each]).reshape(tops.shape)
        grades = [single_radius.grade for single_radius in each if single_radius.grade is not None]
        grade = find_weakest(*grades) if grades else None
    radius = searches if searched else proved
    noise, norm, dim = question.noise.text, question.norm, question.dim
    return ManyRadii(radius, proved, searches, tops, rests, grade, noise, norm, dim)


def _choose_curve(question: Question) -> RadiusCurve | None:
    """The curve of a noise whose single radii take long; None if they are closed forms."""
    noise = plainest(question.noise)
    known = noise.iid or noise.frame or noise.parts
    if not known and (noise.radial is None or noise.radial.order != 2):
        return None
    curve = RadiusCurve(question.noise, question.norm, question.dim)
    return None if curve.instant else curve
