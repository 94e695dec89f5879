"""Spherical noise ∝ exp(−‖z/s‖^k): Gaussian at k = 2.

Heavier than Gaussian noise for k < 2, towards the uniform ball for large k.
"""

from __future__ import annotations

from unicr.noise._family import RadialFamily
from unicr.noise.families._balls import L2
from unicr.noise.families._powers import Powers, make_k

spherical_exp = RadialFamily(
    "spherical_exp",
    Powers,
    L2,
    formula="exp(-|z/s|^k)",
    example="spherical_exp(k=1, sigma=1, dim=784)",
    parameters=(make_k(1.0),),
)
