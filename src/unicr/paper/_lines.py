"""p_A–R lines for the items that draw them: searched and proved radii of one noise and norm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unicr.noise import IID, parse
from unicr.norms import Norm, l1, l2, linf, parse_norm
from unicr.radius import RadiusCurve
from unicr.radius.internal import search, start_guess

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NORMS = (l1, l2, linf)
DIM = 3072
FEW = (0.6, 0.9, 0.99)
SOME = (0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
MANY = (0.505, *(round(0.51 + 0.01 * i, 2) for i in range(49)), 0.995, 0.999)
COLUMNS = ("noise", "norm", "dim", "p_a", "searched", "proved")


@dataclass(frozen=True)
class Line:
    """Radii at each p_A; `proved` is None where only the search was asked for."""

    noise: str
    norm: Norm
    dim: int
    p_a: Sequence[float]
    searched: Sequence[float]
    proved: Sequence[float] | None

    def rows(self) -> list[tuple[Any, ...]]:
        """The line as rows of a table with `COLUMNS`."""
        proved = [""] * len(self.p_a) if self.proved is None else self.proved
        start = (self.noise, self.norm.text, self.dim)
        return [(*start, *values) for values in zip(self.p_a, self.searched, proved, strict=True)]

    def at(self, p_a: float) -> float:
        """The searched radius at one of the p_A."""
        return self.searched[list(self.p_a).index(p_a)]


def line(noise: str, norm: Norm | str, dim: int, sizes: Mapping[str, Any]) -> Line:
    """One line: searched at the few p_A of `sizes["p_a"]`, or read from a curve where it is None.

    The curve stays on disk for the next reader; `sizes["proved"]` asks it for the theorems too.
    """
    norm, law = parse_norm(norm), parse(noise)
    if sizes["p_a"] is None:
        curve = RadiusCurve(law, norm, dim)
        proved = curve(MANY, sound=True).tolist() if sizes["proved"] else None
        return Line(noise, norm, dim, MANY, curve(MANY).tolist(), proved)
    assert isinstance(law, IID)
    found = [_searched(law, norm, dim, p) for p in sizes["p_a"]]
    return Line(noise, norm, dim, sizes["p_a"], found, None)


def _searched(noise: IID, norm: Norm, dim: int, p_a: float) -> float:
    guess = noise.scale * start_guess(p_a, 1 - p_a)
    return search(noise, norm, dim, p_a, 1 - p_a, guess)[0]


def label(norm: Norm) -> str:
    """The norm as the figures write it."""
    return r"$\ell_\infty$" if math.isinf(norm.p) else rf"$\ell_{{{norm.text}}}$"


def draw_lines(axes: Axes, lines: Sequence[Line], names: Sequence[str], title: str) -> None:
    """Searched radii as lines; where theorems were asked, a band from the proved ones."""
    style = "-" if len(lines[0].p_a) == len(MANY) else "o-"
    for i, (one, name) in enumerate(zip(lines, names, strict=True)):
        factor = 255.0 if math.isinf(one.norm.p) else 1.0
        searched = [factor * r for r in one.searched]
        axes.plot(one.p_a, searched, style, color=f"C{i}", label=name, linewidth=1.2, markersize=3)
        if one.proved is not None:
            proved = [factor * r for r in one.proved]
            axes.fill_between(one.p_a, proved, searched, color=f"C{i}", alpha=0.15, linewidth=0)
    axes.set_title(title)
    axes.set_xlabel("$p_A$")
    axes.set_ylabel("radius × 255" if math.isinf(lines[0].norm.p) else "radius")
    axes.set_xlim(0.5, 1.0)
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left")
