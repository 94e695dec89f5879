"""`unicr curve`: p_A–R curves of several noises, with the bracket as a band."""

from __future__ import annotations

from unicr.cli._options import Dim, OneNorm, Out
from unicr.cli.certify import BUILDING


def curve(
    *,
    noise: list[str],
    norm: OneNorm,
    dim: Dim = None,
    out: Out,
) -> None:
    """Draw the radius against p_A for one or more noises.

    Example:

    unicr curve --noise 'gaussian(sigma=1)' 'laplace(sigma=1)' \\
      --norm inf --dim 784 -o curve.png

    Parameters
    ----------
    noise
        One or more noises, e.g. --noise 'gaussian(sigma=1)' 'laplace(sigma=1)'.
    out
        .png, .svg, .pdf, .csv or .html (the last needs the extra unicr[report]).
    """
    from unicr.lab.report.curves import write_curves
    from unicr.noise import parse
    from unicr.norms import parse_norm
    from unicr.progress import announce
    from unicr.radius import RadiusCurve

    with announce(BUILDING):
        curves = [RadiusCurve(parse(spec), parse_norm(norm), dim) for spec in noise]
        write_curves(curves, out)
    print(f"written to {out}")
