"""(g) ℓ1, any i.i.d. noise of bounded variation: how fast a probability can change."""

from __future__ import annotations

from unicr.noise import IID, Noise
from unicr.norms import Norm
from unicr.radius._differential import differential_l1
from unicr.radius.theorems._base import Theorem


class Differential(Theorem):
    """Yang et al. 2020's differential method."""

    letter, words = "g", "differential method"
    needs = "ℓ1; i.i.d. noise of bounded variation that (b) does not cover"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        if not isinstance(noise, IID) or norm.p != 1:
            return False
        return not (noise.facts.symmetric and noise.facts.log_concave)

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        assert isinstance(noise, IID)
        return differential_l1(noise, p_a, p_b)


THEOREM = Differential()
