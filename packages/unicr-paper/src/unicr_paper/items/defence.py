"""Defence accuracy: certified digits under real attacks at the radius, and beyond it.

At the radius nothing may change; beyond it the attacks must begin to win, or they prove nothing.
"""

from __future__ import annotations

from typing import Any

from unicr.classifier import load_classifier
from unicr.data import load_dataset
from unicr.errors import MissingExtraError
from unicr.lab.attack import Defence, Settings, attack_run, defences, make
from unicr.lab.report.attack import AttackBar
from unicr.noise import gaussian
from unicr_paper._certify import ALPHA, NORMS, Setup, certify
from unicr_paper._item import Axes, Context, MissingDataError, Output, Table, item, panels

TABLE = "Table 6"
PRINTED = 100.0  # in Table 6 of the paper: every attack, every norm, at the radius
SETUP = Setup("builtin:mnist-mlp-0.5", "builtin:mnist", 0.5, spread=False)
ATTACKS = ("gaussian", "procedural", "apgd", "wasserstein", "square", "hopskipjump")
COLUMNS = (
    *("attack", "norm", "factor", "inputs", "held", "accuracy", "low", "high"),
    *("kept", "undecided", "changed"),
)
USUAL = {"norms": NORMS, "factors": (1, 1.5, 3), "attacks": ATTACKS, "effort": 1, "votes": 1000}
FEW = {
    "norms": ("2",),
    "factors": (1, 3),
    "attacks": ("gaussian", "apgd"),
    "effort": 1,
    "votes": 500,
}


@item(
    "defence",
    "defence accuracy against attacks at the certified radius and beyond",
    TABLE,
    {"inputs": 8, "n": 1000, **FEW},
    {"inputs": 110, "n": 10_000, **USUAL},
    {"inputs": 1000, "n": 10_000, **USUAL},
    order=9,
)
def run(context: Context) -> Output:
    sizes = context.sizes
    try:
        results = _attack_run(context)
    except MissingExtraError as error:
        raise MissingDataError(str(error)) from None
    norms, factors = sizes["norms"], sizes["factors"]

    def draw(axes: Axes, norm: str) -> None:
        for name in sizes["attacks"]:
            chosen = sorted(_of(results, attack=name, norm=norm), key=lambda d: d.factor)
            shares = [100 * defence.accuracy for defence in chosen]
            axes.plot([d.factor for d in chosen], shares, "o-", label=name)

    x, y = "size of the perturbation / l{} radius", "defence accuracy in %"
    rows = [tuple(getattr(result, name) for name in COLUMNS) for result in results]
    return Output(
        tables={"defence": Table(COLUMNS, rows)},
        figures={"defence": panels(norms, draw, x=x, y=y, ylim=(-3, 103))},
        comparison=[_line(results, norm, factor) for norm in norms for factor in factors],
        remarks=[
            f"{sizes['inputs']} MNIST digits, the built-in perceptron with Gaussian noise of σ = "
            f"{SETUP.sigma}, proved radii from n = {sizes['n']} at alpha = {ALPHA:g}; each "
            f"perturbed digit judged by {sizes['votes']} fresh votes",
            "the paper: CIFAR-10, 10,000 images, 500 samples; it does not attack beyond the radius",
        ],
    )


def _attack_run(context: Context) -> list[Defence]:
    """The proved radii of a run in every norm, attacked."""
    sizes = context.sizes
    certify(context, SETUP, gaussian(sigma=SETUP.sigma), sizes["norms"], "run")
    with AttackBar() as shown:
        outcomes, _ = attack_run(
            context.work / "run",
            load_classifier(**SETUP.arguments),
            load_dataset(SETUP.data),
            [make(name, sizes["effort"]) for name in sizes["attacks"]],
            settings=Settings(votes=sizes["votes"], seed=context.seed),
            factors=sizes["factors"],
            model_arguments=SETUP.arguments,
            workers=context.workers,
            on_task=shown.add,
            on_plan=shown.plan,
        )
    return defences(outcomes)


def _of(results: list[Defence], **wanted: Any) -> list[Defence]:
    return [result for result in results if all(getattr(result, k) == v for k, v in wanted.items())]


def _line(results: list[Defence], norm: str, factor: float) -> str:
    chosen = _of(results, norm=norm, factor=factor)
    shares = ", ".join(f"{result.attack} {100 * result.accuracy:.1f}" for result in chosen)
    changed = sum(result.changed for result in chosen)
    paper = f"; the paper: {PRINTED:g} % for every attack ({TABLE})" if factor == 1 else ""
    return (
        f"l{norm} at {factor:g} R: {shares} %, {changed} significant changes in "
        f"{sum(result.inputs for result in chosen)}{paper}"
    )
