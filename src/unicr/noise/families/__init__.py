"""One file for each family of noises; being here is all that a family needs to be known.

A family of another distribution is known by its entry point in the group `unicr.families`.

The text form, `unicr noise list`, the explorer, I-OPT, C-OPT and the optimality gallery read
`FAMILIES`, and each family tells its own numbers, ranges, example, equal laws and axes.
"""

from __future__ import annotations

from unicr.errors import NoiseError
from unicr.noise._family import Named
from unicr.registry import Catalogue


def _order(family: type[Named]) -> tuple[bool, int, str]:
    """Fewest numbers first, joint laws last."""
    return family.joint, len(family.parameters), family.name


def _check(family: type[Named]) -> None:
    """A family must tell what lists and pages print of it."""
    for word in (family.name, family.formula, family.example):
        if not isinstance(word, str):
            raise NoiseError(f"{word!r} is not a text")


FAMILIES: Catalogue[type[Named]] = Catalogue(
    "unicr.families", __name__, Named, classes=True, sort=_order, check=_check
)
"""Every family by its name."""
