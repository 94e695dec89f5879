"""One file for each family of noises; being here is all that a family needs to be known.

The text form, `unicr noise list`, the explorer, I-OPT, C-OPT and the optimality gallery read
`FAMILIES`, and each family tells its own numbers, ranges, example, equal laws and axes.
"""

from __future__ import annotations

from unicr.extras import classes_of
from unicr.noise._base import Noise
from unicr.noise._family import Named


def _found() -> dict[str, type[Named]]:
    """Every family of this folder by its name: fewest numbers first, spherical ones last."""

    def order(kind: type[Named]) -> tuple[bool, int, str]:
        return "dim=" in kind.example, len(kind.parameters), kind.name

    return {kind.name: kind for kind in sorted(classes_of(__name__, Named), key=order)}


FAMILIES = _found()


def plainest(noise: Noise) -> Noise:
    """The same law under its plainest name: General Normal 2 is Gaussian, as the family says."""
    name = noise.plain if isinstance(noise, Named) else None
    return noise if name is None else FAMILIES[name](sigma=noise.sigma)
