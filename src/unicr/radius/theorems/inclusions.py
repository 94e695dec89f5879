"""(h) Inclusions between norms: what another theorem gives in ℓ1, ℓ2 or ℓ∞, carried over."""

from __future__ import annotations

import math

from unicr.noise import Noise
from unicr.norms import Norm
from unicr.radius.theorems._base import NOTHING, Proof, Theorem


class Inclusions(Theorem):
    """‖δ‖_q ≤ ‖δ‖_p for p ≤ q, so R_p ≥ R_q; and ‖δ‖_q ≤ d^(1/q − 1/p)·‖δ‖_p beyond."""

    letter, words = "h", "inclusion"
    needs = "any norm for which another theorem has a radius in ℓ1, ℓ2 or ℓ∞"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return bool(self._homes(noise, norm, dim))

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        return self.proof(noise, norm, dim, p_a, p_b).radius

    def proof(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> Proof:
        found = []
        for theorem, home in self._homes(noise, norm, dim):
            factor = 1.0 if norm.p <= home.p else float(dim) ** (1 / norm.p - 1 / home.p)
            radius = factor * theorem.radius(noise, home, dim, p_a, p_b)
            found.append(Proof(radius, f"{theorem.name} + (h) inclusion", theorem.engine))
        return max(found, key=lambda proof: proof.radius, default=NOTHING)

    def _homes(self, noise: Noise, norm: Norm, dim: int) -> list[tuple[Theorem, Norm]]:
        from unicr.radius.theorems import theorems

        homes = [Norm(q) for q in (1.0, 2.0, math.inf) if q != norm.p]
        return [
            (one, home)
            for one in theorems()
            for home in homes
            if one is not self
            and one.applies(noise, home, dim)
            and not one.applies(noise, norm, dim)
        ]


THEOREM = Inclusions()
