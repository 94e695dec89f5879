"""Defence accuracy: certified digits under real attacks at the radius, and beyond it.

At the radius nothing may change; beyond it the attacks must begin to win, or they prove nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from unicr.noise import Gaussian
from unicr.paper._item import Context, Figure, Item, MissingDataError, Result, Table
from unicr.paper._versus import ALPHA, NORMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unicr.attack import Defence

TABLE = "Table 6"
PRINTED = 100.0  # in Table 6 of the paper: every attack, every norm, at the radius
MODEL, DATA, SIGMA = "builtin:mnist-mlp-0.5", "builtin:mnist", 0.5
ATTACKS = ("gaussian", "procedural", "apgd", "wasserstein", "square", "hopskipjump")


def run(context: Context) -> Result:
    from unicr.errors import MissingExtraError

    try:
        found = _attacked(context, _certified(context))
    except MissingExtraError as error:
        raise MissingDataError(str(error)) from None
    columns = ("attack", "norm", "factor", "inputs", "held", "accuracy", "low", "high")
    verdicts = ("kept", "undecided", "changed")
    rows = [tuple(getattr(one, name) for name in (*columns, *verdicts)) for one in found]
    norms, factors = context.sizes["norms"], context.sizes["factors"]

    def draw(axes: list[Axes]) -> None:
        for one, norm in zip(axes, norms, strict=True):
            for name in context.sizes["attacks"]:
                own = sorted(_of(found, attack=name, norm=norm), key=lambda d: d.factor)
                shares = [100 * defence.accuracy for defence in own]
                one.plot([d.factor for d in own], shares, "o-", label=name)
            one.set_xlabel(f"size of the perturbation / l{norm} radius")
            one.set_ylabel("defence accuracy in %")
            one.set_ylim(-3, 103)
            one.legend()

    sizes = context.sizes
    return Result(
        tables={"defence": Table((*columns, *verdicts), rows)},
        figures={"defence": Figure(draw, columns=len(norms), width=4.5 * len(norms), height=4)},
        comparison=[_line(found, norm, factor) for norm in norms for factor in factors],
        remarks=[
            f"{sizes['inputs']} MNIST digits, the built-in perceptron with Gaussian noise of σ = "
            f"{SIGMA}, proved radii from n = {sizes['n']} at alpha = {ALPHA:g}; each perturbed "
            f"digit judged by {sizes['votes']} fresh votes",
            "the paper: CIFAR-10, 10,000 images, 500 samples; it does not attack beyond the radius",
        ],
    )


def _certified(context: Context) -> Path:
    """A run with proved radii in every norm."""
    from unicr.classifier import load_classifier
    from unicr.data import load_dataset
    from unicr.runs import Job, certify_run
    from unicr.smoothing import Plan, norms_of

    job = Job(
        classifier=load_classifier(MODEL),
        data=load_dataset(DATA),
        noise=Gaussian(sigma=SIGMA),
        norms=norms_of(context.sizes["norms"]),
        plan=Plan(n0=100, n=context.sizes["n"], alpha=ALPHA),
        seed=context.seed,
        sound=True,
        limit=context.sizes["inputs"],
        workers=context.workers,
        data_spec=DATA,
        model_arguments={"spec": MODEL},
    )
    certify_run(job, context.work / "run", resume=True).close()
    return context.work / "run"


def _attacked(context: Context, folder: Path) -> list[Defence]:
    from unicr.attack import Settings, attack_run, defences, make
    from unicr.classifier import load_classifier
    from unicr.data import load_dataset

    sizes = context.sizes
    outcomes, _ = attack_run(
        folder,
        load_classifier(MODEL),
        load_dataset(DATA),
        [make(name, sizes["effort"]) for name in sizes["attacks"]],
        settings=Settings(votes=sizes["votes"], seed=context.seed, sound=True),
        factors=sizes["factors"],
        model_arguments={"spec": MODEL},
        workers=context.workers,
        on_task=lambda task: context.log(f"{task.attack.name}: {len(task.aims)} digits"),
    )
    return defences(outcomes)


def _of(found: list[Defence], **wanted: Any) -> list[Defence]:
    return [one for one in found if all(getattr(one, k) == v for k, v in wanted.items())]


def _line(found: list[Defence], norm: str, factor: float) -> str:
    own = _of(found, norm=norm, factor=factor)
    shares = ", ".join(f"{one.attack} {100 * one.accuracy:.1f}" for one in own)
    changed = sum(one.changed for one in own)
    paper = f"; the paper: {PRINTED:g} % for every attack ({TABLE})" if factor == 1 else ""
    return (
        f"l{norm} at {factor:g} R: {shares} %, {changed} significant changes in "
        f"{sum(one.inputs for one in own)}{paper}"
    )


USUAL = {
    "n": 10_000,
    "norms": NORMS,
    "factors": (1, 1.5, 3),
    "attacks": ATTACKS,
    "effort": 1,
    "votes": 1000,
}
ITEM = Item(
    name="defence",
    title="defence accuracy against attacks at the certified radius and beyond",
    source=TABLE,
    run=run,
    sizes={
        "quick": {
            "inputs": 8,
            "n": 1000,
            "norms": ("2",),
            "factors": (1, 3),
            "attacks": ("gaussian", "apgd"),
            "effort": 1,
            "votes": 500,
        },
        "default": {"inputs": 110, **USUAL},
        "full": {"inputs": 1000, **USUAL},
    },
)
