"""(f) ℓ∞, unimodal noise that is not symmetric: both signs of every coordinate at once."""

from __future__ import annotations

import math
from functools import partial

from unicr.noise import IID, Noise
from unicr.norms import Norm
from unicr.radius._boundary import certified
from unicr.radius.theorems._base import Theorem
from unicr.tradeoff import TradeOff, compose, ratio_law
from unicr.tradeoff.internal import envelope, start_guess


class Envelope(Theorem):
    """T_u falls with u on either side of zero, so the larger of the two hockey-stick divergences
    at every γ bounds each |v| ≤ u; that envelope is convex, hence a trade-off function to compose.
    """

    letter, words = "f", "envelope"
    needs = "ℓ∞; unimodal coordinates without symmetry"
    engine = "composition"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        if not isinstance(noise, IID) or not math.isinf(norm.p):
            return False
        return noise.facts.unimodal and not noise.facts.symmetric

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        assert isinstance(noise, IID)
        guess = noise.scale * start_guess(p_a, p_b) / math.sqrt(dim)
        return certified(partial(self.tradeoff, noise, norm, dim), p_a, p_b, guess)

    def tradeoff(self, noise: Noise, norm: Norm, dim: int, r: float) -> TradeOff:
        assert isinstance(noise, IID)
        laws = [ratio_law(noise.unit, sign * r / noise.scale) for sign in (1.0, -1.0)]
        return compose([(envelope(laws), dim)])


THEOREM = Envelope()
