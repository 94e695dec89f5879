"""`unicr tightness`: is a published radius tight, loose, or impossible?"""

from __future__ import annotations

from unicr.cli._parameters import MaybeOut, command

DEFAULT = (0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)


@command
def tightness(
    *,
    noise: str,
    norm: str,
    dim: int | None = None,
    formula: str,
    p_a: list[float] | None = None,
    out: MaybeOut = None,
) -> int:
    """Check whether a published radius formula is tight, loose or wrong.

    Exit code 1 if the formula is WRONG at one of the p_A. Example:

    unicr tightness --noise 'gaussian(sigma=1)' --norm 2 --dim 784 --formula lecuyer

    Parameters
    ----------
    noise
        The smoothing noise, e.g. 'gaussian(sigma=0.5)'; see `unicr noise list`.
    norm
        The lp norm of the radius: 1, 2, inf, 0.5, …
    dim
        Number of input coordinates, e.g. 3072. Not needed for noise that has its own.
    formula
        A built-in name ('list' prints them) or path/to/file.py:function of (p_a), (p_a, p_b) or
        (noise, norm, dim, p_a, p_b).
    p_a
        The values of p_A at which to compare.
    out
        Also draw the comparison: .png, .svg or .pdf.
    """
    from unicr.lab.report.tables import format_table
    from unicr.noise import parse
    from unicr.radius import Question, round_down
    from unicr.tightness import FORMULAS, load_formula, validate

    if formula == "list":
        print(
            format_table(
                ("formula", "source"), [(one.name, one.source) for one in FORMULAS.values()]
            )
        )
        return 0
    question, published = Question(parse(noise), norm, dim), load_formula(formula)
    law, lp = question.noise, question.norm
    rows = validate(published, law, lp, question.dim, p_a or DEFAULT)
    lines = [
        (f"{r.p_a:g}", *map(round_down, (r.formula, r.proved, r.searched)), r.text) for r in rows
    ]
    print(f"{published.name} ({published.source})\n")
    print(format_table(("p_A", "formula", "proved", "searched", "verdict"), lines))
    if out is not None:
        from unicr.lab.report.curves import draw_tightness

        draw_tightness(rows, published.name, f"{law.text}, {lp}", out)
        print(f"drawn to {out}")
    return 1 if any(row.verdict == "WRONG" for row in rows) else 0
