"""ℓ1-symmetric noise ∝ ‖z‖₁^(−j)·exp(−‖z/s‖₁^k), j < d: Laplace noise at k = 1, j = 0.

A uniform cross-polytope of random size: (‖z‖₁/s)^k follows a Gamma law.
"""

from __future__ import annotations

from unicr.noise._family import RadialFamily
from unicr.noise.families._balls import L1
from unicr.noise.families._powers import J, Powers, make_k
from unicr.noise.families.laplace import laplace

l1_exp = RadialFamily(
    "l1_exp",
    Powers,
    L1,
    formula="|z|_1^(-j) exp(-|z/s|_1^k)",
    example="l1_exp(k=2, j=0, sigma=1, dim=784)",
    parameters=(make_k(2.0), J),
    equal=(({"k": 1.0, "j": 0.0}, laplace),),
)
