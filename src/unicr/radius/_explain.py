"""Where a radius comes from: its theorem, the files that compute it, the charges of rounding."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import unicr
from unicr.noise import Noise
from unicr.norms import Norm
from unicr.radius._question import Evidence, Question, SecondLaw, simplify_question
from unicr.radius._rounding import CHARGES, lower_radius
from unicr.radius.theorems import NOTHING_PROVED, Theorem, list_bounds, list_theorems, prove
from unicr.text import round_down

PACKAGE = Path(unicr.__file__).parent


@dataclass(frozen=True)
class Explanation:
    """The steps that lead to a proved radius; as text, one line for each.

    `unit_radius` is what the theorem gives at scale 1, `proved` is that times `scale`, rounded
    down. `theorems` are those that the proof uses, the one that gives the radius first, each with
    its place on the theory page; `files` are all that compute it, with what they say of themselves,
    in the order in which a reader needs them; `charges` are the bounds of rounding errors that are
    taken off; `others` are the radii of the other theorems that apply, at scale 1.
    """

    question: str
    theorems: tuple[str, ...]
    grade: str
    unit_radius: float
    scale: float
    proved: float
    files: tuple[str, ...]
    charges: tuple[str, ...]
    others: tuple[str, ...]

    def __str__(self) -> str:
        rows = [
            ("question", [self.question]),
            ("theorem", [*self.theorems]),
            ("grade", [self.grade]),
            ("at scale 1", [f"{round_down(self.unit_radius)}"]),
            (
                "proved",
                [f"{round_down(self.proved)}   times the scale {self.scale:g}, rounded down"],
            ),
            ("others", [*self.others] or ["no other theorem was asked, or gives a radius"]),
            ("files", [*self.files]),
            ("charges", [*self.charges]),
        ]
        return "\n".join(
            f"{name if i == 0 else '':<10} {line}"
            for name, lines in rows
            for i, line in enumerate(lines)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def explain_radius(
    noise: Noise,
    norm: Norm | float | str,
    dim: int | None = None,
    *,
    p_a: float,
    p_b: float | None = None,
    second: SecondLaw | None = None,
) -> Explanation:
    """Tell how `certified_radius` comes to the radius that it proves.

    It asks every theorem again, so it takes about as long; no curve and nothing else from this
    machine's disk is read.

    Parameters
    ----------
    noise, norm, dim, p_a, p_b, second
        As in `certified_radius`; `p_a` is one number.

    Returns
    -------
    Explanation
        Theorem, files, charges and the radii of the theorems that gave less. Print it.

    Examples
    --------
    >>> from unicr import noise, radius
    >>> how = radius.explain_radius(noise.gaussian(sigma=0.5), 2, 3072, p_a=0.99)
    >>> how.theorems
    ('(d) Gaussian: docs/theory.md#theorem-d',)
    >>> round(how.unit_radius, 4), round(how.scale, 4), round(how.proved, 4)
    (1.645, 0.7071, 1.1632)
    """
    evidence = Evidence(p_a, p_b, second)
    question, asked = (
        Question(noise, norm, dim),
        simplify_question(Question(noise, norm, dim), plain=True),
    )
    laws, without = 1, _name_certainty(noise, evidence)
    proof = NOTHING_PROVED if without else prove(asked, evidence.first)
    if second is not None and not without:
        both = prove(question, evidence, laws=2)
        if both.radius > proof.radius:
            asked, proof, laws = question, both, 2
    known = {theorem.letter: theorem for theorem in list_theorems()}
    used = [known[letter] for letter in re.findall(r"\((\w)\)", proof.theorem) if letter in known]
    unit, others = 0.0, []
    for bound in () if without else list_bounds(asked, laws=laws):
        single = bound.proof(evidence if laws == 2 else evidence.first)
        if single.theorem == proof.theorem:
            unit = max(unit, single.radius)
        elif single.radius > 0:
            others.append(f"{round_down(single.radius)}   {single.theorem}")
    radius = math.inf if evidence.p_a == 1.0 and without else proof.radius
    letters = {theorem.letter for theorem in used} | {"all"}
    return Explanation(
        question=f"{noise.text} in {asked.norm}, dimension {asked.dim}, "
        f"p_A = {evidence.p_a:g}, p_B = {evidence.p_b:g}",
        theorems=tuple(f"{t.name}: docs/theory.md#{t.anchor}" for t in used)
        or (without or "no theorem proves anything here",),
        grade=str(proof.grade or ("nothing is proved" if radius == 0 else noise.facts.source)),
        unit_radius=radius if without else unit,
        scale=asked.noise.scale,
        proved=radius,
        files=tuple(map(_describe_file, _list_modules(asked.noise, used))),
        charges=tuple(
            f"{charge.of}: {charge.size}; {charge.reason}; unicr/{charge.constant}"
            for charge in CHARGES
            if used and letters & set(charge.theorems.split(", "))
        ),
        others=tuple(others),
    )


def _name_certainty(noise: Noise, evidence: Evidence) -> str:
    """Why no theorem is asked; empty if they are."""
    if evidence.abstains:
        return "none is asked: p_A is not above p_B"
    if evidence.p_a == 1.0 and noise.facts.positive:
        return "none is asked: p_A = 1 under a density above 0 holds under every shift too"
    return ""


def _list_modules(noise: Noise, used: Iterable[Theorem]) -> Iterator[str]:
    """The modules of the density, the theorem, what computes it, and the last rounding."""
    for part in noise.certifying:
        yield type(part).__module__ if part.made_by is None else part.made_by.module
    for theorem in used:
        yield theorem.match.__module__
        yield from theorem.computed_in
    yield from (prove.__module__, lower_radius.__module__)


def _describe_file(name: str) -> str:
    """Where a module is, with the first sentence that it says of itself."""
    module = importlib.import_module(name)
    path = Path(module.__file__ or name)
    shown = path.relative_to(PACKAGE.parent) if path.is_relative_to(PACKAGE.parent) else path
    return f"{shown}: {(module.__doc__ or '').strip().partition(chr(10))[0]}"
