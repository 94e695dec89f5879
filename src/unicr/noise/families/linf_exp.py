"""ℓ∞-symmetric noise ∝ ‖z‖_∞^(−j)·exp(−‖z/s‖_∞^k), j < d: Yang et al. 2020.

A uniform cube of random size: (‖z‖_∞/s)^k follows a Gamma law.
"""

from __future__ import annotations

from unicr.noise._family import RadialFamily
from unicr.noise.families._balls import LINF
from unicr.noise.families._powers import J, Powers, make_k

linf_exp = RadialFamily(
    "linf_exp",
    Powers,
    LINF,
    formula="|z|_inf^(-j) exp(-|z/s|_inf^k)",
    example="linf_exp(k=1, j=0, sigma=1, dim=784)",
    parameters=(make_k(1.0), J),
)
