"""Radius against p for p in (0, 10] at p_A = 0.9, and what two single directions would say.

The paper reads "the same radius for every p ≤ 2" from a search that starts at one-hot directions.
One coordinate has the same ℓp norm for every p, so its line is flat by itself; the table puts the
all-equal direction, the search over directions and the theorems beside it.
"""

from __future__ import annotations

from typing import NamedTuple

from unicr.noise import parse
from unicr.norms import Norm, linf
from unicr.radius import certified_radius
from unicr.text import round_down
from unicr_paper._item import Axes, Context, Output, Table, item, panels
from unicr_paper._radii import DIM
from unicr_paper.items.noises import NOISES as EVERY

P_A = 0.9
FLAT = 0.005
NOISES = dict(list(EVERY.items())[:6])  # those with a σ


class Measured(NamedTuple):
    """One noise and one p: two directions by themselves, then the bracket."""

    noise: str
    p: float
    dim: int
    p_a: float
    one_hot: float
    all_equal: float
    searched: float
    proved: float
    direction: str


@item(
    "any-p",
    "radius against p, for p in (0, 10]",
    "Figure 12",
    {"p": (0.5, 2.0, 4.0)},
    {"p": (0.25, 0.5, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)},
    {"p": (0.1, *(0.25 * i for i in range(1, 41)))},
    order=11,
)
def run(context: Context) -> Output:
    rows = []
    for name, text in NOISES.items():
        context.log(name)
        law = parse(text)
        one_hot = certified_radius(law, 2, 1, p_a=P_A).searched
        largest = certified_radius(law, linf, DIM, p_a=P_A).searched
        for p in context.sizes["p"]:
            radius = certified_radius(law, Norm(p), DIM, p_a=P_A)
            direction = "" if radius.direction is None else radius.direction.text
            bracket = (radius.searched, radius.proved, direction)
            rows.append(Measured(text, p, DIM, P_A, one_hot, largest * DIM ** (1 / p), *bracket))

    def draw(axes: Axes, dim: int) -> None:
        for i, (name, text) in enumerate(NOISES.items()):
            drawn = [row for row in rows if row.noise == text]
            p, searched = [row.p for row in drawn], [row.searched for row in drawn]
            axes.plot(p, searched, "o-", color=f"C{i}", label=name, markersize=3)
            proved = [row.proved for row in drawn]
            axes.fill_between(p, proved, searched, color=f"C{i}", alpha=0.15, linewidth=0)
        axes.set_title(f"$p_A$ = {P_A}, dimension {dim} (band: from proved to searched)")

    figure = panels([DIM], draw, x="$p$", y="radius", size=(6.4, 4.2), yscale="log")
    return Output(
        tables={"radii": Table(Measured._fields, rows)},
        figures={"any-p": figure},
        comparison=[_flat(text, rows) for text in NOISES.values()],
        remarks=[
            f"dimension {DIM}; a norm for p ≥ 1, a quasi-norm below; the paper: about the same "
            "radius for all p in (0, 2], falling beyond 2",
        ],
    )


def _flat(text: str, rows: list[Measured]) -> str:
    """How far the searched radius falls between the smallest p and p = 2."""
    by_p = {row.p: row for row in rows if row.noise == text}
    first, at_two = by_p[min(by_p)], by_p[2.0]
    fall = 1 - at_two.searched / first.searched
    words = "flat on (0, 2], as the paper says" if fall < FLAT else f"falls by {fall:.1%} to p = 2"
    return (
        f"{text}: {words}; searched {round_down(at_two.searched, 4)} at p = 2, "
        f"one coordinate alone {round_down(at_two.one_hot, 4)}"
    )
