"""From a noise, a norm, a dimension and two probabilities to a radius with its proof status."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np

from unicr.errors import RadiusError
from unicr.montecarlo import MonteCarlo
from unicr.noise import Noise
from unicr.norms import Norm
from unicr.progress import OutOfTime
from unicr.radius._cache import without_stored
from unicr.radius._direction import has_spectra, search_direction
from unicr.radius._grade import GRADE_OF_FACTS
from unicr.radius._question import Evidence, Question, SecondLaw, simplify_question
from unicr.radius._result import Radius, name_guarantee, reconcile
from unicr.radius._spectrum import read_spectrum
from unicr.radius.theorems import NOTHING_PROVED, Bound, Proof, find_exact_bound, prove
from unicr.radius.theorems.two_laws import check_two_laws
from unicr.values import Array

if TYPE_CHECKING:
    from unicr.radius._many import ManyRadii

Engine = Literal["auto", "exact", "numeric", "montecarlo"]
NUMERIC_ERROR = 3e-4  # of a searched radius by composition: its cells and its root
SAMPLING_ERROR = 0.03  # of a sampled one: what the swarm leaves


@overload
def certified_radius(
    noise: Noise,
    norm: Norm | float | str,
    dim: int | None = None,
    *,
    p_a: float,
    p_b: float | None = None,
    second: SecondLaw | None = None,
    searched: bool = False,
    engine: Engine = "auto",
    montecarlo: MonteCarlo | None = None,
) -> Radius: ...
@overload
def certified_radius(
    noise: Noise,
    norm: Norm | float | str,
    dim: int | None = None,
    *,
    p_a: Array | list[float],
    p_b: float | Array | list[float] | None = None,
    searched: bool = False,
    engine: Engine = "auto",
    montecarlo: MonteCarlo | None = None,
) -> ManyRadii: ...
def certified_radius(
    noise: Noise,
    norm: Norm | float | str,
    dim: int | None = None,
    *,
    p_a: Any,
    p_b: Any = None,
    second: SecondLaw | None = None,
    searched: bool = False,
    engine: Engine = "auto",
    montecarlo: MonteCarlo | None = None,
) -> Radius | ManyRadii:
    """Return the certified ℓp radius of a classifier smoothed with `noise`, as a bracket.

    `proved` holds for every direction by a theorem (docs/theory.md#certifies). `searched` is the
    smallest ‖λδ‖_p found on the robustness boundary, the paper's approximate radius; the true
    radius lies between the two. Where p_A ≤ p_B the radius is 0 and `guarantee` is "abstain". At
    p_A = 1 it is infinite if the density is positive everywhere, and finite where it has an end
    or a hole.

    Parameters
    ----------
    noise
        The smoothing noise.
    norm
        The norm in which the radius is measured: a number p, "inf", or a `Norm`.
    dim
        The number of coordinates; may be left out where the noise has a dimension.
    p_a
        A lower bound of the top class's probability. May be an array of any length, `p_b` with it:
        the answer then holds arrays, and is a table.
    p_b
        An upper bound of every other class's probability; 1 − p_a where it is left out.
    second
        What votes under the same noise within a ball prove (two laws, DSRS). The answer is the
        better of the radius from both laws and of that from p_A alone; nothing searches beyond it.
    searched
        Whether `radius` is the searched end of the bracket instead of the proved one.
    engine
        "auto" takes what is best, and samples only where nothing else applies. "exact" uses
        theorems only, and raises where none is exact. "numeric" skips the closed forms and
        composes. "montecarlo" is the paper's own algorithm for any density, which proves nothing:
        `proved` is 0, and `radius_with_confidence` speaks of the direction found.
    montecarlo
        Settings of that algorithm.

    Returns
    -------
    Radius
        The bracket with its theorem and grade; `ManyRadii` where `p_a` is an array.

    Examples
    --------
    >>> from unicr import noise, radius
    >>> r = radius.certified_radius(noise.laplace(sigma=1), 1, 784, p_a=0.99)
    >>> round(r.radius, 4), r.theorem
    (2.7662, '(b) one-hot, log-concave')
    """
    question = Question(noise, norm, dim)
    if engine not in get_args(Engine):
        raise RadiusError(f"engine={engine!r} must be one of {', '.join(get_args(Engine))}")
    if np.ndim(p_a) > 0:
        from unicr.radius._many import compute_radii

        if second is not None:
            raise RadiusError("votes under two laws work for one p_a, not for an array")
        single = lambda a, b: _solve(question, Evidence(a, b), engine, montecarlo, searched)  # noqa: E731
        return compute_radii(single, question, p_a, p_b, searched=searched, plain=engine == "auto")
    return _solve(question, Evidence(p_a, p_b, second), engine, montecarlo, searched)


def _solve(
    asked: Question,
    evidence: Evidence,
    engine: Engine,
    settings: MonteCarlo | None,
    searched: bool,
) -> Radius:
    """The radius for one evidence, with everything that a `Radius` tells beside it."""
    proof, upper, computed, more = _bracket(asked, evidence.first, engine, settings)
    guarantee = more.pop("guarantee", None) or name_guarantee(proof.radius, upper)
    if evidence.abstains:
        guarantee = "abstain"
    if evidence.second is not None:
        check_two_laws(asked.noise)
        both = _prove_by_two_laws(asked, evidence, proof)
        if not both.complete:
            guarantee, more["complete"] = "approximate", False
        if both.radius > proof.radius and not evidence.abstains:
            # nobody searched for the worst classifier of both laws: the upper end is not known
            proof, upper, guarantee = both, max(upper, both.radius), "approximate"
            more = {"complete": both.complete}
    fields: dict[str, Any] = {"direction": None, **more}
    return Radius(
        radius=upper if searched else proof.radius,
        proved=proof.radius,
        searched=upper,
        guarantee=guarantee,
        theorem=proof.theorem,
        grade=proof.grade,
        engine=computed,
        noise=asked.noise.text,
        norm=asked.norm,
        dim=asked.dim,
        p_a=evidence.p_a,
        p_b=evidence.p_b,
        second=evidence.second,
        **fields,
    )


def _prove_by_two_laws(asked: Question, evidence: Evidence, known: Proof) -> Proof:
    """The proof from votes under both laws; `known` where no time is left for it."""
    if not known.complete:
        return known
    try:
        return prove(asked, evidence, laws=2)
    except OutOfTime:
        if not known.radius > 0:
            raise
        return NOTHING_PROVED._replace(complete=False)


# what is proved, what was found by searching, what computed it, and further fields of a Radius
Bracket = tuple[Proof, float, str, dict[str, Any]]


def _bracket(
    asked: Question, evidence: Evidence, engine: Engine, settings: MonteCarlo | None
) -> Bracket:
    facts = asked.noise.facts
    if evidence.abstains:
        return NOTHING_PROVED, 0.0, "none", {}
    if evidence.p_a == 1.0 and facts.positive:
        certain = CertainBound(
            theorem="p_A = 1, positive density",
            grade=GRADE_OF_FACTS[facts.source],
            engine="closed form",
        )
        return Proof(math.inf, certain), math.inf, certain.engine, {}
    if engine == "montecarlo":
        if not asked.noise.has_density:
            raise RadiusError(
                f"the density of {asked.noise.text} is not known, so it cannot be sampled: use "
                "engine='auto'"
            )
        return _sample(asked, evidence, settings, NOTHING_PROVED)
    question = simplify_question(asked, plain=engine == "auto")
    noise, exact = question.noise, find_exact_bound(question)
    round_ball = noise.radial is not None and noise.radial.order == 2
    if exact is not None and (engine != "numeric" or round_ball):
        proof = prove(question, evidence)
        worst = exact.directions if exact.directions and len(exact.directions) == 1 else (None,)
        direction = worst[0].unit(question.norm) if worst[0] is not None else None
        return proof, proof.radius, exact.engine, {"direction": direction, "guarantee": "exact"}
    if engine == "exact":
        raise RadiusError(
            f"no exact theorem covers {noise.text} in {question.norm} and dimension "
            f"{question.dim}: use engine='auto' to get a lower and an upper bound"
        )
    if has_spectra(noise):
        proof = prove(question, evidence)
        try:
            if not proof.complete:
                return _stop(proof)
            upper, direction = search_direction(
                question, evidence, closed=engine != "numeric", proved=proof.radius
            )
        except OutOfTime:
            if not proof.radius > 0:
                raise
            return _stop(proof)
        searcher = "composition along the worst direction found"
        upper = reconcile(proof.radius, proof.theorem, upper, searcher, NUMERIC_ERROR)
        return proof, upper, "composition", {"direction": direction}
    if engine == "numeric":
        raise RadiusError(
            f"no numeric engine covers {noise.text} in {question.norm}, because its coordinates "
            "are not independent with the same law: use engine='montecarlo'"
        )
    proof = prove(question, evidence)
    if not proof.complete:
        return _stop(proof)
    if not is_searched(noise):
        # nobody searched: the upper end is not known
        return proof, proof.radius, "theorem", {"guarantee": "approximate"}
    return _sample(question, evidence, settings, proof)


def _stop(proof: Proof) -> Bracket:
    """The bracket when time is over: what was proved by then; the upper end is not known."""
    return proof, proof.radius, "theorem", {"guarantee": "approximate", "complete": False}


def is_searched(noise: Noise) -> bool:
    """Whether Monte Carlo looks for the worst direction where no theorem names it.

    Not where nobody knows the density, nor under a matrix, where each direction is one by itself.
    """
    return noise.has_density and (noise.frame is None or noise.scales is not None)


def prove_directly(
    noise: Noise,
    norm: Norm | float | str,
    dim: int,
    p_a: float,
    p_b: float,
    second: SecondLaw | None = None,
) -> float:
    """The radius that theorems prove at these probabilities. No curve is used, and nothing is read
    from disk.

    It may take a minute where the theorem is a bound over all sequences of coordinates (j).

    See docs/theory.md#certifies.
    """
    question = Question(noise, norm, dim)
    evidence = Evidence(p_a, p_b, second)
    if evidence.p_a == 1.0 and noise.facts.positive:
        return math.inf
    with without_stored():
        proved = prove(simplify_question(question, plain=True), evidence.first).radius
        if second is not None:
            proved = max(proved, prove(question, evidence, laws=2).radius)
    return proved


class CertainBound(Bound):
    """p_A = 1 under a density above zero almost everywhere: f is A almost everywhere, so under
    every shift too.
    """

    def radius(self, evidence: Evidence) -> float:
        return math.inf if evidence.p_a == 1.0 else 0.0


def _sample(
    question: Question, evidence: Evidence, given: MonteCarlo | None, proof: Proof
) -> Bracket:
    """The Monte Carlo radius beside the best theorem, if there is one.

    A radius that rests on a p_A quantile of n samples has a relative error of about
    1/√(n(1 − p_A)) where it grows as fast as 1/(1 − p_A), and less elsewhere: six times that, plus
    what the swarm leaves, is noise, and the theorem stands. Beyond, one of the two is wrong.
    """
    from unicr.montecarlo.engine import monte_carlo

    settings = given or MonteCarlo()
    p_a, p_b = evidence.p_a, evidence.p_b
    sampled = monte_carlo(question.noise, question.norm, question.dim, p_a, p_b, settings)
    tail = max(settings.samples * (1.0 - p_a), 1e-9)  # p_A = 1 has no tail: anything is noise
    tolerance = SAMPLING_ERROR + 6 / math.sqrt(tail)
    upper = reconcile(proof.radius, proof.theorem, sampled.radius, "Monte Carlo", tolerance)
    stated = sampled.radius_with_confidence is not None
    more = {
        "direction": read_spectrum(sampled.direction),
        "radius_with_confidence": sampled.radius_with_confidence,
        "confidence": 1.0 - settings.alpha if stated else None,
        "converged": sampled.converged,
        "samples": settings.samples,
        "seed": settings.seed,
        "vector": sampled.direction,
    }
    return proof, upper, "montecarlo", more
