"""What a radius is here: a bracket with its proof status, not one number."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from unicr.errors import RadiusError
from unicr.norms import Norm
from unicr.radius._grade import Grade
from unicr.radius._question import SecondLaw
from unicr.radius._spectrum import Spectrum
from unicr.tables import to_html
from unicr.text import round_down
from unicr.values import Array

Guarantee = Literal["exact", "approximate", "abstain"]
EXACT_WITHIN = 2e-3  # of the searched radius: what counts as exact, and is told to users so
MONTE_CARLO = ("radius_with_confidence", "confidence", "converged", "samples", "seed", "vector")


@dataclass(frozen=True, repr=False)
class Radius:
    """A certified radius: proved ≤ true radius ≤ searched (up to the accuracy of the search).

    `radius` is `proved`, or `searched` if you asked for it. `guarantee` is "exact" if the two
    differ by at most 0.2 %, "abstain" if p_A ≤ p_B, and "approximate" otherwise. `theorem` names
    the proof and `grade` says how it was computed (None if nothing is proved).

    `complete` is False if a time limit ended the computation. `proved` is then valid, but another
    theorem might give more, and nothing was searched.

    Monte Carlo only: `radius_with_confidence` holds along `vector` (the direction found, ‖δ‖_p = 1)
    with probability `confidence`; `converged` says whether the swarm had settled.

    See docs/theory.md#certifies.
    """

    radius: float
    proved: float
    searched: float
    guarantee: Guarantee
    theorem: str
    grade: Grade | None
    engine: str
    direction: Spectrum | None
    noise: str
    norm: Norm
    dim: int
    p_a: float
    p_b: float
    second: SecondLaw | None = None
    complete: bool = True
    radius_with_confidence: float | None = None
    confidence: float | None = None
    converged: bool | None = None
    samples: int | None = None
    seed: int | None = None
    vector: Array | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        bracket = f"proved {round_down(self.proved)}, searched {round_down(self.searched)}"
        about = f"{self.noise}, {self.norm}, dimension {self.dim}, p_A {self.p_a:g}"
        proof = f", {self.grade}" if self.grade else ""
        return f"Radius({round_down(self.radius)}: {self.guarantee}, {bracket}{proof}; {about})"

    def _repr_html_(self) -> str:
        names = (
            "radius",
            "proved",
            "searched",
            "guarantee",
            "theorem",
            "grade",
            "noise",
            "norm",
            "dim",
        )
        return to_html([{name: getattr(self, name) for name in (*names, "p_a", "p_b")}])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite radius is the text "inf".

        Monte Carlo entries are present only if that engine ran, and `complete` only if it is False.
        """
        values = asdict(self)
        if self.samples is None:
            for key in MONTE_CARLO:
                del values[key]
        elif self.vector is not None:
            values["vector"] = self.vector.tolist()
        if self.complete:
            del values["complete"]
        if self.second is None:
            del values["second"]
        else:
            values["second"] = self.second._asdict()
        values["norm"] = self.norm.text
        values["direction"] = None
        if self.direction is not None:
            levels = [[size, count] for size, count in self.direction.levels]
            values["direction"] = {"text": self.direction.text, "levels": levels}
        for key in ("radius", "proved", "searched"):
            if math.isinf(values[key]):
                values[key] = "inf"
        return values


def name_guarantee(proved: float, searched: float) -> Guarantee:
    """Call it exact where theorem and search meet within 0.2 %, else approximate."""
    if proved == searched or proved >= (1 - EXACT_WITHIN) * searched:
        return "exact"
    return "approximate"


def reconcile(proved: float, theorem: str, searched: float, engine: str, tolerance: float) -> float:
    """The searched radius, raised to a proved one that it misses by rounding.

    A proof above what was found on the boundary means that one of the two is wrong: an error.
    """
    if proved > searched * (1 + tolerance):
        raise RadiusError(
            f"theorem {theorem} gives the radius {proved!r}, but {engine} finds only {searched!r}: "
            "one of the two is wrong, so neither is returned; please report this noise"
        )
    return max(searched, proved)
