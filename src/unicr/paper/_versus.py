"""One fixed Gaussian noise against I-OPT on the same inputs: what five items of the paper compare.

Both sides have the same model, inputs, samples and α. Every input's I-OPT begins at the fixed noise
and is certified with fresh samples, so its certificates speak of that input's own noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from unicr.norms import l1, l2, linf
from unicr.paper._item import Context, Figure, Table
from unicr.radius import round_down

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unicr.metrics import Scores
    from unicr.noise import Noise
    from unicr.runs import Job, Row

NORMS = (l1.text, l2.text, linf.text)
ALPHA = 0.001
SIDES = ("fixed", "I-OPT")


@dataclass(frozen=True)
class Setup:
    """What is certified: `arguments` are those of `load_classifier`, `data` of `load_dataset`.

    `keep` fixes the class to the model's own answer without noise.
    """

    arguments: dict[str, Any]
    data: str
    sigma: float
    keep: bool = False
    batch: int = 500


@dataclass(frozen=True)
class Printed:
    """A norm's rows of a table in the paper: percent at radii, and robustness scores if printed."""

    radii: tuple[float, ...]
    fixed: tuple[float, ...]
    chosen: tuple[float, ...]
    scores: tuple[float, float] | None = None


@dataclass(frozen=True)
class Pair:
    """One norm: the rows of the fixed noise and those of I-OPT, for the same inputs."""

    norm: str
    fixed: list[Row] = field(repr=False)
    chosen: list[Row] = field(repr=False)

    def scores(self) -> tuple[Scores, Scores]:
        """Both sides, wrong and abstained inputs counted as such."""
        from unicr.runs import scores_of

        fixed = scores_of(self.fixed, self.norm, SIDES[0], ALPHA)
        return fixed, scores_of(self.chosen, self.norm, SIDES[1], ALPHA)


def compare(context: Context, setup: Setup) -> dict[str, Pair]:
    """Both sides by norm, below the item's work folder; what an interruption left is used."""
    from unicr.i_opt import IOpt, i_opt_run
    from unicr.runs import Store

    sizes = context.sizes
    gaussian, lattice = lattice_of(setup.sigma, sizes)
    settings = IOpt(lattice, keep=setup.keep)
    plan = settings.plan(sizes["n0"], sizes["n"], ALPHA)
    fixed = fixed_rows(context, setup, gaussian, sizes["norms"], "fixed")
    context.log(f"searching among {lattice.size} noises for each input")
    job = _job(context, setup, lattice.noise(lattice.centre), sizes["norms"], plan)
    pairs = {}
    for norm, folder in i_opt_run(job, settings, context.work / "i-opt", resume=True).items():
        with Store(folder) as store:
            pairs[norm.text] = Pair(norm.text, fixed, list(store.rows()))
    return pairs


def lattice_of(sigma: float, sizes: Mapping[str, Any]) -> tuple[Noise, Any]:
    """The Gaussian noise that a search begins with, and the General Normal noises around it."""
    from unicr.i_opt import Axis, Lattice
    from unicr.noise import Gaussian

    low, high, factor = sizes["sigma"]
    axes = (Axis("sigma", sigma * low, sigma * high, factor), Axis("beta", *sizes["beta"]))
    gaussian = Gaussian(sigma=sigma)
    return gaussian, Lattice.around(gaussian, "gennorm", axes)


def fixed_rows(
    context: Context, setup: Setup, noise: Noise, norms: Sequence[str], name: str
) -> list[Row]:
    """The inputs certified with one noise, in all norms from the same votes."""
    from unicr.runs import certify_run
    from unicr.smoothing import Plan

    context.log(f"certifying with {noise.text}")
    plan = Plan(n0=context.sizes["n0"], n=context.sizes["n"], alpha=ALPHA)
    job = _job(context, setup, noise, norms, plan)
    with certify_run(job, context.work / name, resume=True) as store:
        return list(store.rows())


def _job(context: Context, setup: Setup, noise: Noise, norms: Sequence[str], plan: Any) -> Job:
    from unicr.classifier import load_classifier
    from unicr.data import load_dataset
    from unicr.runs import Job
    from unicr.smoothing import norms_of

    data = load_dataset(setup.data)
    inputs = min(context.sizes["inputs"], len(data))
    return Job(
        classifier=load_classifier(**setup.arguments),
        data=data,
        noise=noise,
        norms=norms_of(norms),
        plan=plan,
        seed=context.seed,
        skip=len(data) // inputs,
        limit=inputs,
        batch=setup.batch,
        workers=context.workers,
        data_spec=setup.data,
        model_arguments=setup.arguments,
    )


COLUMNS = ("norm", "radius", "fixed", "i_opt", "paper_fixed", "paper_i_opt")
SCORE_COLUMNS = ("norm", "fixed", "i_opt", "paper_fixed", "paper_i_opt")


def accuracy_table(
    scores: Mapping[str, tuple[Scores, Scores]], printed: Mapping[str, Printed]
) -> Table:
    """Certified accuracy in percent at the paper's radii, the paper's own beside it."""
    rows = []
    for norm, sides in scores.items():
        paper = printed[norm]
        for radius, *theirs in zip(paper.radii, paper.fixed, paper.chosen, strict=True):
            ours = [100 * side.certified_accuracy(radius) for side in sides]
            rows.append((norm, radius, *ours, *theirs))
    return Table(COLUMNS, rows)


def score_table(
    scores: Mapping[str, tuple[Scores, Scores]], printed: Mapping[str, Printed]
) -> Table:
    """Robustness scores; with one σ that is the average radius, wrong inputs counted as 0."""
    from unicr.metrics import robustness_score

    rows = []
    for norm, sides in scores.items():
        ours = [robustness_score([side]) for side in sides]
        rows.append((norm, *ours, *(printed[norm].scores or ("", ""))))
    return Table(SCORE_COLUMNS, rows)


def lines(
    scores: Mapping[str, tuple[Scores, Scores]], printed: Mapping[str, Printed], source: str
) -> list[str]:
    """One line per norm: certified accuracy at the paper's radii, ours and theirs."""
    return [
        f"l{norm} at {', '.join(f'{r:.3g}' for r in printed[norm].radii)}: fixed "
        f"{percents(sides[0], printed[norm].radii)}, I-OPT "
        f"{percents(sides[1], printed[norm].radii)} %; the paper "
        f"{_slashed(printed[norm].fixed)} and {_slashed(printed[norm].chosen)} % ({source}); "
        f"average radius {round_down(sides[0].average_radius, 4)} and "
        f"{round_down(sides[1].average_radius, 4)}"
        for norm, sides in scores.items()
    ]


def percents(side: Scores, radii: Sequence[float]) -> str:
    """Certified accuracies as a/b/c in percent."""
    return _slashed([100 * side.certified_accuracy(radius) for radius in radii])


def _slashed(values: Sequence[float]) -> str:
    return "/".join(f"{value:.1f}" for value in values)


def accuracy_figure(
    scores: Mapping[str, tuple[Scores, Scores]], printed: Mapping[str, Printed]
) -> Figure:
    """Certified accuracy against the radius: both sides, and the paper's as marks."""
    from unicr.metrics import accuracy_curve

    def draw(axes: list[Axes]) -> None:
        for one, (norm, sides) in zip(axes, scores.items(), strict=True):
            paper = printed[norm]
            tops = [side.steps()[-1] for side in sides if side.steps().size]
            radii = np.linspace(0, max([*tops, paper.radii[-1]]) * 1.02, 400)
            for i, (side, theirs) in enumerate(
                zip(sides, (paper.fixed, paper.chosen), strict=True)
            ):
                curve = 100 * accuracy_curve(side, radii)
                one.step(radii, curve, where="pre", color=f"C{i}", label=side.name)
                one.plot(paper.radii, theirs, "x", color=f"C{i}", label=f"{side.name}, the paper")
            one.set_xlabel(f"l{norm} radius")
            one.set_ylabel("certified accuracy in %")
            one.set_ylim(0, 100)
            one.set_xlim(left=0)
            one.legend()

    return Figure(draw, columns=len(scores), width=4.5 * len(scores), height=4)


def sizes_text(context: Context, what: str) -> str:
    """The sizes in words, for the remarks."""
    sizes = context.sizes
    return (
        f"{sizes['inputs']} {what}; n0 = {sizes['n0']}, n = {sizes['n']}, alpha = {ALPHA:g}; "
        f"sigma from {sizes['sigma'][0]:.3g} to {sizes['sigma'][1]:.3g} times the fixed one in "
        f"steps of {sizes['sigma'][2]:.3g}, beta from {sizes['beta'][0]:g} to "
        f"{sizes['beta'][1]:g}; searched radii; an I-OPT certificate speaks of the classifier "
        "smoothed with that input's own noise"
    )
