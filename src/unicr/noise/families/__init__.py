"""One file for each family of noises; being here is all that a family needs to be known.

A family of another distribution is known by its entry point in the group `unicr.families`.

The text form, `unicr noise list`, the explorer, I-OPT, C-OPT and the optimality gallery read
`FAMILIES`, and each family tells its own numbers, ranges, example, equal laws and axes.
"""

from __future__ import annotations

from typing import Any

from unicr.errors import NoiseError
from unicr.noise._base import Noise
from unicr.noise._family import Family
from unicr.registry import Catalogue


def _sort(family: Family[Any]) -> tuple[bool, int, str]:
    """Fewest numbers first, joint laws last."""
    return family.joint, len(family.parameters), family.name


def _check(family: Family[Any]) -> None:
    """A family must tell what lists and pages print of it."""
    for word in (family.name, family.formula, family.example):
        if not isinstance(word, str):
            raise NoiseError(f"{word!r} must be a text")


FAMILIES: Catalogue[Family[Noise]] = Catalogue(
    "unicr.families", __name__, Family, sort=_sort, check=_check
)
"""Every family by its name."""


def usual_family() -> Family[Noise]:
    """The family that searches and the explorer begin with where none is named."""
    return next(family for family in FAMILIES.values() if family.usual)
