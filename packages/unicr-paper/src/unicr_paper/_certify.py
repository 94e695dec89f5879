"""Runs for the items: one fixed noise, or a fixed Gaussian noise against I-OPT on the same inputs.

Both sides of a comparison have the same model, inputs, samples and α. Every input's I-OPT begins at
the fixed noise and is certified with fresh samples: its certificate speaks of that input's noise.
Radii are proved; the searched ones, which the paper reports, stand beside them in columns of their
own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from unicr.classifier import load_classifier
from unicr.data import load_dataset
from unicr.errors import SpecError
from unicr.i_opt import Axis, Grid, IOpt, i_opt_run
from unicr.metrics import Scores, accuracy_curve, best_of
from unicr.noise import Noise, gaussian
from unicr.norms import l1, l2, linf
from unicr.runs import Job, Row, Run, certify_run, scores_of
from unicr.smoothing import Plan, read_norms
from unicr.text import round_down
from unicr_paper._item import Axes, Context, Figure, MissingDataError, Output, Table, panels

NORMS = (l1.text, l2.text, linf.text)
ALPHA = 0.001
SIDES = ("fixed", "I-OPT")
SHARES = (20, 40, 60, 80, 100)
COLUMNS = ("fixed", "i_opt", "fixed_searched", "i_opt_searched", "paper_fixed", "paper_i_opt")
# What the paper prints, by table; numbers under a name that ends in _255 are in 1/255.
TABLES = json.loads(resources.files("unicr_paper").joinpath("printed.json").read_text())


@dataclass(frozen=True)
class Setup:
    """What is certified: a model (or the arguments of `load_classifier`), data, and a σ.

    `keep` fixes the class to the model's own answer without noise. Inputs are spread evenly over
    the data, or (`spread` False) the first ones.
    """

    model: str | dict[str, Any]
    data: str
    sigma: float = 0.5
    keep: bool = False
    batch: int | None = None
    spread: bool = True

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of `load_classifier`."""
        return {"spec": self.model} if isinstance(self.model, str) else self.model


def make_sizes(
    inputs: int,
    n0: int,
    n: int,
    sigma: tuple[float, float, float],
    beta: tuple[float, float, float],
    norms: tuple[str, ...] = NORMS,
) -> dict[str, Any]:
    """The sizes of a comparison: σ is low, high and step as factors, β low, high and step."""
    sizes: dict[str, Any] = {"inputs": inputs, "n0": n0, "n": n}
    return {**sizes, "norms": norms, "sigma": sigma, "beta": beta}


@dataclass(frozen=True)
class Printed:
    """A norm's rows of a table in the paper: percent at radii, and robustness scores if printed."""

    fixed: Sequence[float]
    chosen: Sequence[float]
    radii: Sequence[float] = ()
    scores: Sequence[float] = ()


def read_printed(table: str) -> dict[str, Printed]:
    """A table of the paper by norm."""

    def numbers(name: str, values: list[float]) -> list[float]:
        return [value / 255 for value in values] if name.endswith("_255") else values

    return {
        norm: Printed(**{k.removesuffix("_255"): numbers(k, v) for k, v in rows.items()})
        for norm, rows in TABLES[table].items()
    }


@dataclass(frozen=True)
class Pair:
    """One norm: the rows of the fixed noise and those of I-OPT, for the same inputs."""

    norm: str
    fixed: list[Row] = field(repr=False)
    chosen: list[Row] = field(repr=False)

    def scores(self) -> Both:
        """Both sides with proved radii, wrong and abstained inputs counted as such."""
        fixed = scores_of(self.fixed, self.norm, SIDES[0], ALPHA)
        return fixed, scores_of(self.chosen, self.norm, SIDES[1], ALPHA)

    def upper_scores(self) -> Both:
        """Both sides with the searched radii of the same certificates."""
        fixed, chosen = self.scores()
        return replace_by_searched(fixed, self.fixed), replace_by_searched(chosen, self.chosen)


Both = tuple[Scores, Scores]  # the fixed noise and I-OPT


def replace_by_searched(scores: Scores, rows: Sequence[Row]) -> Scores:
    """The same certificates with their searched radii."""
    entries = [None if r.certificate is None else r.certificate.in_norm(scores.norm) for r in rows]
    radii = [0.0 if entry is None else entry.searched for entry in entries]
    return replace(scores, radius=np.array(radii, dtype=np.float64))


def top_means(sides: Sequence[Scores]) -> list[list[float]]:
    """For each side the average of the largest 20, 40, …, 100 % of the radii (at least of one)."""
    means = []
    for side in sides:
        radii = np.sort(np.where(side.counted > 0, side.radius, 0.0))[::-1]
        means.append([float(radii[: max(1, len(radii) * s // 100)].mean()) for s in SHARES])
    return means


def plan_of(sizes: Mapping[str, Any]) -> Plan:
    """The samples of one input."""
    return Plan(n0=sizes.get("n0", 100), n=sizes["n"], alpha=ALPHA)


def certify(
    context: Context, setup: Setup, noise: Noise, norms: Sequence[str], name: str
) -> list[Row]:
    """The inputs certified with one noise, in all norms from the same votes, in `work / name`."""
    context.log(f"certifying with {noise.text}")
    job = _job(context, setup, noise, norms)
    with certify_run(job, context.work / name, resume=True) as run:
        return list(run.rows())


def compare(context: Context, setup: Setup) -> dict[str, Pair]:
    """Both sides by norm, below the item's work folder; what an interruption left is used."""
    sizes, start = context.sizes, gaussian(sigma=setup.sigma)
    low, high, factor = sizes["sigma"]
    axes = (
        Axis("sigma", setup.sigma * low, setup.sigma * high, factor),
        Axis("beta", *sizes["beta"]),
    )
    grid = Grid.around(start, "gennorm", axes)
    settings = IOpt(grid, keep=setup.keep)
    fixed = certify(context, setup, start, sizes["norms"], "fixed")
    context.log(f"searching among {grid.size} noises for each input")
    job = _job(context, setup, start, sizes["norms"])
    folders = i_opt_run(job, settings, context.work / "i-opt", resume=True)
    pairs = {}
    for norm, folder in folders.items():
        with Run(folder) as run:
            pairs[norm.text] = Pair(norm.text, fixed, list(run.rows()))
    return pairs


def compare_sigmas(
    context: Context, models: Mapping[float, dict[str, Any]], data: str
) -> dict[str, dict[float, Pair]]:
    """Both sides by norm and σ, each σ with the network that was trained with it."""
    pairs: dict[str, dict[float, Pair]] = {}
    for sigma, arguments in models.items():
        folder = own_folder(context, sigma, models)
        for norm, pair in compare(folder, Setup(arguments, data, sigma)).items():
            pairs.setdefault(norm, {})[sigma] = pair
    return pairs


def own_folder(context: Context, sigma: float, models: Mapping[float, Any]) -> Context:
    """With a folder of its own for each of several σ."""
    work = context.work / f"sigma-{sigma:g}"
    return replace(context, work=work) if len(models) > 1 else context


def weights_by_sigma(option: str, text: str) -> dict[float, Path]:
    """A file of weights or those of a folder, by the σ of their training.

    It is the last number in a file's name, as in CIFAR_Gaussian[-1.0, 0.25]_best.pth.
    """
    given = Path(text).expanduser()
    if not given.exists():
        raise MissingDataError(f"needs --set {option}=…: there is no {given}")
    ending = (".pt", ".pth", ".th", ".tar", ".safetensors")
    files = sorted(f for f in given.iterdir() if f.suffix in ending) if given.is_dir() else [given]
    if not files:
        raise MissingDataError(f"needs --set {option}=…: no file of {given} holds weights")
    by_sigma = {}
    for file in files:
        numbers = re.findall(r"\d*\.\d+|\d+", file.stem)
        if not numbers or not float(numbers[-1]) > 0:
            raise SpecError(
                f"--set {option}: the σ of {file.stem} must be the last number in its name"
            )
        by_sigma[float(numbers[-1])] = file
    return dict(sorted(by_sigma.items()))


def top_table(pairs: Mapping[str, Mapping[float, Pair]]) -> Table:
    """Averages of the largest radii at each σ, as the paper's Table 3 has them."""
    rows = [
        (sigma, norm, *values)
        for norm, by_sigma in pairs.items()
        for sigma, pair in by_sigma.items()
        for values in zip(
            SHARES, *top_means(pair.scores()), *top_means(pair.upper_scores()), strict=True
        )
    ]
    return Table(("sigma", "norm", "top_percent", *COLUMNS[:4]), rows)


def with_inputs(context: Context) -> Context:
    """With as many inputs as `--set inputs=…` says, where it is given."""
    text = context.options.get("inputs")
    if text is None:
        return context
    if not text.isdigit() or int(text) < 1:
        raise SpecError(f"--set inputs={text}: a whole number from 1 up")
    return replace(context, sizes={**context.sizes, "inputs": int(text)})


def _job(context: Context, setup: Setup, noise: Noise, norms: Sequence[str]) -> Job:
    data = load_dataset(setup.data)
    inputs = min(context.sizes["inputs"], len(data))
    return Job(
        classifier=load_classifier(**setup.arguments),
        data=data,
        noise=noise,
        norms=read_norms(norms),
        plan=plan_of(context.sizes),
        seed=context.seed,
        skip=len(data) // inputs if setup.spread else 1,
        limit=inputs,
        batch=setup.batch,
        workers=context.workers,
        data_spec=setup.data,
        model_arguments=setup.arguments,
    )


@dataclass(frozen=True)
class Sides:
    """What is compared, by norm: proved radii, and the searched ones of the same certificates."""

    proved: Mapping[str, Both]
    searched: Mapping[str, Both]

    @classmethod
    def of(cls, pairs: Mapping[str, Sequence[Pair]]) -> Sides:
        """The best of several pairs, one for each σ, at every radius, as in the paper."""

        def best(sides: Sequence[Both]) -> Both:
            return best_of([fixed for fixed, _ in sides]), best_of([other for _, other in sides])

        return cls(
            {norm: best([pair.scores() for pair in each]) for norm, each in pairs.items()},
            {
                norm: best([pair.upper_scores() for pair in several])
                for norm, several in pairs.items()
            },
        )

    def all(self, norm: str) -> tuple[Scores, ...]:
        """Those of the columns fixed, i_opt, fixed_searched and i_opt_searched."""
        return (*self.proved[norm], *self.searched[norm])


def report_comparison(sides: Sides, printed: Mapping[str, Printed], source: str) -> Output:
    """The tables, the figure and the lines that every such comparison has."""
    tables = {"accuracy": accuracy_table(sides, printed)}
    if all(printed[norm].scores for norm in sides.proved):
        # of the best of several σ the average radius is the robustness score
        rows = [
            (norm, *(side.average_radius for side in sides.all(norm)), *printed[norm].scores)
            for norm in sides.proved
        ]
        tables["scores"] = Table(("norm", *COLUMNS), rows)
    lines = [_line(norm, both, printed[norm], source) for norm, both in sides.proved.items()]
    return Output(tables, {"accuracy": _figure(sides.proved, printed)}, lines)


def accuracy_table(sides: Sides, printed: Mapping[str, Printed]) -> Table:
    """Certified accuracy in percent at the paper's radii, the paper's own beside it."""
    rows = []
    for norm in sides.proved:
        paper = printed[norm]
        for radius, *theirs in zip(paper.radii, paper.fixed, paper.chosen, strict=True):
            ours = (100 * side.certified_accuracy(radius) for side in sides.all(norm))
            rows.append((norm, radius, *ours, *theirs))
    return Table(("norm", "radius", *COLUMNS), rows)


def _line(norm: str, both: Both, paper: Printed, source: str) -> str:
    ours = [percents(side, paper.radii) for side in both]
    means = [round_down(side.average_radius, 4) for side in both]
    return (
        f"l{norm} at {', '.join(f'{r:.3g}' for r in paper.radii)}: fixed {ours[0]}, I-OPT "
        f"{ours[1]} %; the paper {join_slashes(paper.fixed)} and {join_slashes(paper.chosen)} % "
        f"({source}); "
        f"average radius {means[0]} and {means[1]}"
    )


def percents(side: Scores, radii: Sequence[float]) -> str:
    """Certified accuracies as a/b/c in percent."""
    return join_slashes([100 * side.certified_accuracy(radius) for radius in radii])


def join_slashes(values: Sequence[float]) -> str:
    """a/b/c with one decimal."""
    return "/".join(f"{value:.1f}" for value in values)


def _figure(sides: Mapping[str, Both], printed: Mapping[str, Printed]) -> Figure:
    """Certified accuracy against the radius: both sides, and the paper's as marks."""

    def draw(axes: Axes, norm: str) -> None:
        paper = printed[norm]
        tops = [side.steps()[-1] for side in sides[norm] if side.steps().size]
        radii = np.linspace(0, max([*tops, paper.radii[-1]]) * 1.02, 400)
        both = zip(sides[norm], (paper.fixed, paper.chosen), strict=True)
        for i, (side, theirs) in enumerate(both):
            curve = 100 * accuracy_curve(side, radii)
            axes.step(radii, curve, where="pre", color=f"C{i}", label=side.name)
            axes.plot(paper.radii, theirs, "x", color=f"C{i}", label=f"{side.name}, the paper")

    y = "certified accuracy in %"
    return panels(list(sides), draw, x="l{} radius", y=y, xlim=(0, None), ylim=(0, 100))


def sizes_text(sizes: Mapping[str, Any], what: str) -> str:
    """The sizes in words, for the remarks."""
    low, high, factor = sizes["sigma"]
    return (
        f"{sizes['inputs']} {what}; n0 = {sizes['n0']}, n = {sizes['n']}, alpha = {ALPHA:g}; "
        f"sigma from {low:.3g} to {high:.3g} times the fixed one in steps of {factor:.3g}, beta "
        f"from {sizes['beta'][0]:g} to {sizes['beta'][1]:g}; proved radii, where a column is not "
        "called searched; an I-OPT certificate speaks of the classifier smoothed with that input's "
        "own noise"
    )
