"""`unicr tightness`: is a published radius tight, loose, or impossible?"""

from __future__ import annotations

from unicr.cli._options import Dim, MaybeOut, Noise_, OneNorm, Pa

DEFAULT = (0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)


def tightness(
    *,
    noise: Noise_,
    norm: OneNorm,
    dim: Dim = None,
    formula: str,
    pa: Pa = None,
    out: MaybeOut = None,
) -> int:
    """Hold a published formula's radius against the bracket.

    Exit code 1 if it is WRONG at one of the p_A. Example:

    unicr tightness --noise 'gaussian(sigma=1)' --norm 2 --dim 784 --formula lecuyer

    Parameters
    ----------
    formula
        A built-in name ('list' prints them) or path/to/file.py:function of (p_a), (p_a, p_b) or
        (noise, norm, dim, p_a, p_b).
    pa
        The probabilities to compare at.
    out
        Also draw it: .png, .svg or .pdf.
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
    rows = validate(published, law, lp, question.dim, pa or DEFAULT)
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
