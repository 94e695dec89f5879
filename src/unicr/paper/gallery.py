"""The gallery of β: three families of noise against three norms, all with σ = 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unicr.paper._item import Axes, Context, Figure, Item, Output, Table
from unicr.paper._radii import COLUMNS, CURVES, DIM, NORMS, Line, draw_lines, label, line

GAUSSIAN, LAPLACE = "gaussian(sigma=1)", "laplace(sigma=1)"


def _members(family: str, betas: Sequence[float], ends: Mapping[float, str]) -> dict[float, str]:
    return {beta: ends.get(beta, f"{family}(beta={beta:g}, sigma=1)") for beta in betas}


MIX, MIX_ENDS = (0.0, 0.25, 0.5, 0.75, 1.0), {0.0: GAUSSIAN, 1.0: LAPLACE}
FAMILIES = {
    "General Normal": _members("gennorm", (0.5, 1.0, 1.5, 2.0, 3.0), {1.0: LAPLACE, 2.0: GAUSSIAN}),
    "Laplace–Gaussian mix": _members("lapgauss", MIX, MIX_ENDS),
    "exponential mix": _members("expmix", MIX, MIX_ENDS),
}
COMPARED = (0.6, 0.9, 0.99)


def run(context: Context) -> Output:
    known: dict[tuple[str, str], Line] = {}
    for family, members in FAMILIES.items():
        for norm in NORMS:
            context.log(f"{family} against {norm}")
            for text in members.values():
                key = (text, norm.text)
                known[key] = known.get(key) or line(text, norm, context.sizes)

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
    return Output(
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
    sizes=CURVES,
)
