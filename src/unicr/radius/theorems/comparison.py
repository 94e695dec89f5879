"""(e) Any ℓp, symmetric unimodal noise: a Gaussian shift that is at least as visible."""

from __future__ import annotations

from unicr.noise import IID, Noise
from unicr.norms import Norm
from unicr.radius._gaussian_bound import proved_lp
from unicr.radius.theorems._base import Theorem


class Comparison(Theorem):
    """T_δ ≥ G_M with M² = Σ m(|δ_i|)², bounded over the ℓp ball by a concave envelope."""

    letter, words = "e", "Gaussian comparison"
    needs = "every p > 0; symmetric unimodal i.i.d. noise of unbounded support"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return isinstance(noise, IID) and noise.facts.symmetric and noise.facts.unimodal

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        assert isinstance(noise, IID)
        return proved_lp(noise, norm.p, dim, p_a, p_b)


THEOREM = Comparison()
