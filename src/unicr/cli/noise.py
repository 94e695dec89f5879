"""`unicr noise list` and `unicr noise show`: what noises there are, and the facts of one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

app = App(name="noise", help="List the built-in noises, or show the facts of one.")


@app.command(name="list")
def list_() -> None:
    """List every built-in noise with its density, an example and what its numbers may be."""
    from rich.console import Console
    from rich.table import Table

    from unicr.noise import FAMILIES

    table = Table(box=None, pad_edge=False)
    for column in ("noise", "density (up to a constant)", "written"):
        table.add_column(column, overflow="fold")
    for name, family in FAMILIES.items():
        table.add_row(name, family.formula, family.example)
    console = Console()
    console.print(table)
    ranges = [
        f"{name} {one.name} {one.low:g} to {one.high:g}"
        for name, family in FAMILIES.items()
        for one in family.parameters
    ]
    console.print(f"\nRanges: {'; '.join(ranges)}.", highlight=False)
    console.print(
        "\nAlso: NOISE.truncated(5), NOISE * 2, scipy.NAME(...) for any continuous scipy.stats\n"
        "distribution, and path/to/file.py:name for a noise or a log-density of your own.",
        highlight=False,
    )


@app.command
def show(
    spec: str,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> None:
    """Show the facts and moments of one noise.

    Parameters
    ----------
    spec
        The noise, e.g. 'gennorm(beta=1.5, sigma=1)' or path/to/file.py:name.
    output
        Also draw its density into this file (.png, .svg or .pdf).
    """
    from unicr.noise import parse
    from unicr.report.noise import describe, draw_density

    noise = parse(spec)
    for name, value in describe(noise).items():
        print(f"{name:<16} {value}")
    if output is not None:
        draw_density(noise, output)
        print(f"drawn to         {output}")
