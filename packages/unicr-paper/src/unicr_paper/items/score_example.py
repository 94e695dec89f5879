"""The robustness score illustrated: three certified runs on real digits and their envelope."""

from __future__ import annotations

from typing import Any

import numpy as np

from unicr.metrics import accuracy_curve, envelope, robustness_score
from unicr.noise import gaussian
from unicr.norms import l2
from unicr.runs import scores_of
from unicr.text import round_down
from unicr_paper._certify import ALPHA, Setup, certify
from unicr_paper._item import Axes, Context, Output, Table, item, panels

MODELS = {0.25: "0.25", 0.5: "0.5", 1.0: "1.0"}
STEPS = 401


@item(
    "score-example",
    "the robustness score, illustrated",
    "Figure 10",
    {"inputs": 20, "n": 1000},
    {"inputs": 100, "n": 10_000},
    {"inputs": 1000, "n": 100_000},
    order=8,
)
def run(context: Context) -> Output:
    runs = []
    for sigma, name in MODELS.items():
        setup = Setup(f"builtin:mnist-mlp-{name}", "builtin:mnist", spread=False)
        rows = certify(context, setup, gaussian(sigma=sigma), (l2.text,), f"sigma-{sigma:g}")
        runs.append(scores_of(rows, l2.text, f"σ = {sigma:g}", ALPHA))
    score = robustness_score(runs)
    top = max(float(run.steps()[-1]) for run in runs if run.steps().size)
    radii = np.linspace(0, top, STEPS)
    curves = [accuracy_curve(run, radii) for run in runs]
    best = envelope(runs, radii)

    def draw(axes: Axes, area: str) -> None:
        for run, curve in zip(runs, curves, strict=True):
            axes.step(radii, curve, where="pre", label=run.name)
        name = f"envelope, area {area}"
        axes.fill_between(radii, best, step="pre", color="0.5", alpha=0.25, label=name)

    limits: dict[str, Any] = {"size": (6.4, 4.2), "ylim": (0, 1), "xlim": (0, top)}
    area = round_down(score, 4)
    x, y = r"$\ell_2$ radius", "certified accuracy"
    names = [f"sigma_{sigma:g}" for sigma in MODELS]
    alone = [
        (f"{sigma:g}", run.certified_accuracy(0), run.average_radius)
        for sigma, run in zip(MODELS, runs, strict=True)
    ]
    inputs, n = context.sizes["inputs"], context.sizes["n"]
    return Output(
        tables={
            "curves": Table(
                ("radius", *names, "envelope"), list(zip(radii, *curves, best, strict=True))
            ),
            "scores": Table(
                ("sigma", "certified_accuracy", "average_radius"), [*alone, ("all", "", score)]
            ),
        },
        figures={"score": panels([area], draw, x=x, y=y, **limits)},
        comparison=[
            f"robustness score of the three together {round_down(score, 4)}; the average radius "
            f"of each alone {', '.join(round_down(row[2], 4) for row in alone)} "
            "(the paper draws an example without numbers)"
        ],
        remarks=[
            f"{inputs} MNIST test digits, the built-in perceptrons, Gaussian noise against l2, "
            f"n = {n}, alpha = 0.001"
        ],
    )
