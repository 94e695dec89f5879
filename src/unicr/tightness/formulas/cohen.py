"""Cohen, Rosenfeld, Kolter 2019: Gaussian noise in ℓ2."""

from __future__ import annotations

from scipy import special

from unicr.noise import Noise
from unicr.tightness._formula import list_published


def gaussian(noise: Noise, dim: int, p_a: float, p_b: float) -> float:
    upper = -special.ndtri(1.0 - p_a) if p_a > 0.5 else special.ndtri(p_a)
    return noise.sigma * 0.5 * float(upper - special.ndtri(p_b))


FORMULAS = list_published(
    "Cohen, Rosenfeld, Kolter, Certified Adversarial Robustness via Randomized Smoothing, 2019",
    {"cohen": ("exact", {("gaussian", 2.0): gaussian})},
)
