"""(b) ℓp with p ≤ 1, or one dimension, symmetric log-concave noise: one coordinate takes it all."""

from __future__ import annotations

from collections.abc import Callable

from unicr.noise import IID, Anisotropic, Noise
from unicr.norms import Norm
from unicr.radius._spectrum import Spectrum, equal
from unicr.radius.theorems._base import Theorem, base_of, half_gap, symmetric_log_concave
from unicr.values import Array


class OneHot(Theorem):
    """R = (F⁻¹(p_A) − F⁻¹(p_B))/2, times the smallest scale where coordinates have their own.

    Walk from 0 to δ one coordinate at a time: T_δ ≥ T_u, u = Σ|δ_i|/s_i ≤ ‖δ‖_1/min s, with
    equality for one-hot δ.
    """

    letter, words = "b", "one-hot, log-concave"
    needs = "ℓp, p ≤ 1, or one dimension; symmetric log-concave coordinates"
    engine = "closed form"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return symmetric_log_concave(noise) and (norm.p <= 1 or dim == 1)

    def tight(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return self.applies(noise, norm, dim)

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        base, least = _parts(noise)
        return least * half_gap(lambda u: float(base.ppf(u)), p_a, p_b)

    def closed(self, noise: Noise, norm: Norm, dim: int) -> Callable[[Array], Array]:
        base, least = _parts(noise)
        return lambda alpha: least * base.isf(alpha)

    def directions(self, noise: Noise, norm: Norm, dim: int) -> tuple[Spectrum, ...]:
        return (equal(1),)


def _parts(noise: Noise) -> tuple[IID, float]:
    base = base_of(noise)
    assert isinstance(base, IID)
    return base, float(noise.scales.min()) if isinstance(noise, Anisotropic) else 1.0


THEOREM = OneHot()
