"""From a noise, a norm, a dimension and two probabilities to a radius with its proof status."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from unicr.errors import RadiusError
from unicr.montecarlo import Found, MonteCarlo
from unicr.noise import IID, Anisotropic, Noise
from unicr.noise.internal import CubeNoise, plainest
from unicr.norms import Norm, parse_norm
from unicr.radius._direction import search
from unicr.radius._result import Radius, guarantee_of
from unicr.radius._spectrum import Spectrum, spectrum_of
from unicr.radius.theorems import Proof, exact, prove
from unicr.radius.theorems.spherical import THEOREM as spherical
from unicr.tradeoff.internal import start_guess
from unicr.values import Array

if TYPE_CHECKING:
    from unicr.radius._many import ManyRadii

Engine = Literal["auto", "exact", "numeric", "montecarlo"]
ENGINES = ("auto", "exact", "numeric", "montecarlo")
NUMERIC_ERROR = 3e-4
SAMPLING_ERROR = 0.03


def check_probabilities(p_a: float, p_b: float | None) -> tuple[float, float]:
    """(p_A, min(p_B, 1 − p_A)), or an error that names the bad one; p_B defaults to 1 − p_A."""
    for name, value in (("p_a", p_a), ("p_b", p_b)):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise RadiusError(f"{name}={value!r} must be a probability between 0 and 1")
    rest = 1.0 - p_a
    return float(p_a), rest if p_b is None else min(float(p_b), rest)


def check_dimension(noise: Noise, dim: int | None) -> int:
    """The dimension as a whole number ≥ 1 that the noise can have."""
    if dim is None:
        dim = noise.dim
    if dim is None:
        raise RadiusError(f"{noise.text} works in any dimension: say which, with --dim or dim=")
    if isinstance(dim, bool) or not 1 <= dim <= 1 << 53 or int(dim) != dim:
        raise RadiusError(f"dim={str(dim)[:30]} must be a whole number of at least 1, up to 2^53")
    if noise.dim is not None and dim != noise.dim:
        raise RadiusError(f"{noise.text} lives in dimension {noise.dim}, not {dim}")
    return int(dim)


@overload
def certified_radius(
    noise: Noise,
    norm: Norm | float | str,
    dim: int | None = None,
    *,
    p_a: float,
    p_b: float | None = None,
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
    searched: bool = False,
    engine: Engine = "auto",
    montecarlo: MonteCarlo | None = None,
) -> Radius | ManyRadii:
    """The certified ℓp radius of a classifier smoothed with `noise`, as a bracket.

    `p_a` is a lower bound of the top class's probability, `p_b` an upper bound of every other's
    (default 1 − p_a, the binary case). `searched` is the smallest ‖λδ‖_p found on the robustness
    boundary, the paper's approximate radius; `proved` holds for every direction by a theorem.
    `radius` is `proved`, with `searched=True` it is `searched`. p_A ≤ p_B: radius 0,
    guarantee "abstain". p_A = 1: infinite where the density is positive
    everywhere, finite where it has an end or a hole.

    `engine`: "exact" uses theorems only (an error where none is exact), "numeric" skips the closed
    forms and composes, "montecarlo" is the paper's own algorithm for any density (settings:
    `montecarlo`), which proves nothing: `proved` is 0 and `radius_with_confidence` speaks of the
    direction found. "auto" takes what is best, and samples only where nothing else applies.

    `p_a` may be an array (of any length, `p_b` with it): the answer then holds arrays, and is a
    table.
    """
    norm = parse_norm(norm)
    dim = check_dimension(noise, dim)
    if np.ndim(p_a) > 0:
        from unicr.radius._many import many_radii

        options: dict[str, Any] = {"searched": searched, "engine": engine, "montecarlo": montecarlo}
        return many_radii(
            lambda a, b: certified_radius(noise, norm, dim, p_a=a, p_b=b, **options),
            *(noise, norm, dim, p_a, p_b),
            searched=searched,
            plain=engine == "auto",
        )
    p_a, p_b = check_probabilities(p_a, p_b)
    if engine not in ENGINES:
        raise RadiusError(f"engine={engine!r} is not one of {', '.join(ENGINES)}")
    if p_a <= p_b:
        found = _Found(0.0, 0.0, "none", "none", None)
    elif p_a == 1.0 and noise.facts.positive:
        found = _Found(math.inf, math.inf, "p_A = 1, positive density", "closed form", None)
    else:
        found = _solve(noise, norm, dim, p_a, p_b, engine, montecarlo or MonteCarlo())
    sampled = found.sampled
    return Radius(
        radius=found.searched if searched else found.proved,
        proved=found.proved,
        searched=found.searched,
        guarantee="abstain" if p_a <= p_b else guarantee_of(found.proved, found.searched),
        theorem=found.theorem,
        engine=found.engine,
        direction=found.direction,
        noise=noise.text,
        norm=norm,
        dim=dim,
        p_a=p_a,
        p_b=p_b,
        **({} if sampled is None else _report(sampled, montecarlo or MonteCarlo())),
    )


def _report(sampled: Found, settings: MonteCarlo) -> dict[str, Any]:
    """What a result says beyond its bracket where it was sampled."""
    stated = sampled.radius_with_confidence is not None
    return {
        "radius_with_confidence": sampled.radius_with_confidence,
        "confidence": 1.0 - settings.failure if stated else None,
        "converged": sampled.converged,
        "samples": settings.samples,
        "seed": settings.seed,
        "vector": sampled.direction,
    }


class _Found(NamedTuple):
    proved: float
    searched: float
    theorem: str
    engine: str
    direction: Spectrum | None
    sampled: Found | None = None


def _solve(
    noise: Noise,
    norm: Norm,
    dim: int,
    p_a: float,
    p_b: float,
    engine: Engine,
    settings: MonteCarlo,
) -> _Found:
    if engine == "montecarlo":
        return _sample(noise, norm, dim, p_a, p_b, settings, Proof(0.0, "none"))
    if isinstance(noise, Anisotropic) and np.ptp(noise.scales) == 0:
        noise = noise.base * float(noise.scales[0])
    noise = plainest(noise) if engine == "auto" else noise
    known = exact(noise, norm, dim)
    if known is not None and (engine != "numeric" or known is spherical):
        proof = prove(noise, norm, dim, p_a, p_b)
        worst = known.directions(noise, norm, dim) or (None, None)
        direction = worst[0].unit(norm) if worst[0] is not None and len(worst) == 1 else None
        return _Found(proof.radius, proof.radius, proof.theorem, proof.engine, direction)
    if engine == "exact":
        raise RadiusError(
            f"no exact theorem covers {noise.text} against {norm} in dimension {dim}: "
            "engine='auto' gives a bracket"
        )
    if not isinstance(noise, IID | CubeNoise):
        if engine == "numeric":
            raise RadiusError(
                f"no numeric engine covers {noise.text} against {norm}: its coordinates are not "
                "independent and alike; engine='montecarlo' does"
            )
        proof = prove(noise, norm, dim, p_a, p_b)
        return _sample(noise, norm, dim, p_a, p_b, settings, proof)
    size = noise.scale if isinstance(noise, IID) else float(noise.radius_ppf(0.5)) / dim
    guess, closed = size * start_guess(p_a, p_b), engine != "numeric"
    searched, direction = search(noise, norm, dim, p_a, p_b, guess, closed=closed)
    proof = prove(noise, norm, dim, p_a, p_b)
    searched = above(proof, searched, "composition along the worst direction found", NUMERIC_ERROR)
    return _Found(proof.radius, searched, proof.theorem, "composition", direction)


def above(proof: Proof, searched: float, engine: str, tolerance: float) -> float:
    """The searched radius, raised to a proved one that it misses by rounding.

    A proof above what was found on the boundary means that one of the two is wrong: an error.
    """
    if proof.radius > searched * (1 + tolerance):
        raise RadiusError(
            f"theorem {proof.theorem} gives {proof.radius!r}, {engine} only {searched!r}: one of "
            "the two is wrong, and none is believed; please report this noise"
        )
    return max(searched, proof.radius)


def _sample(
    noise: Noise,
    norm: Norm,
    dim: int,
    p_a: float,
    p_b: float,
    settings: MonteCarlo,
    proof: Proof,
) -> _Found:
    """The Monte Carlo radius beside the best theorem, if there is one.

    A radius that rests on a p_A quantile of n samples has a relative error of about
    1/√(n(1 − p_A)) where it grows as fast as 1/(1 − p_A), and less elsewhere: six times that, plus
    what the swarm leaves, is noise, and the theorem stands. Beyond, one of the two is wrong.
    """
    from unicr.montecarlo.engine import monte_carlo

    found = monte_carlo(noise, norm, dim, p_a, p_b, settings)
    rest = max(settings.samples * (1.0 - p_a), 1e-9)
    tolerance = SAMPLING_ERROR + 6 / math.sqrt(rest)
    searched = above(proof, found.radius, "Monte Carlo", tolerance)
    direction = spectrum_of(found.direction)
    return _Found(proof.radius, searched, proof.theorem, "montecarlo", direction, found)
