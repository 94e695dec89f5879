"""Every theorem that gives a radius, one file each: what may be called proved, and by what.

A file of this folder holds one `THEOREM` (see `_base.Theorem`) and is found by being here. What is
exact, which direction is worst and which radius is proved are asked of this list and nowhere else.
"""

from __future__ import annotations

from unicr.noise import IID, Noise
from unicr.norms import Norm
from unicr.radius._spectrum import Spectrum
from unicr.radius.theorems._base import NOTHING, Proof, Theorem, trust
from unicr.registry import Catalogue

__all__ = ["THEOREMS", "Proof", "Theorem", "exact", "prove", "theorems", "worst"]


THEOREMS: Catalogue[Theorem] = Catalogue(
    "unicr.theorems", __name__, Theorem, sort=lambda theorem: (theorem.letter, theorem.words)
)


def theorems() -> tuple[Theorem, ...]:
    """All of them, by letter."""
    return tuple(THEOREMS.values())


def exact(noise: Noise, norm: Norm, dim: int) -> Theorem | None:
    """The theorem that gives the true radius here; None where there are only bounds."""
    found = [one for one in theorems() if one.tight(noise, norm, dim)]
    return min(found, key=lambda one: one.engine != "closed form", default=None)


def worst(noise: Noise, norm: Norm, dim: int) -> tuple[Spectrum, ...] | None:
    """The worst directions (the two signs of one, at most), where a theorem names them."""
    known = exact(noise, norm, dim)
    return None if known is None else known.directions(noise, norm, dim)


def prove(noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> Proof:
    """The largest radius that a theorem gives; the true one where it is exact."""
    known = exact(noise, norm, dim)
    asked = theorems() if known is None else (known,)
    found = [
        one.proof(noise, norm, dim, p_a, p_b) for one in asked if one.applies(noise, norm, dim)
    ]
    best = max(found, key=lambda proof: proof.radius, default=NOTHING)
    if isinstance(noise, IID) and best.radius > 0:
        return Proof(best.radius, best.theorem + trust(noise), best.engine)
    return best
