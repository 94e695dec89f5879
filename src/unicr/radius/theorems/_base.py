"""What a theorem is: a letter on the theory page, what it needs, and a match that gives a bound.

`Theorem.match(question)` looks at noise, norm and dimension once and returns a `Bound`, which
holds all that was learnt, or None. A bound then gives radii for any evidence.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unicr.norms import Norm
from unicr.radius._boundary import TOLERANCE, find_radius
from unicr.radius._grade import Grade
from unicr.radius._question import Evidence, Question
from unicr.radius._readings import FINE_TAILS, LAST_TAIL
from unicr.radius._rounding import raise_tail
from unicr.radius._spectrum import Spectrum, equal_spectrum
from unicr.radius._steps import prove_steps
from unicr.tradeoff import TradeOff
from unicr.values import Array

FIRST_P_A = 0.501  # p_A from which curves are fine: below, radii are too small to matter

Steps = tuple[Array, Array]


@dataclass(frozen=True, eq=False, kw_only=True)
class Bound(ABC):
    """A radius at unit scale that holds for every direction, for one question.

    `theorem` is the name that results print, `grade` how good the proof is. `exact` says whether
    the radius is the true one; then `directions` holds the worst ones, one of which attains it (the
    two signs of one, at most), or None if they are no spectrum. `engine` says what computes.

    See docs/theory.md#certifies.
    """

    theorem: str
    grade: Grade
    engine: str = "theorem"
    exact: bool = False
    directions: tuple[Spectrum, ...] | None = None

    @abstractmethod
    def radius(self, evidence: Evidence) -> float:
        """The radius that holds for every direction; 0 if the theorem proves nothing.

        `radius.theorems.prove` rounds it down: nobody else hands it out.
        """

    @property
    def closed_form(self) -> Callable[[Array], Array] | None:
        """The binary radius as a function of 1 − p_A, where that is a formula."""
        return None

    def tradeoff(self, r: float) -> TradeOff | None:
        """A function below T_δ for every ‖δ‖_p ≤ r, where the theorem has one."""
        return None

    def curve(self) -> Steps | None:
        """(1 − p_j, r_j), r_j proved at p_j and rising: a whole binary curve; None if there is
        no better way than one radius at a time.
        """
        closed = self.closed_form
        if closed is None:
            return None
        with np.errstate(divide="ignore"):
            return FINE_TAILS, np.maximum(closed(FINE_TAILS), 0.0)

    def proof(self, evidence: Evidence) -> Proof:
        """The radius with the bound that gives it."""
        return Proof(self.radius(evidence), self)

    def split(self) -> tuple[Bound, ...]:
        """The bounds of which this one is the best, each to be asked by itself."""
        return (self,)


@dataclass(frozen=True, eq=False, kw_only=True)
class TradeOffBound(Bound):
    """A bound by a function below all T_δ with ‖δ‖_p ≤ r, for every r: the first r that fails.

    `tolerance` is how close to that r the search ends, on its certified side, as a share of it.

    See docs/theory.md#certifies.
    """

    tolerance: float = TOLERANCE

    @abstractmethod
    def tradeoff(self, r: float) -> TradeOff: ...

    @abstractmethod
    def guess(self, evidence: Evidence) -> float:
        """The size of radius at which the search begins. It proves nothing."""

    def radius(self, evidence: Evidence) -> float:
        return find_radius(self.tradeoff, evidence, self.guess(evidence), tolerance=self.tolerance)

    def curve(self) -> Steps | None:
        return self.prove_steps() if self.exact else None

    def prove_steps(self) -> Steps:
        """A whole curve from few trade-off functions (docs/theory.md#lemma-3)."""
        first, last = (
            self.radius(Evidence(FIRST_P_A)),
            self.radius(Evidence(1.0 - LAST_TAIL, LAST_TAIL)),
        )
        return prove_steps(self.tradeoff, first, last)


class Proof(NamedTuple):
    """A proved radius and the bound that gives it, which is None if nothing is proved.

    `complete` says whether every theorem was asked: not where the time was over before.
    """

    radius: float
    bound: Bound | None
    complete: bool = True

    @property
    def theorem(self) -> str:
        """The name of the theorem, "none" where nothing is proved."""
        return "none" if self.bound is None else self.bound.theorem

    @property
    def grade(self) -> Grade | None:
        """The grade of the proof, None if nothing is proved."""
        return None if self.bound is None else self.bound.grade


@dataclass(frozen=True)
class Theorem:
    """One theorem of docs/theory.md: `match` gives its bound for a question at unit scale, or None.

    `needs` says in words what `match` asks for. Theorems are asked in the order of `rank`: 0 for a
    formula in every norm, 1 for any other formula, 2 for the rest, 3 for what may take minutes, so
    that the others are known when time is over; those of two `laws` only where the evidence has
    votes under a second law. `computed_in` names the modules that compute its trade-off function
    or its radius, where the file of the theorem does not hold all of it, the first one first.
    """

    letter: str
    words: str
    needs: str
    match: Callable[[Question], Bound | None]
    rank: int = 2
    laws: int = 1
    computed_in: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As results print it."""
        return f"({self.letter}) {self.words}"

    @property
    def anchor(self) -> str:
        """Its place on the theory page."""
        return f"theorem-{self.letter}"


@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledBound(Bound):
    """What another bound gives, times a factor."""

    inner: Bound
    factor: float

    def radius(self, evidence: Evidence) -> float:
        return self.factor * self.inner.radius(evidence)

    def curve(self) -> Steps | None:
        steps = self.inner.curve()
        return None if steps is None else (steps[0], self.factor * steps[1])


@dataclass(frozen=True, eq=False, kw_only=True)
class BestBound(Bound):
    """The best of several bounds: which one that is depends on the evidence.

    `whole` says whether their whole curves serve in place of single radii.
    """

    bounds: tuple[Bound, ...]
    whole: bool = False

    def radius(self, evidence: Evidence) -> float:
        return self.proof(evidence).radius

    def proof(self, evidence: Evidence) -> Proof:
        return max((bound.proof(evidence) for bound in self.bounds), key=lambda proof: proof.radius)

    def split(self) -> tuple[Bound, ...]:
        return tuple(single for bound in self.bounds for single in bound.split())

    def curve(self) -> Steps | None:
        return merge_curves(self.bounds) if self.whole else None


def merge_curves(bounds: Iterable[Bound]) -> Steps | None:
    """The best of the whole curves of several bounds; None if no bound has one.

    Every step of each curve is proved, and a radius that is proved at one p_A holds at a larger
    (docs/theory.md#certifies).
    """
    curves = [steps for bound in bounds if (steps := bound.curve()) is not None]
    if len(curves) < 2:
        return curves[0] if curves else None
    alpha = np.concatenate([curve[0] for curve in curves])
    radius = np.concatenate([curve[1] for curve in curves])
    order = np.argsort(-alpha, kind="stable")
    return alpha[order], np.maximum.accumulate(radius[order])


def compute_half_gap(quantile: Callable[[float], float], evidence: Evidence) -> float:
    """(Q(p_A) − Q(p_B))/2 from below, Q the quantile function of a symmetric law.

    The radius of docs/theory.md#theorem-b at unit scale.

    Q(p_A) = −Q(1 − p_A) keeps the digits of the tail; 1 − p_A is exact for p_A ≥ 1/2.
    """
    upper = -quantile(raise_tail(1.0 - evidence.p_a))
    if evidence.binary:
        return upper
    return 0.5 * (upper - quantile(raise_tail(evidence.p_b)))


def factor_from_l2(norm: Norm, dim: int) -> float:
    """The factor from R_2 to R_p where only ‖δ‖₂ matters: the worst δ is one-hot or all-equal.

    docs/theory.md#theorem-d.
    """
    return 1.0 if norm.p <= 2 else float(dim) ** (1 / norm.p - 0.5)


def factor_of_inclusion(norm: Norm, home: Norm, dim: int) -> float:
    """The factor from a radius in `home` to one in `norm` (docs/theory.md#theorem-h)."""
    return 1.0 if norm.p <= home.p else float(dim) ** (1 / norm.p - 1 / home.p)


def list_extreme_directions(norm: Norm, dim: int, most: float) -> tuple[Spectrum, ...]:
    """One coordinate for p ≤ `most`, all equal ones beyond."""
    return (equal_spectrum(1 if norm.p <= most else dim),)


def is_linf(question: Question) -> bool:
    """Whether the norm is ℓ∞, or cannot be told from it: in one dimension all norms agree."""
    return math.isinf(question.norm.p) or question.dim == 1
