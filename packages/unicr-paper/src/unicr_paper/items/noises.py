"""p_A–R curves of every noise of the paper against ℓ1, ℓ2 and ℓ∞, all with σ = 1."""

from __future__ import annotations

from unicr.noise import parse
from unicr.norms import linf
from unicr.text import round_down
from unicr_paper._item import Context, Output, Table, item
from unicr_paper._radii import COLUMNS, CURVES, DIM, NORMS, Line, curves

# Cauchy and Pareto(1) have no σ. Cut at ±5 (five σ) these scales give them σ = 1; beside each
# stands the noise of the same scale that is not cut.
CAUCHY, PARETO, CUT = 0.334447, 0.257656, 5
NOISES = {
    "Gaussian": "gaussian(sigma=1)",
    "Laplace": "laplace(sigma=1)",
    "hyperbolic secant": "sech(sigma=1)",
    "General Normal 1.5": "gennorm(beta=1.5, sigma=1)",
    "Laplace–Gaussian mix ½": "lapgauss(beta=0.5, sigma=1)",
    "exponential mix ½": "expmix(beta=0.5, sigma=1)",
    "Cauchy cut at ±5": f"cauchy(scale={CAUCHY}).truncated({CUT})",
    "Pareto 1 cut at ±5": f"pareto(beta=1, scale={PARETO}).truncated({CUT})",
    "Cauchy": f"cauchy(scale={CAUCHY})",
    "Pareto 1": f"pareto(beta=1, scale={PARETO})",
}
LOW, HIGH = 0.6, 0.99


@item("noises", "p_A–R curves of all the noises", "Figures 6–8, Table 7", *CURVES, order=2)
def run(context: Context) -> Output:
    known, figure = curves(context, {"all noises": NOISES})
    lines = {n.text: [known[text, n.text] for text in NOISES.values()] for n in NORMS}
    proved = "band: from proved to searched"
    kind = proved if context.sizes["proved"] else "searched radii only, --full adds proved ones"
    rows = [row for group in lines.values() for line in group for row in line.rows()]
    return Output(
        tables={"radii": Table(COLUMNS, rows)},
        figures={"curves": figure},
        comparison=[*(_winner(norm.text, lines[norm.text]) for norm in NORMS), _crash(lines)],
        remarks=[
            f"dimension {DIM} (the paper does not say which); {kind}",
            "the paper names σ = 1 for Cauchy and Pareto(1), which have none: here they are cut "
            f"at ±{CUT} with σ = 1, and drawn uncut with the same scale beside it",
        ],
    )


def _winner(norm: str, group: list[Line]) -> str:
    """Which noise with σ = 1 has the largest radius, at each p_A."""
    finite = [line for line in group if parse(line.noise).facts.finite_variance]
    best = [max(finite, key=lambda line: line.at(p)).noise for p in group[0].p_a]
    share = best.count("gaussian(sigma=1)") / len(best)
    others = sorted(set(best) - {"gaussian(sigma=1)"})
    also = f"; elsewhere {', '.join(others)}" if others else ""
    return (
        f"l{norm}: Gaussian noise has the largest searched radius at {share:.0%} of the p_A{also} "
        "(the paper: at most of them)"
    )


def _crash(lines: dict[str, list[Line]]) -> str:
    laplace = lines[linf.text][list(NOISES).index("Laplace")]
    values = ", ".join(f"{round_down(255 * laplace.at(p), 4)} at {p}" for p in (LOW, HIGH))
    return (
        f"Laplace against linf (× 255): {values}; the paper finds no radius where p_A is low "
        "(the log-ratio has atoms there, which need randomised tests)"
    )
