"""Votes under two laws, noise φ(‖z‖) and the same within a ball (DSRS): more than p_A alone gives.

In ℓ2 for spherical noise, in ℓ1 for noise of the ℓ1 length, Laplace noise among it, and carried to
other norms. Tables for a noise and a ball are made once and kept on disk; a pair (p_A, q_A) is then
read in a millisecond.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unicr.errors import RadiusError
from unicr.noise import Noise, RadialNoise
from unicr.norms import Norm
from unicr.radius._cache import load_or_make
from unicr.radius._grade import Grade, grade_proof
from unicr.radius._question import Evidence, Question
from unicr.radius.theorems._base import Bound, Theorem, factor_of_inclusion
from unicr.tradeoff.internal import (
    TwoParts,
    bound_two_parts,
    falls,
    make_two_levels,
    total_variation,
)
from unicr.values import Array

# Lengths of δ at which the dual is tabulated, in units of σ or of the scale, and how far beyond one
# total variation is: each is proved by itself, so that more of them only lose less between them. In
# ℓ1 the way between two lengths costs more.
LENGTHS_OF_ORDER = {2.0: np.geomspace(0.06, 6.0, 48), 1.0: np.geomspace(0.06, 6.0, 120)}
STEPS = np.geomspace(1e-5, 0.2, 200)  # beyond a length, as shares of it


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoLawsBound(Bound):
    """R(p_A, q_A), binary case: duality at each length, and total variation beyond it.

    q_A is a lower bound of the top class's probability under the noise conditioned on ‖ε‖ ≤ T,
    which holds `share` of it. What is certified at one length is at every shorter one, and
    beyond a length no test gains more than the total variation of the rest of the way
    (docs/theory.md#theorem-o). `factor` leads from the density's norm to the one asked for.
    Without a second law, or where it gives nothing, the radius is 0: others know more then.
    """

    noise: RadialNoise
    factor: float

    def radius(self, evidence: Evidence) -> float:
        if evidence.second is None:
            return 0.0
        q_a, share = evidence.second
        tables, lengths = load_tables(self.noise, share), LENGTHS_OF_ORDER[self.noise.order]
        for i in range(len(lengths) - 1, -1, -1):
            parts = TwoParts(*(tables[key][i] for key in ("t", "inside", "outside")))
            least = parts.least(evidence.p_a, q_a, share, 0)
            if least >= 0.5:
                free = np.searchsorted(tables["variation"][i], least - 0.5, side="right") - 1
                more = STEPS[free] if free >= 0 else 0.0
                return float(lengths[i] * (1.0 + more)) * _measure_unit(self.noise) * self.factor
        return 0.0


def _measure_unit(unit: RadialNoise) -> float:
    return unit.sigma if math.isfinite(unit.sigma) else 1.0


@lru_cache(maxsize=16)
def load_tables(unit: RadialNoise, share: float) -> dict[str, Array]:
    """Both parts of the dual at every length, and the total variation of steps beyond it."""

    def make() -> dict[str, Array]:
        lengths, shares = LENGTHS_OF_ORDER[unit.order], np.array([share])
        levels = make_two_levels(unit)
        parts = [bound_two_parts(levels, unit, x * _measure_unit(unit), shares) for x in lengths]
        return {
            "t": np.stack([part.t for part in parts]),
            "inside": np.stack([part.inside for part in parts]),
            "outside": np.stack([part.outside for part in parts]),
            "variation": total_variation(unit, np.outer(lengths, STEPS) * _measure_unit(unit)),
        }

    return load_or_make("two-laws", f"{unit.cache_key}|{(share,)}", make)


def match(question: Question) -> TwoLawsBound | None:
    """A density that falls with the ℓ2 or ℓ1 length, not conditioned already."""
    noise = question.noise.radial
    if (
        noise is None
        or noise.conditioned
        or noise.order not in LENGTHS_OF_ORDER
        or not falls(noise)
    ):
        return None
    factor = factor_of_inclusion(question.norm, Norm(noise.order), question.dim)
    return TwoLawsBound(
        theorem=THEOREM.name
        if question.norm.p == noise.order
        else f"{THEOREM.name} + (h) inclusion",
        grade=grade_proof(Grade.FLOATING_POINT, noise),
        engine="quadrature",
        noise=noise,
        factor=factor,
    )


def check_two_laws(noise: Noise) -> None:
    """Raise RadiusError where votes within a ball say nothing about this noise."""
    if match(Question(noise.unit, 2.0, noise.dim or 1)) is None:
        raise RadiusError(
            f"{noise.text} cannot be paired with itself in a ball: two laws need spherical "
            "noise or l1_exp that falls with the length, for example spherical_gg (Gaussian "
            "noise is spherical_exp(k=2, ...), Laplace noise is l1_exp(k=1, j=0, ...))"
        )


THEOREM = Theorem(
    "o",
    "votes under two laws",
    "votes under noise φ(‖z‖_2) or φ(‖z‖_1) and under the same within a ball; φ falls",
    match,
    laws=2,
    computed_in=(
        "unicr.tradeoff._two",
        "unicr.tradeoff._falling",
    ),
)
