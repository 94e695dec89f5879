"""What the explorer's page asks, answered: from the words of a query to plain values for JSON.

Every answer is a pure function of its query. A noise is built from a family's name and numbers
or from a typed expression, never from a text that could name a file. Radii are those of
`certified_radius` at unit scale, times the scale, kept in memory: moving σ costs nothing.
"""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

import numpy as np
from scipy import special

from unicr.errors import NoiseError, SpecError
from unicr.lab.explore._expression import FUNCTIONS, KINDS, Kind, parse_expression
from unicr.lab.report.noise import density_line
from unicr.noise import FAMILIES, IID, Noise, from_density
from unicr.noise.internal import HINT, plainest, usual_family
from unicr.norms import Norm, parse_norm
from unicr.radius import Question, Radius, RadiusCurve, certified_radius, round_down
from unicr.radius.internal import find_exact_bound, read_from_below
from unicr.text import number
from unicr.values import Array

Query = Mapping[str, str]
Answer = dict[str, Any]

TYPED = "typed"
SIZES = ("sigma", "scale")
MOST_DIM = 10_000_000  # far beyond any input
LAST_P = 0.9999  # the largest p_A that is drawn: about what 100,000 samples can show
STEPS = 32  # pieces of a curve; a power of two, as they are halved again and again
PATIENCE = 0.4  # seconds that one answer spends on further points of a curve
FILE = "density.py"


def answer(path: str, query: Query) -> Answer:
    """The answer to one question of the page. Raises UnicrError if it cannot be answered."""
    return QUESTIONS[path](query)


def families(query: Query) -> Answer:
    """Every built-in family with its own parameters, and what a typed density may contain."""
    _only(query, ())
    listed = [
        {
            "name": name,
            "formula": family.formula,
            "parameters": [
                dict(
                    zip(
                        ("name", "min", "max", "start"),
                        (parameter.name, *parameter.slider),
                        strict=True,
                    )
                )
                for parameter in family.parameters
            ],
            "sizes": list(family.sizes),
            "joint": family.joint,
        }
        for name, family in FAMILIES.items()
    ]
    return {
        "families": listed,
        "usual": usual_family().name,
        "functions": list(FUNCTIONS),
        "kinds": list(KINDS),
    }


def density(query: Query) -> Answer:
    """The density to draw: of one coordinate, or of the length for spherical noise."""
    noise, _ = _noise(query)
    x, y, of = density_line(noise, 401, 0.004)
    facts = noise.facts
    return {
        "of": of,
        "x": x.tolist(),
        "y": [float(v) if math.isfinite(v) else None for v in y],
        "sigma": float(noise.sigma) if math.isfinite(noise.sigma) else None,
        "facts": {
            "symmetric": facts.symmetric,
            "log-concave": facts.log_concave,
            "unimodal": facts.unimodal,
            "bounded": facts.bounded,
            "finite variance": facts.finite_variance,
        },
        "source": facts.source,
    }


def radius(query: Query) -> Answer:
    """The bracket at p_A, its theorem and guarantee, and how to ask the command line for it."""
    noise, written = _noise(query)
    norm, dim = _norm(query), _dim(query)
    p_a = _number(query, "pa")
    result = _radius(noise.unit, norm, dim, p_a)
    direction = result.direction
    return {
        **_bracket(result, noise.scale),
        "guarantee": result.guarantee,
        "theorem": result.theorem,
        "grade": result.grade,
        "engine": result.engine,
        "direction": None if direction is None else direction.text,
        "norm": str(norm),
        "dim": dim,
        "p_a": p_a,
        "noise": written["noise"],
        "file": written.get("file"),
        "command": f"unicr radius --noise {shlex.quote(written['noise'])} "
        f"--norm {norm.text} --dim {dim} --pa {number(p_a)}",
    }


def curve(query: Query) -> Answer:
    """More points of the curve than the `known` ones, coarse to fine, and a line below the curve.

    Every point is a bracket of its own. What is proved at one is proved up to the next: between
    them that line stays level, unless a closed form is free; in the end, where one theorem gives
    all of it, the curve that certificates read takes its place. The searched line is
    interpolated, below the chord and its neighbours' prolongations in Φ⁻¹(p_A).
    """
    noise, _ = _noise(query)
    norm, dim = _norm(query), _dim(query)
    known = int(_number(query, "known", 0.0))
    if not 0 <= known <= STEPS + 1:
        raise SpecError(f"known={known} must lie between 0 and {STEPS + 1}")
    started, radii = time.monotonic(), dict[int, Radius]()
    for i in coarse_to_fine(STEPS):
        radii[i] = _radius(noise.unit, norm, dim, float(GRID[i]))
        if len(radii) > max(known, 2) and time.monotonic() - started > PATIENCE:
            break
    steps = sorted(radii)
    p = GRID[steps]
    points = [
        {"p_a": float(GRID[i]), **_bracket(radii[i], noise.scale)} for i in steps if i < STEPS
    ]
    drawn = np.unique(np.concatenate([special.ndtr(np.linspace(0, LAST_Z, 129)), p]))
    drawn = drawn[drawn <= LAST_P]
    searched = _line(p, np.array([radii[i].searched for i in steps]), drawn) * noise.scale
    bound, whole = find_exact_bound(Question(plainest(noise), norm, dim)), len(radii) > STEPS
    if bound is not None and (whole or bound.closed_form is not None):
        proved = RadiusCurve(noise, norm, dim)(drawn)
    else:
        level = np.maximum.accumulate([radii[i].proved for i in steps])
        proved = level[np.searchsorted(p, drawn, side="right") - 1] * noise.scale
    return {
        "points": points,
        "p_a": drawn.tolist(),
        "proved": np.minimum(proved, searched).tolist(),
        "searched": searched.tolist(),
        "known": len(radii),
        "all": STEPS + 1,
        "complete": whole,
    }


QUESTIONS: dict[str, Callable[[Query], Answer]] = {
    "families": families,
    "density": density,
    "radius": radius,
    "curve": curve,
}

LAST_Z = float(special.ndtri(LAST_P))
# One step beyond the last p_A drawn, so that the last piece of the line has a neighbour.
GRID: Array = special.ndtr(np.arange(STEPS + 1) * (LAST_Z / (STEPS - 1)))


def coarse_to_fine(steps: int) -> list[int]:
    """0 … steps, the ends first, then halves, quarters, …"""
    order, stride = [0, steps], steps
    while stride > 1:
        stride //= 2
        order += range(stride, steps, 2 * stride)
    return order


def _line(p: Array, value: Array, at: Array) -> Array:
    """Values at `at` below the rising curve through the points (p, value)."""
    return np.maximum(read_from_below(1 - p, np.maximum.accumulate(value))(1 - at), 0.0)


def _bracket(result: Radius, scale: float) -> Answer:
    proved, searched = result.proved * scale, result.searched * scale
    return {
        "proved": proved if math.isfinite(proved) else None,
        "searched": searched if math.isfinite(searched) else None,
        "proved_text": round_down(proved),
        "searched_text": round_down(searched),
    }


@lru_cache(maxsize=4096)
def _radius(unit: Noise, norm: Norm, dim: int, p_a: float) -> Radius:
    """The radius of a noise at unit scale."""
    return certified_radius(unit, norm, dim, p_a=p_a)


@lru_cache(maxsize=32)
def _build_typed(expression: str, kind: Kind) -> IID:
    parsed = parse_expression(expression)
    try:
        return from_density(parsed.log_density(kind), name=f"typed({parsed.text})")
    except NoiseError as error:
        reason = str(error).replace(HINT, "the density must be integrable")
        reason = reason.replace("logpdf", "log-density")
        raise NoiseError(f"{parsed.text!r} cannot be used as a {kind}: {reason}") from None


def _noise(query: Query) -> tuple[Noise, Answer]:
    """The noise that a query describes, and its text for the command line."""
    family = _word(query, "family")
    if family == TYPED:
        return _read_density(query)
    if family not in FAMILIES:
        known = ", ".join((*FAMILIES, TYPED))
        raise SpecError(f"unknown family {family[:40]!r}; known families: {known}")
    size = _size(query)
    kind = FAMILIES[family]
    taken = [parameter.name for parameter in kind.parameters]
    _only(query, ("family", size, *taken, *ASKED))
    numbers = {name: _number(query, name) for name in (*taken, size)}
    noise = kind(**numbers, dim=_dim(query)) if kind.joint else kind(**numbers)
    return noise, {"noise": noise.text}


def _read_density(query: Query) -> tuple[Noise, Answer]:
    size = _size(query)
    _only(query, ("family", size, "expression", "kind", *ASKED))
    kind = query.get("kind", "density")
    if kind not in KINDS:
        raise SpecError(f"kind={kind[:40]!r} must be one of {', '.join(KINDS)}")
    text = _word(query, "expression").strip()
    shape = _build_typed(text, cast("Kind", kind))
    value = _number(query, size)
    noise = shape.with_sigma(value) if size == "sigma" else shape.scaled(value)
    file = (
        "from unicr.lab.explore import parse_expression\n\n"
        f"log_density = parse_expression({text!r}).log_density({kind!r})\n"
    )
    reference = f"{FILE}:log_density"
    times = "" if noise.scale == 1 else f" * {number(noise.scale)}"
    return noise, {"noise": reference + times, "file": {"name": FILE, "text": file}}


ASKED = ("norm", "dim", "pa", "known")


def _only(query: Query, allowed: tuple[str, ...]) -> None:
    for name in query:
        if name not in allowed:
            raise SpecError(f"unknown setting {name[:40]!r}; known settings: {', '.join(allowed)}")


def _word(query: Query, name: str) -> str:
    if name not in query:
        raise SpecError(f"the query has no {name}=")
    return query[name]


def _size(query: Query) -> str:
    given = [name for name in SIZES if name in query]
    if len(given) != 1:
        raise SpecError("give exactly one of sigma= and scale=")
    return given[0]


def _number(query: Query, name: str, default: float | None = None) -> float:
    text = query.get(name, "") if default is not None else _word(query, name)
    if not text and default is not None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise SpecError(f"{name}={text[:40]!r} is not a number")
    return value


def _norm(query: Query) -> Norm:
    return parse_norm(_word(query, "norm")[:40])


def _dim(query: Query) -> int:
    value = _number(query, "dim")
    if value != int(value) or not 1 <= value <= MOST_DIM:
        raise SpecError(f"dim={number(value)} must be a whole number from 1 to {MOST_DIM}")
    return int(value)
