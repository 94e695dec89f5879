"""The gallery of β: three families of noise against three norms, all with σ = 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unicr.paper._item import Context, Figure, Item, Result, Table
from unicr.paper._lines import COLUMNS, DIM, FEW, NORMS, SOME, Line, draw_lines, label, line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAUSSIAN, LAPLACE = "gaussian(sigma=1)", "laplace(sigma=1)"
FAMILIES = {
    "General Normal": {
        0.5: "gennorm(beta=0.5, sigma=1)",
        1.0: LAPLACE,
        1.5: "gennorm(beta=1.5, sigma=1)",
        2.0: GAUSSIAN,
        3.0: "gennorm(beta=3, sigma=1)",
    },
    "Laplace–Gaussian mix": {
        0.0: GAUSSIAN,
        0.25: "lapgauss(beta=0.25, sigma=1)",
        0.5: "lapgauss(beta=0.5, sigma=1)",
        0.75: "lapgauss(beta=0.75, sigma=1)",
        1.0: LAPLACE,
    },
    "exponential mix": {
        0.0: GAUSSIAN,
        0.25: "expmix(beta=0.25, sigma=1)",
        0.5: "expmix(beta=0.5, sigma=1)",
        0.75: "expmix(beta=0.75, sigma=1)",
        1.0: LAPLACE,
    },
}
COMPARED = (0.6, 0.9, 0.99)


def run(context: Context) -> Result:
    known: dict[tuple[str, str], Line] = {}
    for family, members in FAMILIES.items():
        for norm in NORMS:
            context.log(f"{family} against {norm}")
            for text in members.values():
                key = (text, norm.text)
                known[key] = known.get(key) or line(text, norm, DIM, context.sizes)

    def draw(axes: list[Axes]) -> None:
        panels = [(family, norm) for family in FAMILIES for norm in NORMS]
        for one, (family, norm) in zip(axes, panels, strict=True):
            members = FAMILIES[family]
            lines = [known[text, norm.text] for text in members.values()]
            names = [f"β = {beta:g}" for beta in members]
            draw_lines(one, lines, names, f"{family} against {label(norm)}")

    rows = [
        (family, beta, *row)
        for family, members in FAMILIES.items()
        for beta, text in members.items()
        for norm in NORMS
        for row in known[text, norm.text].rows()
    ]
    proof = [] if context.sizes["proved"] else ["searched radii only; --full adds the proved ones"]
    return Result(
        tables={"radii": Table(("family", "beta", *COLUMNS), rows)},
        figures={"gallery": Figure(draw, rows=3, columns=3, width=13, height=11)},
        comparison=[_best(family, known) for family in FAMILIES],
        remarks=[
            f"dimension {DIM}; the paper does not print its β: these are ours; β = 0 and 1 of the "
            "mixes, 1 and 2 of General Normal are Gaussian and Laplace noise themselves",
            *proof,
        ],
    )


def _best(family: str, known: dict[tuple[str, str], Line]) -> str:
    """The β with the largest radius, per norm and p_A."""
    words = []
    for norm in NORMS:
        members = FAMILIES[family]
        best = [max(members, key=lambda b: known[members[b], norm.text].at(p)) for p in COMPARED]
        words.append(f"{norm} " + "/".join(f"{beta:g}" for beta in best))
    at = "/".join(str(p) for p in COMPARED)
    return f"{family}: best β at p_A = {at}: {', '.join(words)} (the paper: the Gaussian one)"


ITEM = Item(
    name="gallery",
    title="p_A–R curves of three families with a varying β",
    source="Figure 13",
    run=run,
    sizes={
        "quick": {"p_a": FEW, "proved": False},
        "default": {"p_a": SOME, "proved": False},
        "full": {"p_a": None, "proved": True},
    },
)
