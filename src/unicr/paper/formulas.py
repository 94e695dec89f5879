"""p_A–R comparison with the known formulas: the paper's six pairs of noise and norm.

Each formula stands beside the bracket of this package and beside the paper's own algorithm (Monte
Carlo with its 1,000 samples and a swarm over directions, the pair of empirical CDFs).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unicr.noise import parse
from unicr.norms import Norm, l1, l2, linf
from unicr.paper._item import Context, Figure, Item, Result, Table
from unicr.paper._lines import DIM, label
from unicr.radius import MonteCarlo, certified_radius
from unicr.radius.formulas import FORMULAS
from unicr.radius.tightness import Row, validate

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Panel:
    """One panel of the figure: a noise, a norm, and the formulas known for them."""

    title: str
    noise: str
    norm: Norm
    formulas: tuple[str, ...]


PANELS = (
    Panel("Laplace", "laplace(sigma=1)", l1, ("teng", "lecuyer")),
    Panel("Gaussian", "gaussian(sigma=1)", l2, ("cohen", "lecuyer")),
    Panel("Gaussian", "gaussian(sigma=1)", linf, ("yang_gaussian_linf",)),
    Panel("Pareto 1", "pareto(beta=1, scale=1)", l1, ("yang_pareto_l1",)),
    Panel("General Normal 1.5", "gennorm(beta=1.5, sigma=1)", l1, ("yang_gennorm_l1",)),
    Panel("exponential mix ½", "expmix(beta=0.5, sigma=1)", l1, ("yang_exponential_l1",)),
)
COLUMNS = ("noise", "norm", "dim", "p_a", "formula", "radius", "proved", "searched", "verdict")
SAMPLED = ("noise", "norm", "dim", "p_a", "samples", "monte_carlo", "searched", "ratio")


def run(context: Context) -> Result:
    p_a, sampled_at = context.sizes["p_a"], context.sizes["monte_carlo_p_a"]
    found: list[dict[str, list[Row]]] = []
    sampled: list[list[tuple[float, float, float]]] = []
    for panel in PANELS:
        context.log(f"{panel.noise} against {panel.norm}")
        law = parse(panel.noise)
        first = validate(FORMULAS[panel.formulas[0]], law, panel.norm, DIM, p_a)
        group = {panel.formulas[0]: first}
        for name in panel.formulas[1:]:
            group[name] = validate(FORMULAS[name], law, panel.norm, DIM, p_a)
        found.append(group)
        searched = {row.p_a: row.searched for row in first}
        sampled.append([(p, _paper(context, panel, p), searched[p]) for p in sampled_at])

    def draw(axes: list[Axes]) -> None:
        for one, panel, group, points in zip(axes, PANELS, found, sampled, strict=True):
            _draw(one, panel, group, points)

    samples = context.sizes["samples"]
    return Result(
        tables={
            "formulas": Table(COLUMNS, _rows(found)),
            "monte-carlo": Table(
                SAMPLED,
                [
                    (panel.noise, panel.norm.text, DIM, p, samples, radius, ours, radius / ours)
                    for panel, points in zip(PANELS, sampled, strict=True)
                    for p, radius, ours in points
                ],
            ),
        },
        figures={"formulas": Figure(draw, rows=2, columns=3, width=13, height=7.5)},
        comparison=[
            f"{panel.noise} against {panel.norm}, {name}: {_verdicts(rows)}"
            for panel, group in zip(PANELS, found, strict=True)
            for name, rows in group.items()
        ],
        remarks=[
            f"dimension {DIM}; the paper says that its curves lie close to the formulas",
            f"circles: the paper's own algorithm with its {samples} samples at {len(sampled_at)} "
            f"p_A, {context.sizes['particles']} particles, {context.sizes['iterations']} "
            "iterations; an estimate that can lie above the true radius",
        ],
    )


def _paper(context: Context, panel: Panel, p_a: float) -> float:
    settings = MonteCarlo(
        samples=context.sizes["samples"],
        particles=context.sizes["particles"],
        iterations=context.sizes["iterations"],
        search_samples=context.sizes["search_samples"],
        seed=context.seed,
        estimator="quantile",
        confidence_method="none",
        progress=False,
    )
    law = parse(panel.noise)
    sampled = certified_radius(
        law, panel.norm, DIM, p_a=p_a, engine="montecarlo", montecarlo=settings
    )
    return sampled.searched


def _rows(found: list[dict[str, list[Row]]]) -> list[tuple[object, ...]]:
    return [
        (panel.noise, panel.norm.text, DIM, row.p_a, name, *values)
        for panel, group in zip(PANELS, found, strict=True)
        for name, rows in group.items()
        for row in rows
        for values in [(row.formula, row.proved, row.searched, row.verdict)]
    ]


def _verdicts(rows: list[Row]) -> str:
    """The verdicts met, each with its p_A, and the largest loss."""
    if all(row.verdict == "tight" for row in rows):
        return "tight at every p_A (within 0.1 %)"
    loss = max(1 - row.formula / row.searched for row in rows)
    words = dict.fromkeys(row.verdict for row in rows)
    return f"{', '.join(words)}; up to {loss:.1%} below the searched radius"


def _draw(
    axes: Axes,
    panel: Panel,
    group: dict[str, list[Row]],
    points: list[tuple[float, float, float]],
) -> None:
    rows = next(iter(group.values()))
    p = [row.p_a for row in rows]
    searched = [row.searched for row in rows]
    axes.plot(p, searched, color="C0", label="searched", linewidth=3, alpha=0.5)
    proved = [row.proved for row in rows]
    axes.fill_between(p, proved, searched, color="C0", alpha=0.2, label="proved to searched")
    for i, (name, own) in enumerate(group.items()):
        axes.plot(p, [row.formula for row in own], "--", color=f"C{3 - 2 * i}", label=name)
    at, radius = [point[0] for point in points], [point[1] for point in points]
    axes.plot(at, radius, "o", color="black", markersize=4, fillstyle="none", label="Monte Carlo")
    axes.set_title(f"{panel.title} against {label(panel.norm)}")
    axes.set_xlabel("$p_A$")
    axes.set_ylabel("radius")
    axes.set_xlim(0.5, 1.0)
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left")


P_A = (0.51, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.999)
SMALL = {"samples": 1000, "particles": 4, "iterations": 2, "search_samples": 256}
LARGE = {"samples": 1000, "particles": 24, "iterations": 20, "search_samples": None}
ITEM = Item(
    name="formulas",
    title="p_A–R comparison with the known formulas",
    source="Figure 4",
    run=run,
    sizes={
        "quick": {"p_a": (0.6, 0.9, 0.99), "monte_carlo_p_a": (0.9,), **SMALL},
        "default": {"p_a": P_A, "monte_carlo_p_a": (0.6, 0.9), **SMALL},
        "full": {"p_a": P_A, "monte_carlo_p_a": P_A[1:-1], **LARGE},
    },
)
