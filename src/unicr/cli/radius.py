"""`unicr radius`: one certified radius from two probabilities, with its proof status."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from unicr.cli._parameters import Json, Unasked, command, spread
from unicr.cli._watch import watched
from unicr.errors import RadiusError
from unicr.montecarlo import Estimator, Method, MonteCarlo

if TYPE_CHECKING:
    from unicr.radius import Radius

TWO = Parameter(group="Two probabilities (see `unicr certify --procedure two_laws`)")
Seconds = Annotated[float, Parameter(name="--limit")]


@dataclass(frozen=True)
class EngineOptions(MonteCarlo):
    """The settings of the Monte Carlo engine; its progress is always told."""

    estimator: Estimator = "weighted"
    confidence_method: Method = "clopper-pearson"
    progress: Annotated[bool, Unasked] = True


spread(EngineOptions, "Monte Carlo (for --engine montecarlo and noise without a theorem)")
ENGINE = EngineOptions()


@command
def radius(
    *,
    noise: str,
    norm: str,
    dim: int | None = None,
    p_a: float,
    p_b: float | None = None,
    q_a: Annotated[float | None, TWO] = None,
    share: Annotated[float | None, TWO] = None,
    searched: bool = False,
    engine: Literal["auto", "exact", "numeric", "montecarlo"] = "auto",
    seconds: Seconds = 300,
    explain: bool = False,
    json_: Json = False,
    settings: EngineOptions = ENGINE,
) -> None:
    """Compute the certified radius for given probabilities p_A, p_B.

    Example: unicr radius --noise 'laplace(sigma=1)' --norm 2 --dim 3072 --pa 0.99

    Parameters
    ----------
    noise
        The smoothing noise, e.g. 'gaussian(sigma=0.5)'; see `unicr noise list`.
    norm
        The lp norm of the radius: 1, 2, inf, 0.5, …
    dim
        Number of input values, e.g. 3072. Not needed for noise that has its own.
    p_a
        Lower bound of the top class's probability.
    p_b
        Upper bound of every other class's probability; 1 - pa if left out.
    q_a
        Lower bound of the top class's probability under the same noise restricted to a ball: an
        l2 ball for spherical noise, an l1 ball for l1_exp (Laplace noise is l1_exp with k=1, j=0).
    share
        The share of the noise inside that ball, e.g. 0.8.
    searched
        Report the searched radius (the paper's approximate one) instead of the proved one.
    engine
        auto, exact (only theorems that give the true radius), numeric (no closed forms) or
        montecarlo (the paper's own algorithm, for any density). auto uses montecarlo if nothing
        else applies.
    seconds
        Stop after this many seconds of computing, with what is proved by then.
    explain
        Print also where the proved radius comes from: its theorem with its place on the theory
        page, the files that compute it, what is subtracted for rounding, and what other theorems
        give.
    json_
        Print one JSON object.
    """
    from unicr.noise import parse
    from unicr.radius import SecondLaw, certified_radius, explain_radius

    if (q_a is None) != (share is None) or (q_a is not None and p_b is not None):
        raise RadiusError(
            "two laws need --qa and --share, and no --pb: q_A is the bound from the votes under "
            "the noise within a ball. Leave --qa and --share out if you have p_A only"
        )
    second = None if q_a is None or share is None else SecondLaw(q_a, share)
    with watched(f"the radius of {noise}", seconds):
        law = parse(noise)
        result = certified_radius(
            law,
            norm,
            dim,
            p_a=p_a,
            p_b=p_b,
            second=second,
            searched=searched,
            engine=engine,
            montecarlo=settings,
        )
        how = None
        if explain and result.complete:
            how = explain_radius(law, norm, dim, p_a=p_a, p_b=p_b, second=second)
    if json_:
        more = {} if how is None else {"explanation": how.to_dict()}
        print(json.dumps(result.to_dict() | more))
        return
    print(describe(result, searched=searched))
    if how is not None:
        print(f"\n{how}")


def describe(result: Radius, *, searched: bool) -> str:
    """The radius with its proof, or the searched one where only a search found it, line by line."""
    from unicr.radius import round_down

    about = f"({result.norm}, dimension {result.dim})"
    searched = searched and result.complete
    confident = result.radius_with_confidence
    rows: list[tuple[str, str]] = []
    if result.proved > 0 or result.searched == 0 or searched:
        kind = "searched, " if searched else ""
        rows.append(("radius", f"{round_down(result.radius)}   {about.replace('(', f'({kind}')}"))
        rows.append(("proved", f"{round_down(result.proved)}   {result.theorem}"))
    else:
        rows.append(("radius", f"searched, not proved   {about}"))
    if result.grade is not None:
        rows.append(("grade", str(result.grade)))
    if result.complete:
        rows.append(("searched", f"{round_down(result.searched)}   {result.engine}"))
    else:
        rows.append(("stopped", "at --limit: other theorems were not asked, nothing was searched"))
    if confident is not None:
        how_sure = f"along this direction, with probability {result.confidence:g}"
        rows.append(("confident", f"{round_down(confident)}   {how_sure}"))
    if result.converged is False:
        rows.append(("converged", "no: the swarm was still improving, give it more --iterations"))
    if result.direction is not None:
        rows.append(("direction", result.direction.text))
    rows.append(("guarantee", str(result.guarantee)))
    rows.append(("noise", f"{result.noise}, p_A = {result.p_a:g}, p_B = {result.p_b:g}"))
    return "\n".join(f"{name:<10} {text}" for name, text in rows)
