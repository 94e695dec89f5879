"""Figures: one small layer over matplotlib, which is imported only when a figure is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from unicr.errors import UnicrError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".png", ".svg", ".pdf")


@contextmanager
def figure(path: Path, *, width: float = 6.4, height: float = 4.2) -> Iterator[Axes]:
    """Axes that are saved to `path` at the end of the block."""
    if path.suffix.lower() not in FORMATS:
        raise UnicrError(f"cannot draw to {path.name}: the ending must be one of {FORMATS}")
    if not path.absolute().parent.is_dir():
        raise UnicrError(f"cannot write {path}: the folder {path.parent} does not exist")
    import matplotlib

    with matplotlib.rc_context({"backend": "Agg", "svg.hashsalt": "unicr"}):
        from matplotlib.figure import Figure

        canvas = Figure(figsize=(width, height), layout="constrained")
        axes = canvas.subplots()
        axes.grid(True, alpha=0.3)
        yield axes
        canvas.savefig(path, dpi=150)
