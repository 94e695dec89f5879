"""Theorem (j), the Bellman bound: proved radii for every ℓp by a supersolution that is checked.

`_construct` finds a Φ, `_verify` proves it (the only part that a radius rests on, with `_kernel`,
`_chord` and `_mesh`), `_sheet` reads it, `_radius` makes radii and curves of it.
"""

from unicr.radius.bellman._chord import bound_excess, bound_gaps, knows_bends, list_kinks
from unicr.radius.bellman._radius import bellman_curve, bellman_radius

__all__ = [
    "bellman_curve",
    "bellman_radius",
    "bound_excess",
    "bound_gaps",
    "knows_bends",
    "list_kinks",
]
