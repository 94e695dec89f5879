"""Confidence against the number of Monte Carlo samples, as printed and as it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unicr.paper._item import Context, Figure, Item, Result, Table
from unicr.report.confidence import (
    ALPHA,
    DELTA,
    clopper_pearson_confidence,
    dkw_confidence,
    paper_confidence,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

P_A = 0.9
PRINTED = 400  # samples from which the text calls the confidence very close to Cohen's
COLUMNS = ("samples", "paper", "dkw", "clopper_pearson")


def run(context: Context) -> Result:
    n = np.arange(10, context.sizes["most"] + 1, 10)
    paper, dkw = paper_confidence(n), dkw_confidence(n)
    exact = clopper_pearson_confidence(n, p_a=P_A)

    def draw(axes: list[Axes]) -> None:
        axes[0].plot(n, paper, color="C3", label="the paper's product")
        axes[0].plot(n, dkw, color="C1", label="DKW, Δ subtracted")
        axes[0].plot(n, exact, color="C0", label=f"Clopper–Pearson, $p_A$ = {P_A}")
        axes[0].axhline((1 - ALPHA) ** 2, color="grey", linestyle=":", label="$p_A$, $p_B$ alone")
        axes[0].set_xlabel("number of Monte Carlo samples")
        axes[0].set_ylabel("confidence")
        axes[0].set_title(f"width Δ = {DELTA}")
        axes[0].set_ylim(0, 1.02)
        axes[0].legend()

    at = int(np.flatnonzero(n == PRINTED)[0])
    alone = (1 - ALPHA) ** 2
    return Result(
        tables={"confidence": Table(COLUMNS, list(zip(n, paper, dkw, exact, strict=True)))},
        figures={"confidence": Figure(draw)},
        comparison=[
            f"at {PRINTED} samples the paper's product is {paper[at]:.5f} against {alone:.5f} for "
            f"p_A and p_B alone (the paper: very close); DKW {dkw[at]:.5f}, exact {exact[at]:.9f}"
        ],
        remarks=[
            f"the paper's α₀ = 0.999 is read as 1 − α₀; its Δ = {DELTA} is never subtracted there, "
            "so its product is no confidence of the radius it prints; the other two lines are "
            f"those of a perturbation that clears both tests by Δ, at p_A = {P_A}"
        ],
    )


ITEM = Item(
    name="confidence",
    title="confidence against the number of Monte Carlo samples",
    source="Figure 9",
    run=run,
    sizes={"quick": {"most": 1000}, "default": {"most": 1000}, "full": {"most": 1000}},
)
