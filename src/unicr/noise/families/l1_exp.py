"""ℓ1-symmetric noise ∝ ‖z‖₁^(−j)·exp(−‖z/s‖₁^k), j < d: Laplace noise at k = 1, j = 0."""

from __future__ import annotations

from unicr.noise._family import Parameter, family_of
from unicr.noise._spherical import CrossNoise, Powered


class L1Exp(Powered, CrossNoise):
    """A uniform cross-polytope of random size: (‖z‖₁/s)^k follows a Gamma law."""

    name = "l1_exp"
    formula = "|z|_1^(-j) exp(-|z/s|_1^k)"
    example = "l1_exp(k=2, j=0, sigma=1, dim=784)"
    parameters = (
        Parameter("k", low=0.1, high=100.0, slider=(0.2, 8.0, 2.0)),
        Parameter("j", low=0.0, high=1e7, slider=(0.0, 700.0, 0.0)),
    )

    @property
    def plain(self) -> str | None:
        return "laplace" if (self.k, self.j) == (1, 0) else None


l1_exp = family_of(L1Exp)
