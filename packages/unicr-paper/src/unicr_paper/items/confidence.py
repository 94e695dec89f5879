"""Confidence against the number of Monte Carlo samples, as printed and as it should be.

The paper multiplies Dvoretzky–Kiefer–Wolfowitz bounds at a width Δ that its radius never subtracts.
Beside it: the confidence with which a perturbation that clears its two tests by Δ is accepted, by
the same inequality and by the exact binomial (Clopper–Pearson) tests that are the default here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from unicr.values import Array
from unicr_paper._item import Axes, Context, Output, Table, item, panels

DELTA, ALPHA, P_A = 0.1, 1e-3, 0.9
ROUNDING = 1e-9
PRINTED = 400  # samples from which the text calls the confidence very close to Cohen's
COLUMNS = ("samples", "paper", "dkw", "clopper_pearson")
NAMES = ("the paper's product", "DKW, Δ subtracted", f"Clopper–Pearson, $p_A$ = {P_A}")


def paper_confidence(samples: ArrayLike) -> Array:
    """(1 − α₀)²·(1 − 2e^(−2nΔ²))⁴, as printed; the paper's α₀ = 0.999 is read as 1 − α₀."""
    n = np.asarray(samples, dtype=np.float64)
    tail = np.minimum(2 * np.exp(-2 * n * DELTA**2), 1.0)
    return np.asarray((1 - ALPHA) ** 2 * (1 - tail) ** 4)


def dkw_confidence(samples: ArrayLike) -> Array:
    """1 − 2e^(−2nΔ²): two one-sided events serve both classes, and Δ is subtracted."""
    n = np.asarray(samples, dtype=np.float64)
    return np.maximum(1 - 2 * np.exp(-2 * n * DELTA**2), 0.0)


def clopper_pearson_confidence(samples: ArrayLike) -> Array:
    """1 − P(Bin(n, p_A) ≤ n(p_A − Δ)) − P(Bin(n, ½) ≥ n(½ + Δ)): the two binary tests, exactly."""
    n = np.asarray(samples, dtype=np.int64)
    below = np.floor(n * (P_A - DELTA) + ROUNDING)
    above = np.ceil(n * (0.5 + DELTA) - ROUNDING)
    first = np.where(below >= 0, special.bdtr(np.maximum(below, 0), n, P_A), 0.0)
    second = np.where(above > 0, special.bdtrc(np.maximum(above - 1, 0), n, 0.5), 1.0)
    return np.maximum(1 - first - second, 0.0)


@item(
    "confidence",
    "confidence against the number of Monte Carlo samples",
    "Figure 9",
    {"most": 1000},
    {"most": 1000},
    {"most": 1000},
    order=7,
)
def run(context: Context) -> Output:
    n = np.arange(10, context.sizes["most"] + 1, 10)
    lines = (paper_confidence(n), dkw_confidence(n), clopper_pearson_confidence(n))
    alone = (1 - ALPHA) ** 2

    def draw(axes: Axes, width: float) -> None:
        for line, colour, name in zip(lines, ("C3", "C1", "C0"), NAMES, strict=True):
            axes.plot(n, line, color=colour, label=name)
        axes.axhline(alone, color="grey", linestyle=":", label="$p_A$, $p_B$ alone")
        axes.set_title(f"width Δ = {width}")

    paper, dkw, exact = (float(line[np.flatnonzero(n == PRINTED)[0]]) for line in lines)
    x = "number of Monte Carlo samples"
    figure = panels([DELTA], draw, x=x, y="confidence", size=(6.4, 4.2), ylim=(0, 1.02))
    return Output(
        tables={"confidence": Table(COLUMNS, list(zip(n, *lines, strict=True)))},
        figures={"confidence": figure},
        comparison=[
            f"at {PRINTED} samples the paper's product is {paper:.5f} against {alone:.5f} for "
            f"p_A and p_B alone (the paper: very close); DKW {dkw:.5f}, exact {exact:.9f}"
        ],
        remarks=[
            f"the paper's α₀ = 0.999 is read as 1 − α₀; its Δ = {DELTA} is never subtracted there, "
            "so its product is no confidence of the radius it prints; the other two lines are "
            f"those of a perturbation that clears both tests by Δ, at p_A = {P_A}"
        ],
    )
