"""(n) Two or three coordinates, unimodal noise, finite p: every direction, box by box."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import product

from unicr.noise import IID
from unicr.radius._boundary import find_first_root
from unicr.radius._grade import Grade, grade_proof
from unicr.radius._question import Evidence, Question
from unicr.radius.theorems._base import Bound, Theorem
from unicr.tradeoff import compute_tradeoff
from unicr.tradeoff.internal import compute_margin, compute_start_margin, guess_radius

# How finely boxes are cut and directions tried; any cover of all directions proves.
LOSSES = (0.015, 0.006, 0.0015)  # of the radius: what the boxes may cost, tried in this order
MOST_VALUES = 600  # values of T after which a finer cover is given up
GRID_OF_DIMENSION = {2: 16, 3: 8}  # points per coordinate at which the boundary is sought
SEARCH_TOLERANCE = 1e-4  # of the boundary along one direction: only where the cover begins
LEAST_SHARE = 0.1  # of that boundary: a smaller radius is not worth a cover

Box = tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class FewBound(Bound):
    """With v_i = |δ_i|^p/r^p sorted downwards, v_2, v_3 lie in some box of a cover.

    In a box no coordinate is larger than its corner: v_i ≤ its upper end there, v_1 ≤ 1 − Σ lower
    ends. T falls with every |δ_i| ((c)), so T at the corner bounds all of the box. Boxes whose
    corner fails are cut in two until the corner's norm is close to r
    (docs/theory.md#theorem-n).
    """

    law: IID
    p: float
    dim: int

    def radius(self, evidence: Evidence) -> float:
        if evidence.abstains:
            return 0.0
        law, p, dim, spent = self.law, self.p, self.dim, 0
        p_a, p_b = evidence.p_a, evidence.p_b

        def value(shares: tuple[float, ...], r: float) -> float:
            nonlocal spent
            sizes = [r * v ** (1 / p) for v in shares if v > 0]
            least = math.inf
            for signs in product(self._signs, repeat=len(sizes)):
                spent += 1
                moved = [(sign * size, 1) for sign, size in zip(signs, sizes, strict=True)]
                least = min(least, compute_margin(compute_tradeoff(law, moved), p_a, p_b))
                if least < 0:  # whichever sign fails: the corner does
                    break
            return least

        top = math.inf
        for direction in _list_directions(dim):
            along = partial(value, direction)
            if math.isinf(top) or along(top) < 0:
                guess = min(top, guess_radius(p_a, p_b))
                start = compute_start_margin(p_a, p_b)
                top = find_first_root(
                    along, start, guess, monotone=True, tolerance=SEARCH_TOLERANCE
                )
        proved, spent = 0.0, 0

        def holds(r: float, finest: float) -> bool:
            stack: list[Box] = [tuple((0.0, 1.0 / i) for i in range(2, dim + 1))]
            while stack:
                box = stack.pop()
                corner = (1.0 - sum(low for low, _ in box), *(high for _, high in box))
                if not _has_sorted_point(box) or value(corner, r) >= 0:
                    continue
                small = sum(high - low for low, high in box) <= finest
                if small or (proved > 0 and spent > MOST_VALUES):
                    return False
                stack.extend(_cut_in_two(box))
            return True

        for loss in LOSSES:
            r = top * (1 - loss)
            while r > max(proved, LEAST_SHARE * top) and not holds(r, p * loss / 2):
                r *= 1 - loss
            proved = max(proved, r if r > LEAST_SHARE * top else 0.0)
        return proved

    @property
    def _signs(self) -> tuple[float, ...]:
        """The signs that a coordinate may have: noise that is even does not tell them apart."""
        return (1.0,) if self.law.facts.symmetric else (1.0, -1.0)


def match(question: Question) -> FewBound | None:
    """Two or three unimodal coordinates and a finite p."""
    law = question.noise.iid
    if law is None or question.dim not in GRID_OF_DIMENSION or not math.isfinite(question.norm.p):
        return None
    if not law.facts.unimodal:
        return None
    return FewBound(
        theorem=THEOREM.name,
        grade=grade_proof(Grade.FLOATING_POINT, law, ranges=True),
        engine="composition",
        law=law,
        p=question.norm.p,
        dim=question.dim,
    )


def _list_directions(dim: int) -> list[tuple[float, ...]]:
    n = GRID_OF_DIMENSION[dim]
    if dim == 2:
        return [(1 - i / (2 * n), i / (2 * n)) for i in range(n + 1)]
    return [
        (1 - (i + j) / (2 * n), i / (2 * n), j / (2 * n))
        for i in range(n + 1)
        for j in range(i + 1)
        if 2 * i + j <= 2 * n
    ]


def _has_sorted_point(box: Box) -> bool:
    """Whether the box has a point with v_1 ≥ v_2 ≥ v_3."""
    low = [least for least, _ in box]
    return low[0] <= 1.0 - sum(low) and all(low[i + 1] <= box[i][1] for i in range(len(box) - 1))


def _cut_in_two(box: Box) -> list[Box]:
    i = max(range(len(box)), key=lambda j: box[j][1] - box[j][0])
    low, high = box[i]
    middle = 0.5 * (low + high)
    return [(*box[:i], half, *box[i + 1 :]) for half in ((low, middle), (middle, high))]


THEOREM = Theorem(
    "n",
    "two or three coordinates, box by box",
    "finite p, dimension 2 or 3; unimodal",
    match,
    rank=3,
    computed_in=(
        "unicr.tradeoff._margin",
        "unicr.tradeoff._compose",
    ),
)
