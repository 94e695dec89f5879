"""Tightness validation: published radii held against the bracket. Tight, loose or wrong?

Each entry of `FORMULAS` restates one result of the literature for one or two pairs of noise and
norm; a file of `formulas/` is found by being there.
"""

from __future__ import annotations

from unicr.errors import RadiusError, did_you_mean
from unicr.extras import modules_of
from unicr.tightness._formula import Formula, own
from unicr.tightness._validate import Judgement, judge, validate

__all__ = ["FORMULAS", "Formula", "Judgement", "formula", "judge", "load_formula", "validate"]

FORMULAS: dict[str, Formula] = {
    one.name: one for module in modules_of(f"{__name__}.formulas") for one in module.FORMULAS
}


def formula(name: str) -> Formula:
    """The built-in formula of that name."""
    if name in FORMULAS:
        return FORMULAS[name]
    raise RadiusError(
        f"no formula {name!r}: {did_you_mean(name, FORMULAS, 3)}Built in: {', '.join(FORMULAS)}; "
        "or give your own as path/to/file.py:func"
    )


def load_formula(ref: str) -> Formula:
    """A built-in name, or `path/to/file.py:func`. Runs that file: only load what you trust.

    `func` takes (p_a), (p_a, p_b) or (noise, norm, dim, p_a, p_b), counted without the parameters
    that have defaults, and returns the radius.
    """
    return own(ref) if ":" in ref else formula(ref)
