"""`unicr tightness`: is a published radius tight, loose, or impossible?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unicr.cli._options import MaybeWhole

DEFAULT = (0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)


def tightness(
    *,
    noise: str,
    norm: str,
    dim: MaybeWhole = None,
    formula: str,
    pa: Annotated[
        list[float] | None, Parameter(name="--pa", consume_multiple=True, negative="")
    ] = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> int:
    """Hold a formula's radius against the bracket over p_A. Exit code 1 if it is WRONG anywhere.

    Parameters
    ----------
    noise
        The smoothing noise.
    norm
        p of the lp norm.
    dim
        Number of input coordinates.
    formula
        A built-in name ('list' prints them) or path/to/file.py:function of (p_a), (p_a, p_b) or
        (noise, norm, dim, p_a, p_b).
    pa
        The probabilities to compare at.
    output
        Also draw it: .png, .svg or .pdf.
    """
    from rich.console import Console
    from rich.table import Table

    from unicr.noise import parse
    from unicr.norms import parse_norm
    from unicr.radius import round_down
    from unicr.radius.formulas import FORMULAS, load_formula
    from unicr.radius.internal import check_dimension
    from unicr.radius.tightness import validate

    console = Console()
    if formula == "list":
        for known in FORMULAS.values():
            console.print(f"{known.name}: {known.source}", highlight=False)
        return 0
    law, lp, published = parse(noise), parse_norm(norm), load_formula(formula)
    rows = validate(published, law, lp, check_dimension(law, dim), pa or DEFAULT)
    table = Table(title=f"{published.name} ({published.source})", box=None, pad_edge=False)
    for column in ("p_A", "formula", "proved", "searched", "verdict"):
        table.add_column(column, justify="left" if column == "verdict" else "right")
    for row in rows:
        radii = (round_down(v) for v in (row.formula, row.proved, row.searched))
        table.add_row(f"{row.p_a:g}", *radii, row.text)
    console.print(table)
    if output is not None:
        from unicr.report.curves import draw_tightness

        draw_tightness(rows, published.name, f"{law.text}, {lp}", output)
        print(f"drawn to {output}")
    return 1 if any(row.verdict == "WRONG" for row in rows) else 0
