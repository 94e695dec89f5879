"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.tradeoff._envelope import envelope as envelope
from unicr.tradeoff._falling import ball_steps as ball_steps
from unicr.tradeoff._falling import ball_tradeoff as ball_tradeoff
from unicr.tradeoff._falling import cross_tradeoff as cross_tradeoff
from unicr.tradeoff._falling import cube_levels_tradeoff as cube_levels_tradeoff
from unicr.tradeoff._falling import cube_tradeoff as cube_tradeoff
from unicr.tradeoff._falling import falls as falls
from unicr.tradeoff._falling import rounds_outward as rounds_outward
from unicr.tradeoff._margin import highest as highest
from unicr.tradeoff._margin import margin as margin
from unicr.tradeoff._margin import start_guess as start_guess
from unicr.tradeoff._margin import start_margin as start_margin
from unicr.tradeoff._ratio import RatioCells as RatioCells
from unicr.tradeoff._ratio import ratio_cells as ratio_cells
from unicr.tradeoff._two import TwoParts as TwoParts
from unicr.tradeoff._two import levels_for_two as levels_for_two
from unicr.tradeoff._two import total_variation as total_variation
from unicr.tradeoff._two import two_parts as two_parts
