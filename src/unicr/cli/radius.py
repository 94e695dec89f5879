"""`unicr radius`: one certified radius from two probabilities, with its proof status."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from cyclopts import Parameter

from unicr.cli._options import Dim, Noise_, OneNorm, Searched, Whole
from unicr.cli._watch import watched
from unicr.errors import RadiusError

MONTE_CARLO = Parameter(group="Monte Carlo")
TWO = Parameter(group="Votes under two laws")


def radius(
    *,
    noise: Noise_,
    norm: OneNorm,
    dim: Dim = None,
    pa: Annotated[float, Parameter(name="--pa")],
    pb: Annotated[float | None, Parameter(name="--pb")] = None,
    qa: Annotated[float | None, TWO] = None,
    share: Annotated[float | None, TWO] = None,
    searched: Searched = False,
    engine: Literal["auto", "exact", "numeric", "montecarlo"] = "auto",
    samples: Annotated[Whole, MONTE_CARLO] = 20_000,
    particles: Annotated[Whole, MONTE_CARLO] = 24,
    iterations: Annotated[Whole, MONTE_CARLO] = 20,
    seed: Annotated[int, MONTE_CARLO] = 0,
    confidence_method: Annotated[
        Literal["clopper-pearson", "dkw", "hockey-stick", "none"], MONTE_CARLO
    ] = "clopper-pearson",
    alpha: Annotated[float, MONTE_CARLO] = 1e-3,
    limit: float = 300,
    json_: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Certify one pair of probabilities: how far may the input move?

    Example: unicr radius --noise 'laplace(sigma=1)' --norm 2 --dim 3072 --pa 0.99

    Parameters
    ----------
    pa
        Lower bound of the top class's probability.
    pb
        Upper bound of every other class's probability; 1 - pa if left out.
    qa
        Lower bound of the top class's probability under the same noise within a ball: spherical
        noise, or l1_exp (Laplace noise is its k=1, j=0) with a ball in l1.
    share
        The share of the noise that the ball holds, e.g. 0.8.
    engine
        auto, exact (theorems only), numeric (composition, no closed forms) or montecarlo (the
        paper's own algorithm, for any density; auto takes it where nothing else applies).
    samples
        Noise samples for the radius, and as many fresh ones for its confidence.
    particles
        Number of particles of the swarm.
    iterations
        Steps of the swarm, at most.
    seed
        The same seed gives the same result.
    confidence_method
        How the radius with confidence is tested; none skips it.
    alpha
        The probability that the radius with confidence is too large.
    limit
        Seconds of computing after which it is given up.
    json_
        Print one JSON object.
    """
    from unicr.noise import parse
    from unicr.radius import MonteCarlo, SecondLaw, certified_radius, round_down

    if (qa is None) != (share is None) or (qa is not None and pb is not None):
        raise RadiusError(
            "two laws need --qa and --share, without --pb: q_A is what the votes under the noise "
            "within a ball prove; leave both away where there is p_A only"
        )
    with watched(f"the radius of {noise}", limit):
        result = certified_radius(
            parse(noise),
            norm,
            dim,
            p_a=pa,
            p_b=pb,
            second=None if qa is None or share is None else SecondLaw(qa, share),
            searched=searched,
            engine=engine,
            montecarlo=MonteCarlo(
                samples=samples,
                particles=particles,
                iterations=iterations,
                seed=seed,
                confidence_method=confidence_method,
                failure=alpha,
            ),
        )
    if json_:
        print(json.dumps(result.to_dict()))
        return
    name = "searched, " if searched else ""
    print(f"radius     {round_down(result.radius)}   ({name}{result.norm}, dimension {result.dim})")
    print(f"proved     {round_down(result.proved)}   {result.proof}")
    if result.grade is not None:
        print(f"grade      {result.grade}")
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
