"""p_A–R comparison with the known formulas: the paper's six pairs of noise and norm.

Each formula stands beside the bracket of this package and beside the paper's own algorithm (Monte
Carlo with its 1,000 samples and a swarm over directions, the pair of empirical CDFs).
"""

from __future__ import annotations

from dataclasses import dataclass

from unicr.noise import parse
from unicr.norms import Norm, l1, l2, linf
from unicr.tightness import FORMULAS, Judgement, validate
from unicr_paper._item import Axes, Context, Output, Table, item, panels
from unicr_paper._radii import DIM, LARGE, SMALL, label, sample_radius


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


@dataclass(frozen=True)
class Compared:
    """One panel's rows by formula, and (p_A, radius, searched) of the paper's own algorithm."""

    panel: Panel
    rows: dict[str, list[Judgement]]
    sampled: list[tuple[float, float, float]]


P_A = (0.51, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.999)


@item(
    "formulas",
    "p_A–R comparison with the known formulas",
    "Figure 4",
    {"p_a": (0.6, 0.9, 0.99), "monte_carlo_p_a": (0.9,), **SMALL},
    {"p_a": P_A, "monte_carlo_p_a": (0.6, 0.9), **SMALL},
    {"p_a": P_A, "monte_carlo_p_a": P_A[1:-1], **LARGE},
    order=1,
)
def run(context: Context) -> Output:
    sizes = context.sizes
    compared = []
    for panel in PANELS:
        context.log(f"{panel.noise} against {panel.norm}")
        law, p_a = parse(panel.noise), sizes["p_a"]
        rows = {n: validate(FORMULAS[n], law, panel.norm, DIM, p_a) for n in panel.formulas}
        searched = {row.p_a: row.searched for row in rows[panel.formulas[0]]}
        points = [
            (p, sample_radius(panel.noise, panel.norm, DIM, p, sizes, context.seed), searched[p])
            for p in sizes["monte_carlo_p_a"]
        ]
        compared.append(Compared(panel, rows, points))
    formulas = [
        (*_key(result), row.p_a, name, row.formula, row.proved, row.searched, row.verdict)
        for result in compared
        for name, rows in result.rows.items()
        for row in rows
    ]
    estimates = [
        (*_key(result), p, sizes["samples"], radius, ours, radius / ours)
        for result in compared
        for p, radius, ours in result.sampled
    ]
    limits = {"xlim": (0.5, 1.0), "ylim": (0, None)}
    figure = panels(compared, _draw, x="$p_A$", y="radius", rows=2, size=(4.3, 3.75), **limits)
    return Output(
        tables={
            "formulas": Table(COLUMNS, formulas),
            "monte-carlo": Table(SAMPLED, estimates),
        },
        figures={"formulas": figure},
        comparison=[
            f"{result.panel.noise} against {result.panel.norm}, {name}: {_verdicts(rows)}"
            for result in compared
            for name, rows in result.rows.items()
        ],
        remarks=[
            f"dimension {DIM}; the paper says that its curves lie close to the formulas",
            f"circles: the paper's own algorithm with its {sizes['samples']} samples at "
            f"{len(sizes['monte_carlo_p_a'])} p_A, {sizes['particles']} particles, "
            f"{sizes['iterations']} iterations; an estimate that can lie above the true radius",
        ],
    )


def _key(result: Compared) -> tuple[str, str, int]:
    return result.panel.noise, result.panel.norm.text, DIM


def _verdicts(rows: list[Judgement]) -> str:
    """The verdicts met, each with its p_A, and the largest loss."""
    if all(row.verdict == "tight" for row in rows):
        return "tight at every p_A (within 0.1 %)"
    loss = max(1 - row.formula / row.searched for row in rows)
    words = dict.fromkeys(row.verdict for row in rows)
    return f"{', '.join(words)}; up to {loss:.1%} below the searched radius"


def _draw(axes: Axes, result: Compared) -> None:
    rows = result.rows[result.panel.formulas[0]]
    p, searched = [row.p_a for row in rows], [row.searched for row in rows]
    axes.plot(p, searched, color="C0", label="searched", linewidth=3, alpha=0.5)
    proved = [row.proved for row in rows]
    axes.fill_between(p, proved, searched, color="C0", alpha=0.2, label="proved to searched")
    for i, (name, judged) in enumerate(result.rows.items()):
        axes.plot(p, [row.formula for row in judged], "--", color=f"C{3 - 2 * i}", label=name)
    at, radius = [point[0] for point in result.sampled], [point[1] for point in result.sampled]
    axes.plot(at, radius, "o", color="black", markersize=4, fillstyle="none", label="Monte Carlo")
    axes.set_title(f"{result.panel.title} against {label(result.panel.norm)}")
