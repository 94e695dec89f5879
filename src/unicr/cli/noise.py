"""`unicr noise list` and `unicr noise show`: what noises there are, and the facts of one."""

from __future__ import annotations

from cyclopts import App

from unicr.cli._parameters import MaybeOut, command

_HELP = "List the built-in noises, or show the facts of one.\n\nExample: unicr noise list"
app = App(name="noise", help=_HELP)


@app.command(name="list")
@command
def list_() -> None:
    """List every built-in noise with its density, an example and the allowed parameters.

    Example: unicr noise list
    """
    from unicr.lab.report.tables import format_table
    from unicr.noise import FAMILIES

    rows = [(name, family.formula, family.example) for name, family in FAMILIES.items()]
    print(format_table(("noise", "density (up to a constant)", "written"), rows))
    ranges = [
        f"{name} {one.name} {one.low:g} to {one.high:g}"
        for name, family in FAMILIES.items()
        for one in family.parameters
    ]
    print(f"\nRanges: {'; '.join(ranges)}.")
    print(
        "\nAlso: NOISE.truncated(5), NOISE.with_sigma(0.5), NOISE * 2, NOISE.scales(1, 0.5, 2),\n"
        "NOISE.matrix(...) for stretched noise, sum(NOISE, NOISE) for a sum,\n"
        "scipy.NAME(...) for any law of scipy.stats, and path/to/file.py:name for a noise or a\n"
        "log-density of your own."
    )


@app.command
@command
def show(
    spec: str,
    /,
    *,
    out: MaybeOut = None,
) -> None:
    """Show the facts and moments of one noise.

    Example: unicr noise show 'gennorm(beta=1.5, sigma=1)' -o density.png

    Parameters
    ----------
    spec
        The noise, e.g. 'gennorm(beta=1.5, sigma=1)' or path/to/file.py:name.
    out
        Also draw its density into this file (.png, .svg or .pdf).
    """
    from unicr.lab.report.noise import describe, draw_density
    from unicr.noise import parse

    noise = parse(spec)
    for name, value in describe(noise).items():
        print(f"{name:<16} {value}")
    if out is not None:
        draw_density(noise, out)
        print(f"drawn to         {out}")
