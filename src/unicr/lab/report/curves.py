"""p_A–R curves as a picture, a table or a page, and the picture of a tightness validation."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unicr.errors import UnicrError, listed
from unicr.extras import require
from unicr.lab.report.colours import PALETTE, assign_colours
from unicr.lab.report.plots import FORMATS, figure, figures
from unicr.lab.report.points import TABLE, Curve, RadiusPoints, label_curves
from unicr.tables import to_latex
from unicr.text import round_down
from unicr.tightness import Judgement
from unicr.values import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ["noise", "norm", "dim", "p_a", "proved", "searched", "confident", "confidence", "grade"]


def probabilities() -> Array:
    """p_A from 1/2 to 0.999, closer where curves are steep."""
    return np.unique(np.concatenate([np.linspace(0.5, 0.98, 97), 1 - np.geomspace(0.02, 1e-3, 41)]))


def write_curves(curves: Sequence[Curve], path: Path) -> None:
    """Write the curves to `path`, in the format that its ending names."""
    ending = path.suffix.lower()
    writers = {
        ".csv": _write_csv,
        ".tex": _write_latex,
        ".html": _write_html,
        **dict.fromkeys(FORMATS, _draw),
    }
    if ending not in writers:
        raise UnicrError(f"cannot write {path.name}: its ending must be one of {listed(writers)}")
    if not path.absolute().parent.is_dir():
        raise UnicrError(f"cannot write {path}: the folder {path.parent} does not exist")
    writers[ending](curves, path)


def _by_norm(curves: Sequence[Curve]) -> list[list[Curve]]:
    """The curves of each norm, in the order in which norms first come."""
    norms = dict.fromkeys(curve.norm for curve in curves)
    return [[curve for curve in curves if curve.norm == norm] for norm in norms]


def _title(curves: Sequence[Curve]) -> str:
    return f"{curves[0].norm}, dimension {curves[0].dim}"


def draw_curves(
    axes: Axes,
    curves: Sequence[Curve],
    labels: Sequence[str] | None = None,
    colours: Sequence[Any] | None = None,
) -> None:
    """Proved radii as lines against p_A, with a band up to the searched ones.

    A noise without a curve has points: what its search found, and below it what holds along the
    direction found, with the confidence in the legend. No line joins them: a chord of a convex
    curve lies above it.
    """
    names = label_curves(curves) if labels is None else labels
    if colours is None:
        colours = [PALETTE[place] for place in assign_colours(names)]
    for curve, name, colour in zip(curves, names, colours, strict=True):
        if isinstance(curve, RadiusPoints):
            _draw_points(axes, curve, name, colour)
            continue
        p = probabilities()
        searched, proved = curve(p, searched=True), curve(p)
        axes.plot(p, proved, color=colour, label=name)
        axes.fill_between(p, proved, searched, color=colour, alpha=0.2, linewidth=0)
    kind = "radius, proved" if any(curve.grade for curve in curves) else "radius"
    axes.set(xlabel="$p_A$", ylabel=f"{curves[0].norm} {kind}", xlim=(0.5, 1.0))
    axes.set_ylim(bottom=0)
    if labels is None:
        axes.legend(loc="upper left")  # where a curve never is


def _draw_points(axes: Axes, points: RadiusPoints, name: str, colour: Any) -> None:
    if points.grade is not None:
        axes.plot(points.p, points.proved, "s", color=colour, label=name)
    axes.plot(points.p, points.searched, "o", color=colour, label=f"{name}, searched")
    if points.confident is not None:
        words = f"{name}, along the direction found, {points.confidence:.1%} confidence"
        axes.plot(points.p, points.confident, "^", color=colour, label=words)


def _draw(curves: Sequence[Curve], path: Path) -> None:
    groups = _by_norm(curves)
    with figures(path, 1, len(groups), width=0.4 + 6 * len(groups)) as panels:
        for axes, group in zip(panels, groups, strict=True):
            draw_curves(axes, group)
            grades = " / ".join(dict.fromkeys(str(curve.grade or "nothing") for curve in group))
            band = " (band: up to the searched radius)" if any(c.grade for c in group) else ""
            axes.set_title(f"{_title(group)}{band}\nproved: {grades}", fontsize=9)


def _write_latex(curves: Sequence[Curve], path: Path) -> None:
    """Radii at a few p_A: proved ones, and what a search found where nothing is proved."""
    rows: list[dict[str, Any]] = []
    for curve in curves:
        for kind, radii in _kinds(curve):
            cells = {
                f"p_A = {p:g}": round_down(float(r)) for p, r in zip(TABLE, radii, strict=True)
            }
            about = {"noise": curve.noise.text, "norm": curve.norm.text, "dim": curve.dim}
            rows.append({**about, **cells, "proved by": kind})
    path.write_text(to_latex(rows))


def _kinds(curve: Curve) -> list[tuple[str, Array]]:
    """The radii of a curve at the p_A of the table, each kind with what it is called."""
    if not isinstance(curve, RadiusPoints):
        return [(str(curve.grade or "nothing"), curve(np.array(TABLE)))]
    kinds = [("nothing: searched", curve.searched)]
    if curve.grade is not None:
        kinds = [(str(curve.grade), curve.proved)]
    if curve.confident is not None:
        sure = f"nothing: {curve.confidence:.1%} confidence along the direction found"
        kinds.append((sure, curve.confident))
    return kinds


def _write_csv(curves: Sequence[Curve], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for curve in curves:
            confident: Array | None = None
            if isinstance(curve, RadiusPoints):
                p, proved, searched = curve.p, curve.proved, curve.searched
                confident = curve.confident
            else:
                p = probabilities()
                proved, searched = curve(p), curve(p, searched=True)
            for i, level in enumerate(p):
                values = [repr(float(v)) for v in (level, proved[i], searched[i])]
                sure = ["", ""]
                if isinstance(curve, RadiusPoints) and confident is not None:
                    sure = [repr(float(confident[i])), repr(curve.confidence)]
                grade = curve.grade if proved[i] > 0 else ""
                about = [curve.noise.text, curve.norm.text, curve.dim]
                writer.writerow([*about, *values, *sure, grade])


def _write_html(curves: Sequence[Curve], path: Path) -> None:
    graph = require("plotly.graph_objects", "report")
    chart = graph.Figure()
    names = label_curves(curves)
    places = dict(zip(unique := list(dict.fromkeys(names)), assign_colours(unique), strict=True))
    for curve, label in zip(curves, names, strict=True):
        name, line = f"{label}, {curve.norm}", {"color": PALETTE[places[label]]}
        for kind, p, radii, dash in _lines(curve):
            style: dict[str, Any] = {"line": {**line, "dash": dash}}
            if dash is None:
                style = {"mode": "markers", "marker": line}
            chart.add_scatter(x=p, y=radii, name=f"{name}, {kind}", **style)
    title = "; ".join(map(_title, _by_norm(curves)))
    chart.update_layout(title=title, xaxis_title="p_A", yaxis_title="certified radius")
    path.write_text(chart.to_html(include_plotlyjs=True), encoding="utf-8")


def _lines(curve: Curve) -> list[tuple[str, Array, Array, str | None]]:
    """What a page draws of a curve: kind, p_A, radii, and the dashes, or None for points."""
    if isinstance(curve, RadiusPoints):
        lines: list[tuple[str, Array, Array, str | None]] = []
        lines.append(("searched", curve.p, curve.searched, None))
        if curve.grade is not None:
            lines.insert(0, (str(curve.grade), curve.p, curve.proved, None))
        if curve.confident is not None:
            sure = f"along the direction found, {curve.confidence:.1%} confidence"
            lines.append((sure, curve.p, curve.confident, None))
        return lines
    p = probabilities()
    proved = (str(curve.grade or "not proved"), p, curve(p), "solid")
    return [proved, ("searched", p, curve(p, searched=True), "dot")]


def draw_tightness(rows: Sequence[Judgement], name: str, title: str, path: Path) -> None:
    """The formula as a dashed line over the band between proved and searched."""
    p = [row.p_a for row in rows]
    with figure(path) as axes:
        proved, searched = [row.proved for row in rows], [row.searched for row in rows]
        axes.fill_between(
            p, proved, searched, color=PALETTE[0], alpha=0.25, label="proved to searched"
        )
        axes.plot(p, proved, color=PALETTE[0])
        axes.plot(p, [row.formula for row in rows], "--o", color=PALETTE[1], label=name)
        axes.set_xlabel("$p_A$")
        axes.set_ylabel("certified radius")
        axes.set_title(title)
        axes.legend()
