"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.tradeoff._envelope import make_envelope as make_envelope
from unicr.tradeoff._falling import ball_steps as ball_steps
from unicr.tradeoff._falling import ball_tradeoff as ball_tradeoff
from unicr.tradeoff._falling import cross_tradeoff as cross_tradeoff
from unicr.tradeoff._falling import cube_levels_tradeoff as cube_levels_tradeoff
from unicr.tradeoff._falling import cube_tradeoff as cube_tradeoff
from unicr.tradeoff._falling import falls as falls
from unicr.tradeoff._falling import rounds_outward as rounds_outward
from unicr.tradeoff._margin import compute_margin as compute_margin
from unicr.tradeoff._margin import compute_start_margin as compute_start_margin
from unicr.tradeoff._margin import guess_radius as guess_radius
from unicr.tradeoff._margin import maximise as maximise
from unicr.tradeoff._ratio import knows_ranges as knows_ranges
from unicr.tradeoff._ratio import make_ratio_cells as make_ratio_cells
from unicr.tradeoff._two import TwoParts as TwoParts
from unicr.tradeoff._two import bound_two_parts as bound_two_parts
from unicr.tradeoff._two import make_two_levels as make_two_levels
from unicr.tradeoff._two import total_variation as total_variation
