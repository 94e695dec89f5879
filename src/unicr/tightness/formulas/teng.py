"""Teng, Lee, Yuan 2020: Laplace noise in ℓ1."""

from __future__ import annotations

from unicr.noise import Noise
from unicr.tightness._formula import list_published
from unicr.tightness._shared import log_of_rest, log_ratio


def _teng(noise: Noise, dim: int, p_a: float, p_b: float) -> float:
    return noise.scale * max(0.5 * log_ratio(p_a, p_b), log_of_rest(p_a, p_b))


FORMULAS = list_published(
    "Teng, Lee, Yuan, "
    "ℓ1 Adversarial Robustness Certificates: a Randomized Smoothing Approach, 2020",
    {
        "teng": (
            "exact for two classes and for p_a ≤ 1/2, a lower bound otherwise",
            {("laplace", 1.0): _teng},
        )
    },
)
