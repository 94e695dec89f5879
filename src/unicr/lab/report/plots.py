"""Figures: one small layer over matplotlib, which is imported only when a figure is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from unicr.errors import UnicrError, listed
from unicr.extras import require
from unicr.lab.report.colours import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".png", ".svg", ".pdf")


@contextmanager
def figures(
    path: Path,
    rows: int = 1,
    columns: int = 1,
    *,
    width: float = 6.4,
    height: float = 4.2,
    also: Sequence[Path] = (),
) -> Iterator[Sequence[Axes]]:
    """rows × columns axes in reading order, saved to `path` (and `also`) after the block."""
    if path.suffix.lower() not in FORMATS:
        raise UnicrError(f"cannot draw to {path.name}: its ending must be one of {listed(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise UnicrError(f"cannot write {path}: the folder {path.parent} does not exist")
    matplotlib = require("matplotlib", "plots")

    style = {"backend": "Agg", "svg.hashsalt": "unicr", "legend.fontsize": 8}
    with matplotlib.rc_context({**style, "axes.prop_cycle": matplotlib.cycler(color=PALETTE)}):
        from matplotlib.figure import Figure

        canvas = Figure(figsize=(width, height), layout="constrained")
        axes = list(canvas.subplots(rows, columns, squeeze=False).ravel())
        for axis in axes:
            axis.grid(True, alpha=0.3)
        yield axes
        for one_path in (path, *also):
            undated = {"Date": None} if one_path.suffix == ".svg" else None
            canvas.savefig(one_path, dpi=150, metadata=undated)


@contextmanager
def figure(path: Path, *, width: float = 6.4, height: float = 4.2) -> Iterator[Axes]:
    """One picture."""
    with figures(path, width=width, height=height) as (axes,):
        yield axes
