"""`unicr radius`: one certified radius from two probabilities, with its proof status."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from cyclopts import Parameter

from unicr.cli._options import MaybeWhole, Whole


def radius(
    *,
    noise: str,
    norm: str,
    dim: MaybeWhole = None,
    pa: Annotated[float, Parameter(name="--pa")],
    pb: Annotated[float | None, Parameter(name="--pb")] = None,
    searched: Annotated[bool, Parameter(negative="")] = False,
    engine: Literal["auto", "exact", "numeric", "montecarlo"] = "auto",
    samples: Whole = 20_000,
    particles: Whole = 24,
    iterations: Whole = 20,
    seed: int = 0,
    confidence_method: Literal["clopper-pearson", "dkw", "hockey-stick", "none"] = (
        "clopper-pearson"
    ),
    failure: float = 1e-3,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Certify one pair of probabilities: how far may the input move in this norm?

    Parameters
    ----------
    noise
        The smoothing noise, e.g. 'gaussian(sigma=0.5)'; see `unicr noise list`.
    norm
        p of the lp norm: 1, 2, inf, 0.5, …
    dim
        Number of input coordinates, e.g. 3072; joint noises know theirs.
    pa
        Lower bound of the top class's probability.
    pb
        Upper bound of every other class's probability; 1 - pa if left out.
    searched
        Report the searched radius, the paper's approximate one, instead of the proved one.
    engine
        auto, exact (theorems only), numeric (composition, no closed forms) or montecarlo (the
        paper's own algorithm, for any density; auto takes it where nothing else applies).
    samples
        Monte Carlo: noise samples for the radius, and as many fresh ones for its confidence.
    particles
        Monte Carlo: directions that fly in the swarm.
    iterations
        Monte Carlo: steps of the swarm, at most.
    seed
        Monte Carlo: the same seed gives the same result.
    confidence_method
        Monte Carlo: how the radius with confidence is tested; none skips it.
    failure
        Monte Carlo: the probability that the radius with confidence is too large.
    json_
        Print one JSON object.
    """
    from unicr.noise import parse
    from unicr.norms import parse_norm
    from unicr.radius import MonteCarlo, certified_radius, round_down

    result = certified_radius(
        parse(noise),
        parse_norm(norm),
        dim,
        p_a=pa,
        p_b=pb,
        searched=searched,
        engine=engine,
        montecarlo=MonteCarlo(
            samples=samples,
            particles=particles,
            iterations=iterations,
            seed=seed,
            confidence_method=confidence_method,
            failure=failure,
        ),
    )
    if json_:
        print(json.dumps(result.to_dict()))
        return
    name = "searched, " if searched else ""
    print(f"radius     {round_down(result.radius)}   ({name}{result.norm}, dimension {result.dim})")
    print(f"proved     {round_down(result.proved)}   {result.theorem}")
    print(f"searched   {round_down(result.searched)}   {result.engine}")
    if result.radius_with_confidence is not None:
        confident = round_down(result.radius_with_confidence)
        print(f"confident  {confident}   along this direction, probability {result.confidence:g}")
    if result.converged is False:
        print("converged  no: the swarm was still improving, give it more --iterations")
    if result.direction is not None:
        print(f"direction  {result.direction.text}")
    print(f"guarantee  {result.guarantee}")
    print(f"noise      {result.noise}, p_A = {result.p_a:g}, p_B = {result.p_b:g}")
