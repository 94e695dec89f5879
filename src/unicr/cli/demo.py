"""`unicr demo`: certify real digits with the built-in models, in the time of a coffee."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def demo(
    *,
    out: Path = Path("unicr-demo"),
    inputs: int = 100,
    n: int = 10_000,
    fresh: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Certify built-in MNIST models at three noise levels against l1, l2 and linf.

    Parameters
    ----------
    out
        Where tables, plots and the three runs go.
    inputs
        How many digits to certify (at most 1,000).
    n
        Samples per digit.
    fresh
        Throw away an earlier demo in `out` first.
    """
    from unicr.report.demo import run_demo

    run_demo(out, inputs=inputs, n=n, fresh=fresh)
