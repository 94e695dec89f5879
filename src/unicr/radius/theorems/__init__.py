"""Every theorem that gives a radius, one file each: what may be called proved, and by what.

A file of this folder holds one `THEOREM` (see `_base.Theorem`) and is found by being here. What is
exact, which direction is worst and which radius is proved are asked of this list and nowhere else.
"""

from __future__ import annotations

from functools import lru_cache

from unicr.errors import RadiusError, one_line
from unicr.progress import OutOfTime
from unicr.radius._question import Evidence, Question
from unicr.radius._rounding import lower_radius
from unicr.radius.theorems._base import Bound, Proof, Theorem
from unicr.registry import Catalogue

__all__ = [
    "THEOREMS",
    "Bound",
    "Proof",
    "Theorem",
    "find_exact_bound",
    "list_bounds",
    "list_theorems",
    "prove",
]

NOTHING_PROVED = Proof(0.0, None)  # a radius of 0 holds by itself

# formulas first, so that the first exact one is the simplest; then by letter
THEOREMS: Catalogue[Theorem] = Catalogue(
    "unicr.theorems",
    __name__,
    Theorem,
    sort=lambda theorem: (theorem.rank, theorem.letter, theorem.words),
)


def list_theorems() -> tuple[Theorem, ...]:
    """All of them: formulas first, then by letter."""
    return tuple(THEOREMS.values())


def find_exact_bound(question: Question) -> Bound | None:
    """The bound that gives the true radius, at unit scale; None if there are only bounds.

    The first theorem in the list that is exact is taken, so that a closed form goes first.
    """
    return _find_exact(question.unit)


@lru_cache(maxsize=256)
def _find_exact(unit: Question) -> Bound | None:
    bounds = (theorem.match(unit) for theorem in list_theorems() if theorem.laws == 1)
    return next((bound for bound in bounds if bound is not None and bound.exact), None)


def list_bounds(question: Question, *, laws: int = 1) -> tuple[Bound, ...]:
    """Every bound from votes under so many laws, at unit scale; an exact one is given alone."""
    return _list_bounds(question.unit, laws)


@lru_cache(maxsize=256)
def _list_bounds(unit: Question, laws: int) -> tuple[Bound, ...]:
    exact = _find_exact(unit) if laws == 1 else None
    if exact is not None:
        return (exact,)
    bounds = (theorem.match(unit) for theorem in list_theorems() if theorem.laws == laws)
    return tuple(bound for bound in bounds if bound is not None)


def prove(question: Question, evidence: Evidence, *, laws: int = 1) -> Proof:
    """The largest radius that a theorem of so many laws gives, in real units and rounded down.

    A theorem whose numbers cannot be computed proves nothing; that is an error if no other one
    proves anything either. If time is over (`OutOfTime`), what was proved by then stands and is
    not `complete`; it is an error too if nothing was proved. See docs/theory.md#certifies.
    """
    best, failed, complete = NOTHING_PROVED, None, True
    bounds = [single for bound in list_bounds(question, laws=laws) for single in bound.split()]
    for bound in bounds:
        try:
            proof = bound.proof(evidence)
        except (ValueError, ArithmeticError) as error:
            failed = failed or _name_failure(bound, error)
            continue
        except OutOfTime:
            if not best.radius > 0:
                raise
            complete = False
            break
        best = proof if proof.radius > best.radius else best
    if not best.radius > 0:
        if failed is not None:
            raise failed
        return NOTHING_PROVED
    radius = lower_radius(best.radius, question.noise.scale)
    return best._replace(radius=radius, complete=complete)


def _name_failure(bound: Bound, error: Exception) -> RadiusError:
    """The same error, or where it is none of ours one that names the theorem."""
    if isinstance(error, RadiusError):
        return error
    failed = RadiusError(f"theorem {bound.theorem} cannot be computed here: {one_line(error)}")
    failed.__cause__ = error
    return failed
