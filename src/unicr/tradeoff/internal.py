"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.tradeoff._envelope import envelope
from unicr.tradeoff._falling import (
    ball_tradeoff,
    cross_tradeoff,
    cube_levels_tradeoff,
    cube_tradeoff,
    falls,
)
from unicr.tradeoff._margin import highest, margin, start_guess, start_margin
from unicr.tradeoff._ratio import RatioCells, interval_mass, ratio_cells
from unicr.tradeoff._spherical import spherical_tradeoff
from unicr.tradeoff._two import TwoParts, levels_for_two, total_variation, two_parts

__all__ = [
    "RatioCells",
    "TwoParts",
    "ball_tradeoff",
    "cross_tradeoff",
    "cube_levels_tradeoff",
    "cube_tradeoff",
    "envelope",
    "falls",
    "highest",
    "interval_mass",
    "levels_for_two",
    "margin",
    "ratio_cells",
    "spherical_tradeoff",
    "start_guess",
    "start_margin",
    "total_variation",
    "two_parts",
]
