"""How well x + ε and x + δ + ε can be told apart: the trade-off function T_δ, with engines.

>>> from unicr import noise, tradeoff
>>> t = tradeoff.compute_tradeoff(noise.laplace(sigma=1), [(0.5, 4)])  # four move by 0.5
>>> t.bound
'lower'
"""

from unicr.tradeoff._base import Bound, LeastTradeOff, Lines, TradeOff
from unicr.tradeoff._compose import compose
from unicr.tradeoff._ratio import RatioLaw, make_ratio_law
from unicr.tradeoff._shifted import ClosedForm, compute_tradeoff

__all__ = [
    "Bound",
    "ClosedForm",
    "LeastTradeOff",
    "Lines",
    "RatioLaw",
    "TradeOff",
    "compose",
    "compute_tradeoff",
    "make_ratio_law",
]
