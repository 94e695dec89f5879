"""`unicr optimality`: which noise of equal standard deviation gives the largest radius?"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from unicr.cli._parameters import Format, MaybeOut, command
from unicr.errors import UnicrError

if TYPE_CHECKING:
    from unicr.lab.optimality import Comparison, RunInputs
    from unicr.lab.report.optimality import Group

DEFAULT_PA = (0.6, 0.9, 0.99, 0.999)


@command
def optimality(
    *,
    norm: list[str] | None = None,
    dim: int | None = None,
    family: list[str] | None = None,
    beta: list[float] | None = None,
    noise: list[str] | None = None,
    sigma: float | None = None,
    p_a: list[float] | None = None,
    run: Path | None = None,
    format_: Format = "table",
    out: MaybeOut = None,
) -> None:
    """Rank noises of equal sigma by radius, and say what is proved.

    Example:

    unicr optimality --norm 1 inf --dim 784 --family gennorm \\
      --beta 1 2 3 --pa 0.6 0.99

    Parameters
    ----------
    norm
        One or more lp norms, e.g. --norm 1 2 inf. With --run: the norms of the run if left out.
    dim
        Number of input coordinates, e.g. 3072. With --run: the dimension of the run if left out.
    family
        Families to compare, e.g. gennorm. If there is no --family and no --noise: a built-in list.
    beta
        The values of beta. Each family uses those that it allows. A built-in list if left out.
    noise
        More noises to compare, e.g. --noise 'sech(sigma=1)'. They are rescaled to sigma.
    sigma
        The sigma of all noises. If left out: 1, or with --run the sigma of the run's noise.
    p_a
        The values of p_A at which to compare.
    run
        A run folder: compare average radii over its inputs, each at the p_A that it has in the run.
    out
        Also draw the radius against p_A, one row per family and one column per norm.
    """
    from unicr.lab.optimality import compare_average, compare_noises, read_run
    from unicr.lab.report.optimality import NOTE, draw_gallery, optimality_table
    from unicr.norms import parse_norm

    if run is not None and p_a is not None:
        raise UnicrError("give either --run, which has its own p_A, or --pa, not both")
    inputs = None if run is None else read_run(run)
    texts = norm or ([] if inputs is None else inputs.norms)
    if not texts:
        raise UnicrError("give the norms to compare in, for example --norm 1 2 inf")
    norms = list(dict.fromkeys(parse_norm(text) for text in texts))
    common = _common_sigma(sigma, inputs)
    groups = _groups(family, beta, noise, common)
    noises = [one for group in groups for one in group.noises]
    if inputs is not None:
        dim = inputs.dim if dim is None else dim
        if inputs.comparable:
            noises.append(inputs.noise.with_sigma(common))
    noises = list(dict.fromkeys(noises))
    own = None if inputs is None or sigma is not None else inputs.sigma / common
    comparisons: list[Comparison] = []
    if out is not None:
        draw_gallery(groups, norms, dim, out)
    for lp in norms:
        if inputs is None:
            comparisons += compare_noises(noises, lp, dim, p_a or DEFAULT_PA)
            continue
        factors = 1.0 if own is None else own
        comparisons.append(compare_average(noises, lp, dim, inputs.p_a, factors=factors))
    per_input = own is not None and bool((own != 1).any())
    print(optimality_table(comparisons, common, format_, per_input=per_input))
    if format_ == "csv":
        print(f"note: {NOTE}", file=sys.stderr)
    if out is not None:
        print(f"drawn to {out}", file=sys.stderr)


def _common_sigma(sigma: float | None, inputs: RunInputs | None) -> float:
    """What was asked for, or the run's own, or 1."""
    if sigma is not None or inputs is None:
        return 1.0 if sigma is None else sigma
    if not math.isfinite(inputs.noise.sigma) or not all(map(math.isfinite, inputs.sigma)):
        raise UnicrError(
            f"the noise {inputs.noise.text} of the run has no finite variance: give the standard "
            "deviation to compare at, for example --sigma 1"
        )
    return inputs.noise.sigma


def _groups(
    families: list[str] | None, betas: list[float] | None, noises: list[str] | None, sigma: float
) -> list[Group]:
    """One group for each family, one for the noises that were named by themselves."""
    from unicr.lab.optimality import gallery, list_galleries, rescale_to
    from unicr.lab.report.optimality import Group
    from unicr.noise import parse

    if families is None:
        families = [] if noises else list(list_galleries())
    if betas is not None and not families:
        raise UnicrError("--beta needs a --family, for example --family gennorm --beta 1 2")
    groups = []
    for name in dict.fromkeys(families):
        members, refused = gallery(name, sigma, betas)
        groups.append(Group(name, members))
        for reason in refused:
            print(f"left out {reason}", file=sys.stderr)
    if noises:
        named = dict.fromkeys(rescale_to(parse(text), sigma) for text in noises)
        groups.append(Group("noises", tuple(named)))
    return groups
