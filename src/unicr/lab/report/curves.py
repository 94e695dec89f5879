"""p_A–R curves as a picture, a table or a page, and the picture of a tightness validation."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unicr.errors import UnicrError, listed
from unicr.extras import require
from unicr.lab.report.plots import FORMATS, figure
from unicr.radius import RadiusCurve
from unicr.tightness import Judgement
from unicr.values import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def probabilities() -> Array:
    """p_A from 1/2 to 0.999, closer where curves are steep."""
    return np.unique(np.concatenate([np.linspace(0.5, 0.98, 97), 1 - np.geomspace(0.02, 1e-3, 41)]))


def write_curves(curves: Sequence[RadiusCurve], path: Path) -> None:
    """Write the curves to `path`, in the format that its ending names."""
    ending = path.suffix.lower()
    writers = {".csv": _write_csv, ".html": _write_html, **dict.fromkeys(FORMATS, _draw)}
    if ending not in writers:
        raise UnicrError(f"cannot write {path.name}: endings are: {listed(writers)}")
    if not path.absolute().parent.is_dir():
        raise UnicrError(f"cannot write {path}: the folder {path.parent} does not exist")
    writers[ending](curves, path)


def _title(curves: Sequence[RadiusCurve]) -> str:
    return f"{curves[0].norm}, dimension {curves[0].dim}"


def draw_curves(
    axes: Axes,
    curves: Sequence[RadiusCurve],
    labels: Sequence[str] | None = None,
    colours: Sequence[Any] | None = None,
) -> None:
    """Proved radii as lines against p_A, with a band up to the searched ones."""
    p = probabilities()
    for i, curve in enumerate(curves):
        colour = f"C{i}" if colours is None else colours[i]
        label = repr(curve.noise) if labels is None else labels[i]
        searched, proved = curve(p, searched=True), curve(p)
        axes.plot(p, proved, color=colour, label=label)
        axes.fill_between(p, proved, searched, color=colour, alpha=0.2, linewidth=0)
    axes.set(xlabel="$p_A$", ylabel=f"{curves[0].norm} radius, proved", xlim=(0.5, 1.0))
    axes.set_ylim(bottom=0)
    if labels is None:
        axes.legend(loc="upper left")  # where a curve never is


def _draw(curves: Sequence[RadiusCurve], path: Path) -> None:
    with figure(path) as axes:
        draw_curves(axes, curves)
        grades = " / ".join(dict.fromkeys(str(curve.grade or "nothing") for curve in curves))
        axes.set_title(f"{_title(curves)} (band: up to the searched radius)\nproved by: {grades}")


def _write_csv(curves: Sequence[RadiusCurve], path: Path) -> None:
    p = probabilities()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["noise", "norm", "dim", "p_a", "proved", "searched", "grade"])
        for curve in curves:
            rows = zip(p, curve(p), curve(p, searched=True), strict=True)
            for one, proved, searched in rows:
                values = (repr(float(v)) for v in (one, proved, searched))
                grade = curve.grade if proved > 0 else ""
                writer.writerow([curve.noise.text, curve.norm.text, curve.dim, *values, grade])


def _write_html(curves: Sequence[RadiusCurve], path: Path) -> None:
    graph = require("plotly.graph_objects", "report")
    p = probabilities()
    chart = graph.Figure()
    for curve in curves:
        chart.add_scatter(x=p, y=curve(p), name=f"{curve.noise!r}, {curve.grade or 'not proved'}")
        above = {"y": curve(p, searched=True), "name": f"{curve.noise!r} searched"}
        chart.add_scatter(x=p, line={"dash": "dot"}, **above)
    chart.update_layout(title=_title(curves), xaxis_title="p_A", yaxis_title="certified radius")
    path.write_text(chart.to_html(include_plotlyjs=True), encoding="utf-8")


def draw_tightness(rows: Sequence[Judgement], name: str, title: str, path: Path) -> None:
    """The formula as a dashed line over the band between proved and searched."""
    p = [row.p_a for row in rows]
    with figure(path) as axes:
        proved, searched = [row.proved for row in rows], [row.searched for row in rows]
        axes.fill_between(p, proved, searched, color="C0", alpha=0.25, label="proved to searched")
        axes.plot(p, proved, color="C0")
        axes.plot(p, [row.formula for row in rows], "--o", color="C3", label=name)
        axes.set_xlabel("$p_A$")
        axes.set_ylabel("certified radius")
        axes.set_title(title)
        axes.legend()
