"""Which colour a noise has: the same in every picture and on the report's page.

The usual families have a colour of their own; any other noise takes the first one that is free.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from unicr.noise import FAMILIES

# The colours of page.js on a light page, in its order; the page has lighter ones for a dark one.
WORDS = re.compile(r"\b(\w+)\(")  # what may be the family of a noise
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#a6488a", "#8a6d00", "#3a3f44", "#2f8fd0")


def assign_colours(labels: Sequence[str]) -> list[int]:
    """A place in the palette for each line of a picture, by the noise that its label names."""
    places: list[int | None] = []
    colours = {name: family.colour for name, family in FAMILIES.items()}
    for label in labels:
        family = next(
            (word for word in WORDS.findall(label) if colours.get(word) is not None), None
        )
        colour = None if family is None else colours[family]
        places.append(None if colour in places else colour)
    free = [place for place in range(len(PALETTE)) if place not in places]
    count = 0
    for i, place in enumerate(places):
        if place is None:
            places[i] = free[count % len(free)] if free else i % len(PALETTE)
            count += 1
    return [place for place in places if place is not None]
