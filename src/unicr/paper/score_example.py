"""The robustness score illustrated: three certified runs on real digits and their envelope."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unicr.norms import l2
from unicr.paper._item import Context, Figure, Item, Result, Table
from unicr.radius import round_down

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unicr.metrics import Scores

MODELS = {0.25: "0.25", 0.5: "0.5", 1.0: "1.0"}
STEPS = 401


def run(context: Context) -> Result:
    from unicr.metrics import accuracy_curve, envelope, robustness_score

    runs = [_certified(context, sigma) for sigma in MODELS]
    score = robustness_score(runs)
    top = max(float(run.steps()[-1]) for run in runs if run.steps().size)
    radii = np.linspace(0, top, STEPS)
    curves = [accuracy_curve(run, radii) for run in runs]
    best = envelope(runs, radii)

    def draw(axes: list[Axes]) -> None:
        for i, (sigma, curve) in enumerate(zip(MODELS, curves, strict=True)):
            axes[0].step(radii, curve, where="pre", color=f"C{i}", label=f"σ = {sigma:g}")
        name = f"envelope, area {round_down(score, 4)}"
        axes[0].fill_between(radii, best, step="pre", color="0.5", alpha=0.25, label=name)
        axes[0].set_xlabel(r"$\ell_2$ radius")
        axes[0].set_ylabel("certified accuracy")
        axes[0].set_ylim(0, 1)
        axes[0].set_xlim(0, top)
        axes[0].legend()

    names = [f"sigma_{sigma:g}" for sigma in MODELS]
    alone = [
        (f"{sigma:g}", run.clean_accuracy, run.average_radius)
        for sigma, run in zip(MODELS, runs, strict=True)
    ]
    inputs, n = context.sizes["inputs"], context.sizes["n"]
    return Result(
        tables={
            "curves": Table(
                ("radius", *names, "envelope"), list(zip(radii, *curves, best, strict=True))
            ),
            "scores": Table(
                ("sigma", "certified_accuracy", "average_radius"),
                [*alone, ("all", "", score)],
            ),
        },
        figures={"score": Figure(draw)},
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


def _certified(context: Context, sigma: float) -> Scores:
    """One run in the item's work folder, gone on with where it was interrupted."""
    from unicr.classifier import load_classifier
    from unicr.data import load_dataset
    from unicr.noise import Gaussian
    from unicr.runs import Job, certify_run, scores_of
    from unicr.smoothing import Plan

    context.log(f"certifying at σ = {sigma:g}")
    spec = f"builtin:mnist-mlp-{MODELS[sigma]}"
    job = Job(
        classifier=load_classifier(spec),
        data=load_dataset("builtin:mnist"),
        noise=Gaussian(sigma=sigma),
        norms=(l2,),
        plan=Plan(n=context.sizes["n"]),
        seed=context.seed,
        limit=context.sizes["inputs"],
        workers=context.workers,
        data_spec="builtin:mnist",
        model_arguments={"spec": spec},
    )
    with certify_run(job, context.work / f"sigma-{sigma:g}", resume=True) as store:
        return scores_of(list(store.rows()), l2.text, f"σ = {sigma:g}", job.plan.alpha)


ITEM = Item(
    name="score-example",
    title="the robustness score, illustrated",
    source="Figure 10",
    run=run,
    sizes={
        "quick": {"inputs": 20, "n": 1000},
        "default": {"inputs": 100, "n": 10_000},
        "full": {"inputs": 1000, "n": 100_000},
    },
)
