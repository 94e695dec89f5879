"""ℓ∞-symmetric noise ∝ ‖z‖_∞^(−j)·exp(−‖z/s‖_∞^k), j < d: Yang et al. 2020."""

from __future__ import annotations

from unicr.noise._family import Parameter, family_of
from unicr.noise._spherical import CubeNoise, Powered


class LinfExp(Powered, CubeNoise):
    """A uniform cube of random size: (‖z‖_∞/s)^k follows a Gamma law."""

    name = "linf_exp"
    formula = "|z|_inf^(-j) exp(-|z/s|_inf^k)"
    example = "linf_exp(k=1, j=0, sigma=1, dim=784)"
    parameters = (
        Parameter("k", low=0.1, high=100.0, slider=(0.2, 8.0, 1.0)),
        Parameter("j", low=0.0, high=1e7, slider=(0.0, 700.0, 0.0)),
    )


linf_exp = family_of(LinfExp)
