"""`unicr curve`: p_A–R curves of several noises and norms, with the bracket as a band."""

from __future__ import annotations

from unicr.cli._parameters import Out, command

BUILDING = "preparing p_A-R curves (built once for a noise, then read from disk) ..."


@command
def curve(
    *,
    noise: list[str],
    norm: list[str],
    dim: int | None = None,
    out: Out,
) -> None:
    """Draw the radius against p_A for one or more noises.

    No theorem covers noise that is given as a density of the whole vector (`Joint`). For such noise
    the command draws two estimates at seven values of p_A: the searched radius, and a smaller one
    that holds in the direction found with a stated confidence.

    Example:

    unicr curve --noise 'gaussian(sigma=1)' 'laplace(sigma=1)' \\
      --norm 2 inf --dim 784 -o curve.png

    Parameters
    ----------
    noise
        One or more noises, e.g. --noise 'gaussian(sigma=1)' 'laplace(sigma=1)'.
    norm
        One or more lp norms, one panel each: 1, 2, inf, 0.5, …
    dim
        Number of input coordinates, e.g. 3072. Not needed for noise that has its own.
    out
        .png, .svg, .pdf, .csv, .tex or .html (the last needs the extra unicr[report]).
    """
    from unicr.lab.report.curves import write_curves
    from unicr.lab.report.points import make_curve
    from unicr.noise import parse
    from unicr.norms import parse_norm
    from unicr.progress import announce

    laws = [parse(text) for text in noise]
    norms = dict.fromkeys(parse_norm(text) for text in norm)
    with announce(BUILDING):
        curves = [make_curve(law, lp, dim) for lp in norms for law in laws]
        write_curves(curves, out)
    print(f"written to {out}")
