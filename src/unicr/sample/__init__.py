"""One sampler: integers of the exact discretised law, drawn from a keyed stream.

A one-dimensional law and a step h give an `IntegerLaw`, P(e = j) = F((j + ½)h) − F((j − ½)h), with
a computed bound of its error. A key and a position give random words that are always the same,
whatever is drawn before, beside or after it. Nothing here knows what a noise is.
"""

from unicr.sample._fill import NO_DOUBLES, Fill, draw_integers
from unicr.sample._law import Distribution, IntegerLaw, choose_step, integer_law
from unicr.sample._stream import blocks, derive, words_at
from unicr.sample._torch import host_share

__all__ = [
    "NO_DOUBLES",
    "Distribution",
    "Fill",
    "IntegerLaw",
    "blocks",
    "choose_step",
    "derive",
    "draw_integers",
    "host_share",
    "integer_law",
    "words_at",
]
