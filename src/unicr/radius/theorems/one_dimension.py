"""(a) One dimension, unimodal noise that need not be symmetric: the worse of the two signs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unicr.noise import IID, Noise
from unicr.norms import Norm
from unicr.radius._boundary import certified
from unicr.radius._spectrum import Spectrum, equal
from unicr.radius.theorems._base import Theorem
from unicr.tradeoff import TradeOff, shifted
from unicr.tradeoff.internal import start_guess
from unicr.values import Array


class OneDimension(Theorem):
    """T_u falls with |u| on either side of zero ((c)'s argument needs one mode, not symmetry).

    Where p_A = 1 one sign may never fail (a half-line moved inwards), which is then its truth.
    """

    letter, words = "a", "one dimension, both signs"
    needs = "one dimension; unimodal"
    engine = "composition"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return dim == 1 and isinstance(noise, IID) and noise.facts.unimodal

    def tight(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return self.applies(noise, norm, dim) and not noise.facts.symmetric

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        assert isinstance(noise, IID)
        law, guess = noise, noise.scale * start_guess(p_a, p_b)

        def root(sign: float) -> float:
            along = lambda r: shifted(law, [(sign * r, 1)])  # noqa: E731
            return certified(along, p_a, p_b, guess, endless=p_a == 1.0)

        return min(root(1.0), root(-1.0))

    def tradeoff(self, noise: Noise, norm: Norm, dim: int, r: float) -> TradeOff:
        assert isinstance(noise, IID)
        return _Lower(shifted(noise, [(r, 1)]), shifted(noise, [(-r, 1)]))

    def directions(self, noise: Noise, norm: Norm, dim: int) -> tuple[Spectrum, ...]:
        return (equal(1), equal(1, -1.0))


class _Lower(TradeOff):
    """The lower of two, at every point."""

    bound = "lower"

    def __init__(self, one: TradeOff, other: TradeOff) -> None:
        self._both = (one, other)

    def beta(self, alpha: ArrayLike) -> Array:
        return np.minimum(*(one.beta(alpha) for one in self._both))

    def alpha(self, beta: ArrayLike) -> Array:
        return np.minimum(*(one.alpha(beta) for one in self._both))


THEOREM = OneDimension()
