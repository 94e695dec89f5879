"""Tightness validation: published radii held against the bracket. Tight, loose or wrong?

Each entry of `FORMULAS` restates one result of the literature for one or two pairs of noise and
norm: those of the files in `formulas/`, and of entry points of other distributions.
"""

from __future__ import annotations

from unicr.errors import RadiusError, did_you_mean
from unicr.registry import Catalogue
from unicr.tightness._formula import Formula, load_own
from unicr.tightness._validate import Judgement, judge, validate

__all__ = ["FORMULAS", "Formula", "Judgement", "formula", "judge", "load_formula", "validate"]

FORMULAS: Catalogue[Formula] = Catalogue("unicr.formulas", f"{__name__}.formulas", Formula)


def formula(name: str) -> Formula:
    """The built-in formula of that name."""
    if name in FORMULAS:
        return FORMULAS[name]
    raise RadiusError(
        f"there is no formula {name!r}: {did_you_mean(name, FORMULAS, 3)}Built in: "
        f"{', '.join(FORMULAS)}; or give your own as path/to/file.py:func"
    )


def load_formula(ref: str) -> Formula:
    """A built-in name, or `path/to/file.py:func`. Runs that file: only load what you trust.

    `func` takes (p_a), (p_a, p_b) or (noise, norm, dim, p_a, p_b), counted without the parameters
    that have defaults, and returns the radius.
    """
    return load_own(ref) if ":" in ref else formula(ref)
