"""Scores of runs as a file: the picture of certified accuracy, or a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unicr.errors import UnicrError
from unicr.lab.report.colours import PALETTE, assign_colours
from unicr.lab.report.plots import figures
from unicr.lab.report.tables import Form, score_table
from unicr.metrics import Scores, accuracy_curve, envelope

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def write_scores(
    groups: dict[str, list[Scores]], radii: Sequence[float] | None, path: Path
) -> None:
    """Certified accuracy as a picture, or the scores as a table, by the ending of the file."""
    forms: dict[str, Form] = {".csv": "csv", ".tex": "latex"}
    ending = path.suffix.lower()
    if ending not in forms:
        draw_accuracy(groups, path)
        return
    if not path.absolute().parent.is_dir():
        raise UnicrError(f"cannot write {path}: the folder {path.parent} does not exist")
    path.write_text(score_table(groups, radii, forms[ending], verbose=True) + "\n")


def draw_accuracy(groups: dict[str, list[Scores]], path: Path) -> None:
    """Certified accuracy against the radius, a panel for each norm."""
    with figures(path, 1, len(groups), width=0.4 + 6 * len(groups)) as axes:
        for panel, runs in zip(axes, groups.values(), strict=True):
            draw_steps(panel, runs)


def draw_steps(axes: Axes, runs: Sequence[Scores], *, best: bool = True) -> None:
    """The steps of every run, and (`best`) the envelope that the robustness score integrates."""
    top = max(float(run.steps()[-1]) if run.steps().size else 0.0 for run in runs) or 1.0
    radii = np.linspace(0, 1.02 * top if math.isfinite(top) else 1.0, 800)
    names = [run.name for run in runs]
    for run, colour in zip(runs, assign_colours(names), strict=True):
        axes.step(radii, accuracy_curve(run, radii), label=run.name, color=PALETTE[colour])
    if best and len(runs) > 1:
        area = envelope(runs, radii)
        axes.fill_between(radii, area, step="pre", color="0.5", alpha=0.15, label="best of them")
    share = "certified accuracy" if all(run.labelled for run in runs) else "share certified"
    axes.set(xlabel=f"l{runs[0].norm} radius", ylabel=share, ylim=(0, 1.02))
    axes.set_xlim(left=0)
    axes.legend()
