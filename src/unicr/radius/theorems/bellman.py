"""(j) Every finite p, any i.i.d. noise: a supersolution of the adversary's game, checked."""

from __future__ import annotations

import math

from unicr.noise import IID, Noise
from unicr.norms import Norm
from unicr.radius.bellman import bellman_curve, bellman_radius
from unicr.radius.theorems._base import Theorem
from unicr.radius.theorems.few import THEOREM as few
from unicr.values import Array


class Bellman(Theorem):
    """H_γ(T_δ) ≤ Φ for every δ, where Φ grows fast enough for any next coordinate."""

    letter, words = "j", "Bellman bound"
    needs = "finite p, dimension of at least 2; any i.i.d. noise"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return isinstance(noise, IID) and math.isfinite(norm.p) and dim >= 2

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        assert isinstance(noise, IID)
        if few.applies(noise, norm, dim):
            return 0.0  # it is closer, and ten times as fast
        return bellman_radius(noise.unit, norm, dim, p_a, p_b) * noise.scale

    def curve(self, unit: Noise, norm: Norm, dim: int) -> tuple[Array, Array]:
        assert isinstance(unit, IID)
        return bellman_curve(unit, norm, dim)


THEOREM = Bellman()
