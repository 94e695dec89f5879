"""Lecuyer et al. 2019: differential privacy, Gaussian and Laplace noise."""

from __future__ import annotations

import math

from unicr.noise import Noise
from unicr.tightness._formula import list_published
from unicr.tightness._shared import log_ratio, maximise_on_grid


def _gaussian(noise: Noise, dim: int, p_a: float, p_b: float) -> float:
    """sup over ε ≤ 1 of σε/√(2 ln(1.25/δ)), δ the largest with p_A ≥ e^{2ε}p_B + (1 + e^ε)δ."""

    def radius(epsilon: float) -> float:
        delta = (p_a - math.exp(2 * epsilon) * p_b) / (1 + math.exp(epsilon))
        return epsilon / math.sqrt(2 * math.log(1.25 / delta)) if delta > 0 else 0.0

    return noise.sigma * maximise_on_grid(radius, 0.0, min(1.0, 0.5 * log_ratio(p_a, p_b)))


def _laplace(noise: Noise, dim: int, p_a: float, p_b: float) -> float:
    return noise.scale * 0.5 * log_ratio(p_a, p_b)


FORMULAS = list_published(
    "Lecuyer, Atlidakis, Geambasu, Hsu, Jana, "
    "Certified Robustness to Adversarial Examples with Differential Privacy, 2019",
    {
        "lecuyer": (
            "loose; Gaussian: optimised over ε ≤ 1 and δ with the classical Gaussian mechanism",
            {("gaussian", 2.0): _gaussian, ("laplace", 1.0): _laplace},
        )
    },
)
