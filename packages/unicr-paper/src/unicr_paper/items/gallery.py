"""The gallery of β: three families of noise against three norms, all with σ = 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unicr_paper._item import Context, Output, Table, item
from unicr_paper._radii import COLUMNS, CURVES, DIM, NORMS, Known, curves

GAUSSIAN, LAPLACE = "gaussian(sigma=1)", "laplace(sigma=1)"


def _members(family: str, betas: Sequence[float], ends: Mapping[float, str]) -> dict[str, str]:
    return {f"{b:g}": ends.get(b, f"{family}(beta={b:g}, sigma=1)") for b in betas}


MIX, MIX_ENDS = (0, 0.25, 0.5, 0.75, 1), {0.0: GAUSSIAN, 1.0: LAPLACE}
FAMILIES = {
    "General Normal": _members("gennorm", (0.5, 1, 1.5, 2, 3), {1.0: LAPLACE, 2.0: GAUSSIAN}),
    "Laplace–Gaussian mix": _members("lapgauss", MIX, MIX_ENDS),
    "exponential mix": _members("expmix", MIX, MIX_ENDS),
}
COMPARED = (0.6, 0.9, 0.99)


@item("gallery", "p_A–R curves of three families with a varying β", "Figure 13", *CURVES, order=12)
def run(context: Context) -> Output:
    known, figure = curves(context, FAMILIES, "β = {}")
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
        figures={"gallery": figure},
        comparison=[_best(family, known) for family in FAMILIES],
        remarks=[
            f"dimension {DIM}; the paper does not print its β: these are ours; β = 0 and 1 of the "
            "mixes, 1 and 2 of General Normal are Gaussian and Laplace noise themselves",
            *proof,
        ],
    )


def _best(family: str, known: Known) -> str:
    """The β with the largest radius, per norm and p_A."""
    members, words = FAMILIES[family], []
    for norm in NORMS:
        best = [max(members, key=lambda b: known[members[b], norm.text].at(p)) for p in COMPARED]
        words.append(f"{norm} {'/'.join(best)}")
    at = "/".join(str(p) for p in COMPARED)
    return f"{family}: best β at p_A = {at}: {', '.join(words)} (the paper: the Gaussian one)"
