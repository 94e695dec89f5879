"""`unicr noise list` and `unicr noise show`: what noises there are, and the facts of one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

app = App(name="noise", help="List the built-in noises, or show the facts of one.")

EXAMPLES = {
    "gaussian": "gaussian(sigma=0.5)",
    "laplace": "laplace(sigma=0.5)",
    "sech": "sech(sigma=1)",
    "gennorm": "gennorm(beta=1.5, sigma=1)",
    "cauchy": "cauchy(scale=0.3)",
    "pareto": "pareto(beta=3, scale=0.5)",
    "lapgauss": "lapgauss(beta=0.5, sigma=1)",
    "expmix": "expmix(beta=0.5, sigma=1)",
    "uniform": "uniform(sigma=1)",
    "spherical_gg": "spherical_gg(k=1530, sigma=0.5, dim=3072)",
    "spherical_exp": "spherical_exp(k=1, sigma=1, dim=784)",
    "ball": "ball(sigma=1, dim=784)",
}


@app.command(name="list")
def list_() -> None:
    """List every built-in noise with its density and an example of its text form."""
    from rich.console import Console
    from rich.table import Table

    from unicr.noise import FAMILIES

    table = Table(box=None, pad_edge=False)
    for column in ("noise", "density (up to a constant)", "written"):
        table.add_column(column, overflow="fold")
    for name, family in FAMILIES.items():
        table.add_row(name, getattr(family, "formula", ""), EXAMPLES[name])
    console = Console()
    console.print(table)
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
