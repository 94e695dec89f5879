"""Radii for the items that draw them against p_A: searched, proved, or by the paper's algorithm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from unicr.noise import parse
from unicr.norms import Norm, l1, l2, linf, parse_norm
from unicr.radius import Evidence, MonteCarlo, Question, RadiusCurve, certified_radius
from unicr.radius.internal import find_exact_bound, search_direction
from unicr_paper._item import Axes, Context, Figure

NORMS = (l1, l2, linf)
DIM = 3072
FEW = (0.6, 0.9, 0.99)
SOME = (0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
MANY = (0.505, *(round(0.51 + 0.01 * i, 2) for i in range(49)), 0.995, 0.999)
COLUMNS = ("noise", "norm", "dim", "p_a", "searched", "proved")
CURVES = tuple({"p_a": p_a, "proved": p_a is None} for p_a in (FEW, SOME, None))
# the paper's algorithm with a small and with a usual swarm
SMALL = {"samples": 1000, "particles": 4, "iterations": 2, "search_samples": 256}
LARGE = {"samples": 1000, "particles": 24, "iterations": 20, "search_samples": None}


@dataclass(frozen=True)
class Line:
    """Radii at each p_A; `proved` is None where only the search was asked for."""

    noise: str
    norm: Norm
    p_a: Sequence[float]
    searched: Sequence[float]
    proved: Sequence[float] | None

    def rows(self) -> list[tuple[Any, ...]]:
        """The line as rows of a table with `COLUMNS`."""
        proved = [""] * len(self.p_a) if self.proved is None else self.proved
        start = (self.noise, self.norm.text, DIM)
        return [(*start, *values) for values in zip(self.p_a, self.searched, proved, strict=True)]

    def drawn(self) -> tuple[Sequence[float], Sequence[float]]:
        """The points to draw: closely spaced where a closed form gives them for nothing."""
        law = parse(self.noise)
        bound = find_exact_bound(Question(law, self.norm, DIM))
        if bound is None or bound.closed_form is None:
            return self.p_a, self.searched
        return MANY, RadiusCurve(law, self.norm, DIM)(MANY).tolist()

    def at(self, p_a: float) -> float:
        """The searched radius at one of the p_A."""
        return self.searched[list(self.p_a).index(p_a)]


def line(noise: str, norm: Norm | str, sizes: Mapping[str, Any]) -> Line:
    """One line: searched at the few p_A of `sizes["p_a"]`, or read from a curve where it is None.

    The curve stays on disk for the next reader; `sizes["proved"]` asks it for the theorems too.
    """
    norm, law = parse_norm(norm), parse(noise)
    if sizes["p_a"] is None:
        curve = RadiusCurve(law, norm, DIM)
        proved = curve(MANY).tolist() if sizes["proved"] else None
        return Line(noise, norm, MANY, curve(MANY, searched=True).tolist(), proved)
    question = Question(law, norm, DIM)
    radii = [search_direction(question, Evidence(p))[0] for p in sizes["p_a"]]
    return Line(noise, norm, sizes["p_a"], radii, None)


def sample_radius(
    noise: str, norm: Norm | str, dim: int, p_a: float, sizes: Mapping[str, Any], seed: int
) -> float:
    """The radius of the paper's own algorithm, which can lie above the true one."""
    settings = MonteCarlo(
        **{key: sizes[key] for key in SMALL},
        seed=seed,
        estimator="quantile",
        confidence_method="none",
    )
    law = parse(noise)
    radius = certified_radius(law, norm, dim, p_a=p_a, engine="montecarlo", montecarlo=settings)
    return radius.searched


def label(norm: Norm) -> str:
    """The norm as the figures write it."""
    return r"$\ell_\infty$" if math.isinf(norm.p) else rf"$\ell_{{{norm.text}}}$"


Known = dict[tuple[str, str], Line]


def curves(
    context: Context, groups: Mapping[str, Mapping[str, str]], name: str = "{}"
) -> tuple[Known, Figure]:
    """The lines of every noise (by its text and the norm), and a panel for each group and norm.

    A group gives noises by what stands for them in the legend, where `name` is put around it.
    """
    known: Known = {}
    parts = list(product(groups.items(), NORMS))
    for (title, members), norm in parts:
        context.log(f"{title} against {norm}")
        for text in members.values():
            if (text, norm.text) not in known:
                known[text, norm.text] = line(text, norm, context.sizes)

    def draw(axes: list[Axes]) -> None:
        for panel, ((title, members), norm) in zip(axes, parts, strict=True):
            lines = [known[text, norm.text] for text in members.values()]
            _draw(panel, lines, [name.format(word) for word in members])
            panel.set_title(f"{title} against {label(norm)}")

    return known, Figure(draw, len(groups), len(NORMS), width=14, height=1 + 3.6 * len(groups))


def _draw(axes: Axes, lines: Sequence[Line], names: Sequence[str]) -> None:
    """Searched radii as lines; where theorems were asked, a band from the proved ones."""
    factor = 255.0 if math.isinf(lines[0].norm.p) else 1.0
    for i, (line, name) in enumerate(zip(lines, names, strict=True)):
        p_a, radii = line.drawn()
        style = "-" if len(p_a) == len(MANY) else "o-"
        searched = [factor * r for r in radii]
        axes.plot(p_a, searched, style, color=f"C{i}", label=name, linewidth=1.2, markersize=3)
        if line.proved is not None:
            proved = [factor * r for r in line.proved]
            axes.fill_between(line.p_a, proved, searched, color=f"C{i}", alpha=0.15, linewidth=0)
    axes.set(xlabel="$p_A$", xlim=(0.5, 1.0), ylim=(0, None))
    axes.set_ylabel("radius × 255" if factor > 1 else "radius")
    axes.legend(loc="upper left")
