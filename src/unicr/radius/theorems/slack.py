"""(e3) ℓ2, symmetric unimodal noise: comparison with Gaussians up to a slack that is paid for."""

from __future__ import annotations

from unicr.noise import IID, Noise
from unicr.norms import Norm
from unicr.radius._gaussian_bound import proved_l2
from unicr.radius.theorems._base import Theorem


class Slack(Theorem):
    """The largest coordinate exact, the others by Gaussians plus a uniform slack."""

    letter, words = "e3", "Gaussian comparison with slack"
    needs = "ℓ2; as (e)"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        unimodal = isinstance(noise, IID) and noise.facts.symmetric and noise.facts.unimodal
        return unimodal and norm.p == 2

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        assert isinstance(noise, IID)
        return proved_l2(noise, p_a, p_b)


THEOREM = Slack()
