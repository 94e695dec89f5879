"""`unicr demo`: certify real digits with the built-in models, in the time of a coffee."""

from __future__ import annotations

from pathlib import Path

from unicr.cli._parameters import Out, command


@command
def demo(
    *,
    out: Out = Path("unicr-demo"),
    inputs: int = 30,
    n: int = 5000,
    quick: bool = False,
    fresh: bool = False,
) -> None:
    """Certify built-in models on real digits, in less than a minute.

    Example: unicr demo --quick

    Parameters
    ----------
    out
        The folder for tables, plots and the three runs.
    inputs
        How many digits to certify (at most 1,000).
    n
        Samples per digit.
    quick
        Ten digits and 1,000 samples, to check the installation.
    fresh
        Delete an earlier demo in this folder first.
    """
    from unicr.lab.report.demo import run_demo

    if quick:
        inputs, n = 10, 1000
    run_demo(out, inputs=inputs, n=n, fresh=fresh)
