"""p_A–R curves: the binary radius as a function of p_A, computed once per shape, then read.

A curve holds steps (p_k, r_k) at which r_k is certified at p_k, made at unit scale. A proved
reading is at most what the theorem gives at that p_A (`_steps`, `_readings`); it costs nanoseconds.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import RadiusError
from unicr.noise import Noise
from unicr.noise.internal import plainest
from unicr.norms import Norm
from unicr.radius._cache import PROVED, SEARCHED, load_or_make, read_shipped
from unicr.radius._grade import Grade, find_weakest
from unicr.radius._question import Evidence, Question
from unicr.radius._readings import FINE_TAILS, Readings
from unicr.radius._result import reconcile
from unicr.radius._rounding import lower_radius
from unicr.radius._worst import NODES, WorstDirection, place_nodes, read_from_below
from unicr.radius.theorems import Bound, find_exact_bound, list_bounds, prove
from unicr.radius.theorems._base import Steps, merge_curves
from unicr.radius.theorems.part_of_noise import Part, list_parts
from unicr.tables import to_html
from unicr.values import Array

# Curves that come with the package for this dimension hold in every smaller one: p ≤ 2, where few
# coordinates are worst, they lose little down to the least one.
LENT_DIMENSION, LEAST_LENT = 150_528, 500
READING_ERROR = 3e-3  # by which a searched curve may be read too low


class NoCurveError(RadiusError):
    """No theorem and no composition gives a curve; single radii can still be computed."""


class RadiusCurve:
    """The radius as a function of p_A for one noise, norm and dimension, with p_B = 1 − p_A.

    `curve(p)` is the proved radius at p, never larger than what a theorem gives there. With
    `searched=True` it is the paper's approximate radius, interpolated between nodes. p may be an
    array. The radius is 0 for p ≤ 1/2 and constant above 1 − 1e-11. At p = 1 it is infinite if the
    density is positive everywhere. A curve is computed when first used, and kept on disk.

    `exact` says that a theorem gives the true radius: then the searched curve is the proved one.
    `bracketed` says that there is a searched radius. If a noise is known only by its parts, unicr
    does not search, and the proved radius is used in place of the searched one.
    See docs/theory.md#certifies.
    """

    def __init__(self, noise: Noise, norm: Norm | float | str, dim: int | None = None) -> None:
        question = Question(noise, norm, dim)
        law = replace(question, noise=plainest(noise))
        self.question, self._scale = question, law.noise.scale
        self._parts: tuple[tuple[Part, RadiusCurve], ...] = ()
        alone = law.noise.frame is None and not law.noise.parts
        if alone or (law.noise.scales is not None and find_exact_bound(law) is not None):
            _check_curve(law)
            self.unit = get_unit_curve(law.unit)
            self.exact, self.bracketed = self.unit.exact, True
            return
        self._parts = tuple(_list_curves(law))
        if not self._parts:
            raise NoCurveError(
                f"{noise.text} has no curve in {question.norm}, because none of its parts has one"
            )
        self.unit = self._parts[0][1].unit
        self.exact = any(part.exact and curve.exact for part, curve in self._parts)
        self.bracketed = self.exact

    @property
    def noise(self) -> Noise:
        """The noise that radii are for."""
        return self.question.noise

    @property
    def norm(self) -> Norm:
        """The norm that radii are in."""
        return self.question.norm

    @property
    def dim(self) -> int:
        """The dimension of inputs."""
        return self.question.dim

    @property
    def grade(self) -> Grade | None:
        """How the proved curve was computed; None if nothing is proved."""
        if not self._parts:
            return self.unit.grade
        grades = [(part.grade, curve.grade) for part, curve in self._parts]
        return find_weakest(*(find_weakest(a, b) for a, b in grades if b is not None))

    @property
    def on_disk(self) -> bool:
        """Whether any of its proved steps are kept on this machine's disk."""
        return any(c.on_disk for _, c in self._parts) if self._parts else self.unit.on_disk

    @property
    def instant(self) -> bool:
        """Whether the proved curve is a formula."""
        if self._parts:
            return all(curve.instant for _, curve in self._parts)
        return self.unit.instant("proved")

    def __call__(self, p: ArrayLike, *, searched: bool = False) -> Array:
        if self._parts:
            several = [lower_radius(curve(p), part.factor) for part, curve in self._parts]
            return np.asarray(np.maximum.reduce(several))
        if searched and not self.unit.exact:
            return self.unit.searched_table.read(p) * self._scale
        return lower_radius(self.unit.proved_table.read(p), self._scale)

    def __repr__(self) -> str:
        return f"RadiusCurve({self.noise!r}, {self.norm}, dimension {self.dim})"

    def _repr_html_(self) -> str:
        grade = "nothing is proved" if self.grade is None else f"proved: {self.grade}"
        about = f"<p>{html.escape(repr(self))}, {html.escape(grade)}</p>"
        if not self.instant and (self._parts or "proved" not in vars(self.unit)):
            return about  # to make it may take minutes: nobody asked for that
        rows = [{"p_a": p, "proved": float(self(p))} for p in (0.6, 0.7, 0.8, 0.9, 0.99, 0.999)]
        return about + to_html(rows)


def _list_curves(law: Question) -> Iterator[tuple[Part, RadiusCurve]]:
    """The curves of the parts of a noise, where they have one (docs/theory.md#theorem-p)."""
    for part in list_parts(law):
        with suppress(NoCurveError):
            yield part, RadiusCurve(part.noise, part.norm, law.dim)


def _check_curve(law: Question) -> None:
    """Raise NoCurveError if a noise that is no sum has no curve."""
    noise = law.noise
    if noise.iid is not None:
        return
    if noise.coordinate is None and noise.radial is None:
        raise NoCurveError(
            f"{noise.text} has no curve, because its coordinates are not independent"
        )
    if noise.radial is None or find_exact_bound(law) is not None:
        return
    if noise.radial.order == 1:
        raise NoCurveError(
            f"{noise.text} has no curve in {law.norm}, only in lp with p <= 1: compute single "
            "radii with unicr.radius.certified_radius"
        )
    if noise.radial.order == 2:
        raise NoCurveError(
            f"{noise.text} has no curve, because its density increases with the length somewhere: "
            "compute single radii with unicr.radius.certified_radius"
        )


class UnitCurve:
    """The steps and tables of one curve at unit scale.

    `exact` says that a theorem gives the true radius: then the proved and the searched curve are
    one. See docs/theory.md#certifies.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        self.key = f"{question.noise.cache_key}|{question.norm.text}|{question.dim}"
        self._exact = find_exact_bound(question)
        self.exact = self._exact is not None

    def instant(self, kind: str) -> bool:
        """Whether nothing is stored for this curve: it has a closed form, or is the other one."""
        if self._exact is None:
            return kind == "proved" and not self._bounds
        return kind == "searched" or self._exact.closed_form is not None

    @property
    def on_disk(self) -> bool:
        """Whether its proved steps are kept on this machine's disk, and are not the package's."""
        return not self.instant("proved") and self._packaged is None

    @cached_property
    def proved(self) -> Steps:
        """(1 − p, r): r is proved at p."""
        if not self._bounds:
            return np.array([0.5]), np.array([0.0])
        if self.instant("proved"):
            return self._prove()
        return self._packaged or self._load_steps(PROVED, self._prove)

    @cached_property
    def _packaged(self) -> Steps | None:
        """The proved steps that come with the package: of this dimension, or of a larger one, as
        what holds there holds here (docs/theory.md#a-larger-dimension).
        """
        question = self.question
        packaged = read_shipped(PROVED, self.key, question.dim)
        if packaged or question.norm.p > 2 or not LEAST_LENT <= question.dim < LENT_DIMENSION:
            return packaged
        larger = f"{question.noise.cache_key}|{question.norm.text}|{LENT_DIMENSION}"
        return read_shipped(PROVED, larger, LENT_DIMENSION)

    @cached_property
    def searched(self) -> Steps:
        """(1 − p, r): r is certified at p along every direction that was searched."""
        if self._exact:
            return self.proved
        shipped = read_shipped(SEARCHED, self.key, self.question.dim)
        return shipped or self._load_steps(SEARCHED, self._search)

    @cached_property
    def proved_table(self) -> Readings:
        return Readings(*self.proved, self._at_one)

    @cached_property
    def searched_table(self) -> Readings:
        read = np.maximum(read_from_below(*self.searched)(FINE_TAILS), 0.0)
        return Readings(FINE_TAILS, read, self._at_one)

    @property
    def _at_one(self) -> float | None:
        """Where the density is positive everywhere, p_A = 1 certifies every radius."""
        return math.inf if self.question.noise.facts.positive else None

    @cached_property
    def grade(self) -> Grade | None:
        """The weakest of the bounds that may have made a step."""
        return find_weakest(*(bound.grade for bound in self._bounds)) if self._bounds else None

    @cached_property
    def _bounds(self) -> tuple[Bound, ...]:
        return list_bounds(self.question)

    def _load_steps(self, kind: str, make: Callable[[], Steps]) -> Steps:
        def arrays() -> dict[str, Array]:
            alpha, radius = make()
            return {"alpha": alpha, "radius": radius}

        stored = load_or_make(kind, self.key, arrays)
        return stored["alpha"], stored["radius"]

    def _prove(self) -> Steps:
        """The best of the theorems' curves; if no theorem has one, radii at some nodes."""
        return merge_curves(self._bounds) or self._prove_nodes()

    def _prove_nodes(self) -> Steps:
        """Steps at some nodes of the searched curve, for theorems that answer one p_A at a time."""
        alpha, searched = self.searched
        keep = np.unique(np.linspace(0, len(alpha) - 1, NODES // 2).astype(int))
        proved = np.zeros(len(keep))
        for j, i in enumerate(keep):
            if alpha[i] < 0.5:
                proof = prove(self.question, Evidence(1.0 - alpha[i], float(alpha[i])))
                engine = "composition along the worst directions"
                reconcile(proof.radius, proof.theorem, searched[i], engine, READING_ERROR)
                proved[j] = proof.radius
        return alpha[keep], np.maximum.accumulate(proved)

    def _search(self) -> Steps:
        worst = WorstDirection(self.question)
        return place_nodes(worst.alpha, worst.last)


@lru_cache(maxsize=128)
def get_unit_curve(question: Question) -> UnitCurve:
    """The curve of a question at unit scale, which all scales share."""
    return UnitCurve(question)
