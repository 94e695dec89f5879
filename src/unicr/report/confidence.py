"""Confidence against the number of Monte Carlo samples: the paper's figure, and what it should be.

The paper multiplies Dvoretzky–Kiefer–Wolfowitz bounds at a width Δ that its radius never subtracts.
Beside it: the confidence with which a perturbation that clears its two tests by Δ is accepted, by
the same inequality and by the exact binomial (Clopper–Pearson) tests that are the default here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from unicr.errors import UnicrError
from unicr.report.plots import figure
from unicr.values import Array

DELTA = 0.1
ALPHA = 1e-3
ROUNDING = 1e-9


def paper_confidence(samples: ArrayLike, *, delta: float = DELTA, alpha: float = ALPHA) -> Array:
    """(1 − α₀)²·(1 − 2e^(−2nΔ²))⁴, as printed; the paper's α₀ = 0.999 is read as 1 − α₀."""
    n = np.asarray(samples, dtype=np.float64)
    tail = np.minimum(2 * np.exp(-2 * n * delta**2), 1.0)
    return np.asarray((1 - alpha) ** 2 * (1 - tail) ** 4)


def dkw_confidence(samples: ArrayLike, *, delta: float = DELTA) -> Array:
    """1 − 2e^(−2nΔ²): two one-sided events serve both classes, and Δ is subtracted."""
    n = np.asarray(samples, dtype=np.float64)
    return np.maximum(1 - 2 * np.exp(-2 * n * delta**2), 0.0)


def clopper_pearson_confidence(
    samples: ArrayLike, *, delta: float = DELTA, p_a: float = 0.9
) -> Array:
    """1 − P(Bin(n, p_A) ≤ n(p_A − Δ)) − P(Bin(n, ½) ≥ n(½ + Δ)): the two binary tests, exactly."""
    n = np.asarray(samples, dtype=np.int64)
    below = np.floor(n * (p_a - delta) + ROUNDING)
    above = np.ceil(n * (0.5 + delta) - ROUNDING)
    first = np.where(below >= 0, special.bdtr(np.maximum(below, 0), n, p_a), 0.0)
    second = np.where(above > 0, special.bdtrc(np.maximum(above - 1, 0), n, 0.5), 1.0)
    return np.maximum(1 - first - second, 0.0)


def draw_confidence(
    path: Path, *, most: int = 1000, delta: float = DELTA, alpha: float = ALPHA, p_a: float = 0.9
) -> None:
    """Draw all three against the number of samples, from 10 to `most`."""
    if most < 20:
        raise UnicrError(f"most={most!r} must be at least 20 samples")
    n = np.unique(np.linspace(10, most, 200).astype(int))
    with figure(path) as axes:
        axes.plot(n, paper_confidence(n, delta=delta, alpha=alpha), color="C3", label="paper")
        axes.plot(n, dkw_confidence(n, delta=delta), color="C1", label="DKW, Δ subtracted")
        exact = clopper_pearson_confidence(n, delta=delta, p_a=p_a)
        axes.plot(n, exact, color="C0", label=f"Clopper–Pearson, $p_A$ = {p_a:g}")
        axes.axhline((1 - alpha) ** 2, color="grey", linestyle=":", label="$p_A$, $p_B$ alone")
        axes.set_xlabel("number of Monte Carlo samples")
        axes.set_ylabel("confidence")
        axes.set_title(f"width Δ = {delta:g}")
        axes.set_ylim(0, 1.02)
        axes.legend()
