"""(h) for a scale per coordinate: ‖δ/s‖_p ≤ ‖δ‖_p/min s, so R_p ≥ min s·R_p of the base noise."""

from __future__ import annotations

from unicr.noise import Anisotropic, Noise
from unicr.norms import Norm
from unicr.radius.theorems._base import Proof, Theorem


class SmallestScale(Theorem):
    """What is proved for the i.i.d. base, times the smallest scale."""

    letter, words = "h", "smallest scale"
    needs = "a scale per coordinate, and a theorem for the base noise"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return isinstance(noise, Anisotropic)

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        return self.proof(noise, norm, dim, p_a, p_b).radius

    def proof(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> Proof:
        from unicr.radius.theorems import prove

        assert isinstance(noise, Anisotropic)
        base = prove(noise.base, norm, dim, p_a, p_b)
        radius = float(noise.scales.min()) * base.radius
        return Proof(radius, f"{base.theorem}, smallest scale", base.engine)


THEOREM = SmallestScale()
