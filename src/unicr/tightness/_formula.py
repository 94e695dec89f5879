"""What a published radius is, how one is declared, and a user's own.

With the paper's "tightness validation" in mind nothing here calls the engines of this package: a
formula below `proved` is loose, one above `searched` is wrong.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from unicr.errors import RadiusError, foreign
from unicr.files import load_object
from unicr.noise import Noise
from unicr.noise.internal import plainest
from unicr.norms import Norm
from unicr.tightness._shared import Case


@dataclass(frozen=True)
class Formula:
    """A published radius. `radius(noise, norm, dim, p_a, p_b)` certifies every ‖δ‖ below it.

    p_a bounds the top class's probability from below, p_b every other's from above; p_b counts as
    min(p_b, 1 − p_a), and the radius is 0 where p_a does not exceed that. `pairs` are the families
    and the p it is for; a user's own formula has none and is asked about everything.
    """

    name: str
    source: str
    pairs: tuple[tuple[str, float], ...]
    radius: Callable[[Noise, Norm, int, float, float], float]
    note: str


def _check_probabilities(p_a: float, p_b: float) -> tuple[float, float]:
    for name, p in (("p_a", p_a), ("p_b", p_b)):
        if not 0 <= p <= 1:
            raise RadiusError(f"{name}={p!r} must be a number from 0 to 1")
    return float(p_a), min(float(p_b), 1.0 - float(p_a))


def list_families(noise: Noise) -> list[str]:
    """The families this noise belongs to: gennorm(beta=2) is also gaussian."""
    plain = plainest(noise)
    return [law.family for law in (noise, plain) if law.family is not None]


Cases = Mapping[tuple[str, float], Case]


def list_published(source: str, published: Mapping[str, tuple[str, Cases]]) -> tuple[Formula, ...]:
    """Formulas of one source by name, each with a note and its radii by family and p."""
    return tuple(_publish(name, source, *entry) for name, entry in published.items())


def _publish(name: str, source: str, note: str, cases: Cases) -> Formula:

    def radius(noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        p_a, p_b = _check_probabilities(p_a, p_b)
        if dim < 1 or dim != int(dim):
            raise RadiusError(f"dim={dim!r} must be a whole number of at least 1")
        laws = list_families(noise)
        case = next((cases[law, norm.p] for law in laws if (law, norm.p) in cases), None)
        if case is None:
            from unicr.tightness import FORMULAS

            pairs = " or ".join(f"{law} noise against {Norm(p)}" for law, p in cases)
            asked = {(law, norm.p) for law in laws}
            fits = [formula.name for formula in FORMULAS.values() if asked & set(formula.pairs)]
            advice = f"try {', '.join(fits)}" if fits else "no built-in formula covers that"
            raise RadiusError(f"{name} works for {pairs}, not for {noise.text} in {norm}: {advice}")
        return max(0.0, case(noise, dim, p_a, p_b)) if p_a > p_b else 0.0

    return Formula(name, source, tuple(cases), radius, note)


def load_own(ref: str) -> Formula:
    """The formula `path/to/file.py:func`, as `load_formula` says."""
    function = load_object(ref)
    needed = _count_parameters(ref, function)

    def radius(noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        p_a, p_b = _check_probabilities(p_a, p_b)
        if p_a <= p_b:
            return 0.0
        everything = (noise, norm, dim, p_a, p_b)
        chosen = {1: (p_a,), 2: (p_a, p_b), 5: everything}[needed]
        with foreign(RadiusError, f"{ref} failed at p_a={p_a!r}, p_b={p_b!r}"):
            value = float(function(*chosen))
        if not value >= 0:
            raise RadiusError(
                f"{ref} returned {value!r} at p_a={p_a!r}, p_b={p_b!r}, which is not a radius"
            )
        return value

    return Formula(ref, f"user formula {ref}", (), radius, "taken as given")


def _count_parameters(ref: str, function: Any) -> int:
    accepted = "it must take (p_a), (p_a, p_b) or (noise, norm, dim, p_a, p_b)"
    if not callable(function):
        raise RadiusError(f"{ref} is a {type(function).__name__}, not a function: {accepted}")
    try:
        signature = inspect.signature(function)
    except ValueError:
        raise RadiusError(f"{ref} has no readable signature: {accepted}") from None
    needed = [p for p in signature.parameters.values() if p.default is p.empty]
    plain = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in needed)
    if not plain or len(needed) not in (1, 2, 5):
        raise RadiusError(f"{ref} takes {signature}: {accepted}")
    return len(needed)
