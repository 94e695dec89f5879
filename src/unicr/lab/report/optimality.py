"""Optimality for people: what a run's p_A say about other noises, as tables and as a gallery."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unicr.lab.optimality import Comparison, Standing
from unicr.lab.report.curves import draw_curves
from unicr.lab.report.plots import figure
from unicr.lab.report.tables import Form, as_csv, as_json, format_table, title
from unicr.noise import Noise
from unicr.norms import Norm
from unicr.progress import tell
from unicr.radius import RadiusCurve
from unicr.text import round_down

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIGITS = 6
LONG = 16  # characters of a label, from which on the legend stands below the panels
KEY = (
    "Radii: proved – searched, one number where they meet; # is the rank by proved radius. "
    "Binary case, p_B = 1 - p_A."
)
NOTE = (
    "p_A is held fixed here. With p_A fixed and in high dimension, Gaussian noise maximises the "
    "linf radius along dense directions at given sigma (R is close to Phi^-1(p_A) / sqrt(d I), and "
    "the Fisher information I is least for Gaussian noise): a gain of another shape there must "
    "come through a larger p_A, which this comparison does not see; certify with that noise to "
    "see it."
)


@dataclass(frozen=True)
class Group:
    """Noises that are drawn into one row of the gallery: a family over β, or a user's own list."""

    name: str
    noises: tuple[Noise, ...]

    @property
    def labels(self) -> list[str]:
        """β where that tells the noises apart, else their texts."""
        betas = [noise.numbers.get("beta") for noise in self.noises]
        if None in betas or len({noise.family for noise in self.noises}) > 1:
            return [noise.text for noise in self.noises]
        return [f"β = {beta:g}" for beta in betas]


def optimality_table(
    comparisons: Sequence[Comparison], sigma: float, form: Form, *, per_input: bool = False
) -> str:
    """Every comparison: per norm one table, one record for each noise in CSV.

    `per_input` says that every input was taken at a σ of its own, not at the one in the noises.
    """
    if form == "json":
        values = {"sigma": sigma, "sigma_per_input": per_input, "note": NOTE}
        return as_json({**values, "comparisons": [_json(c) for c in comparisons]})
    if form == "csv":
        return as_csv(
            [
                {
                    "norm": c.norm.text,
                    "dim": c.dim,
                    "sigma": "per input" if per_input else sigma,
                    "p_a": "average" if c.p_a is None else c.p_a,
                    "inputs": c.inputs,
                    **_record(standing),
                    "verdict": c.verdict,
                }
                for c in comparisons
                for standing in c.standings
            ]
        )
    words = f"sigma {sigma:g}" + (", rescaled to each input's own sigma" if per_input else "")
    blocks = []
    for norm in dict.fromkeys(c.norm for c in comparisons):
        columns = [c for c in comparisons if c.norm == norm]
        heads = [_head(c) for c in columns]
        rows = [
            [standing.noise, *(_cell(c.standings[i]) for c in columns)]
            for i, standing in enumerate(columns[0].standings)
        ]
        verdicts = [f"- {head}: {c.text}" for head, c in zip(heads, columns, strict=True)]
        above = title(f"{norm}, dimension {columns[0].dim}, {words}", form)
        table = format_table(["noise", *heads], rows, form)
        blocks.append("\n".join([above, "", table, "", *verdicts]))
    return "\n\n".join([*blocks, KEY, NOTE])


def _json(comparison: Comparison) -> dict[str, Any]:
    return {
        "norm": comparison.norm.text,
        "dim": comparison.dim,
        "p_a": comparison.p_a,
        "inputs": comparison.inputs,
        "verdict": comparison.verdict,
        "text": comparison.text,
        "possible": list(comparison.possible),
        "noises": [_record(standing) for standing in comparison.standings],
    }


def _record(standing: Standing) -> dict[str, Any]:
    """JSON knows no infinity."""
    return {k: "inf" if v == math.inf else v for k, v in asdict(standing).items()}


def _head(comparison: Comparison) -> str:
    if comparison.p_a is None:
        return f"average over {comparison.inputs} inputs"
    return f"p_A = {comparison.p_a:g}"


def _cell(standing: Standing) -> str:
    proved, searched = (round_down(v, DIGITS) for v in (standing.proved, standing.searched))
    radii = searched if proved == searched else f"{proved} – {searched}"
    return f"{radii} #{standing.rank_proved}"


def draw_gallery(
    groups: Sequence[Group],
    norms: Sequence[Norm],
    dim: int | None,
    path: Path,
) -> None:
    """Radius against p_A: a row of panels for each group, a column for each norm.

    Lines are proved radii, bands reach up to the searched ones.
    """
    width, height = 1.6 + 3.4 * len(norms), 0.4 + 2.8 * len(groups)
    with figure(path, width=width, height=height) as single:
        canvas = single.get_figure(root=True)
        assert canvas is not None
        single.remove()
        rows = canvas.subfigures(len(groups), 1, squeeze=False)[:, 0]
        for i, (row, group) in enumerate(zip(rows, groups, strict=True)):
            panels = row.subplots(1, len(norms), squeeze=False)[0]
            for j, (axes, norm) in enumerate(zip(panels, norms, strict=True)):
                done, panels_in_all = i * len(norms) + j, len(groups) * len(norms)
                tell("drawing", done, panels_in_all, f"{group.name}, {norm}")
                _panel(axes, group, norm, dim)
            lines, labels = panels[0].get_legend_handles_labels()
            place = "right center" if max(map(len, labels)) < LONG else "lower center"
            row.legend(lines, labels, loc=f"outside {place}", fontsize=8)
        tell("drawing", len(groups) * len(norms), len(groups) * len(norms))


def _panel(axes: Axes, group: Group, norm: Norm, dim: int | None) -> None:
    from matplotlib import colormaps

    shades = colormaps["viridis"](np.linspace(0.0, 0.9, len(group.noises)))
    curves = [RadiusCurve(noise, norm, dim) for noise in group.noises]
    draw_curves(axes, curves, group.labels, list(shades))
    axes.set_title(f"{group.name}, {norm}", fontsize=10)
    axes.grid(True, alpha=0.3)
