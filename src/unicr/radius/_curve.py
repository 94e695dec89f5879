"""p_A–R curves: the binary radius as a function of p_A, computed once per shape, then read.

A curve holds steps (p_k, r_k) at which r_k is certified at p_k, made at unit scale. A proved
reading is at most what the theorem gives at that p_A (`_steps`, `_readings`); it costs nanoseconds.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import RadiusError
from unicr.noise import IID, Noise, SphericalNoise
from unicr.noise.internal import CrossNoise, CubeNoise, RadialNoise, plainest
from unicr.norms import Norm, parse_norm
from unicr.radius._cache import cached
from unicr.radius._radius import above, check_dimension
from unicr.radius._readings import FINE, FIRST, LAST, Readings
from unicr.radius._steps import proved_steps
from unicr.radius._worst import NODES, WorstDirection, from_below, nodes
from unicr.radius.theorems import Theorem, exact, prove, theorems
from unicr.tables import to_html
from unicr.tradeoff import TradeOff
from unicr.values import Array

ROUNDING = 1e-12
READING_ERROR = 3e-3  # by which a searched curve may be read too low
Steps = tuple[Array, Array]


class RadiusCurve:
    """R(p_A) for one noise, norm and dimension, binary case (p_B = 1 − p_A).

    `curve(p)` is the proved radius, never above what a theorem gives at that p; with
    `searched=True` it is the paper's approximate one, interpolated between its nodes. Both are
    vectorised. Below 1/2 the radius is 0; beyond 1 − 1e-11 it stays; p = 1 gives inf where the
    density is positive everywhere. Computed on first use, kept on disk.
    """

    def __init__(self, noise: Noise, norm: Norm | float | str, dim: int | None = None) -> None:
        law = plainest(noise)
        if not isinstance(law, IID | RadialNoise):
            raise RadiusError(f"{noise.text} has no curve: its coordinates are not independent")
        self.noise = noise
        self.norm = parse_norm(norm)
        self.dim = check_dimension(noise, dim)
        if isinstance(law, CrossNoise) and exact(law, self.norm, self.dim) is None:
            raise RadiusError(
                f"{noise.text} has no curve in {self.norm}: it has one in lp with p <= 1; "
                "unicr.radius.certified_radius gives single radii"
            )
        if isinstance(law, SphericalNoise) and exact(law, self.norm, self.dim) is None:
            raise RadiusError(
                f"{noise.text} has no curve: its density rises with the length somewhere; "
                "unicr.radius.certified_radius samples single radii"
            )
        self._scale = law.scale
        self._shape = _shape(law.unit, self.norm, self.dim)

    def __call__(self, p: ArrayLike, *, searched: bool = False) -> Array:
        table = self._shape.searched_table if searched else self._shape.proved_table
        return table.read(p) * self._scale

    def __repr__(self) -> str:
        return f"RadiusCurve({self.noise!r}, {self.norm}, dimension {self.dim})"

    def _repr_html_(self) -> str:
        about = f"<p>{html.escape(repr(self))}</p>"
        if not self._shape.instant("proved") and "proved" not in vars(self._shape):
            return about  # to make it may take minutes: nobody asked for that
        rows = [{"p_a": p, "proved": float(self(p))} for p in (0.6, 0.7, 0.8, 0.9, 0.99, 0.999)]
        return about + to_html(rows)


def shape_of(curve: RadiusCurve) -> _Shape:
    """What a curve reads, at unit scale."""
    return curve._shape


@lru_cache(maxsize=128)
def _shape(unit: IID | RadialNoise, norm: Norm, dim: int) -> _Shape:
    return _Shape(unit, norm, dim)


class _Shape:
    """The steps and tables of one curve at unit scale."""

    def __init__(self, unit: IID | RadialNoise, norm: Norm, dim: int) -> None:
        self.unit, self.norm, self.dim = unit, norm, dim
        self.key = f"{unit.cache_key}|{norm.text}|{dim}"

    def instant(self, kind: str) -> bool:
        """Whether nothing is stored for this curve: it has a closed form, or is the other one."""
        if self._known is None:
            return False
        return kind == "searched" or self._known.closed(self.unit, self.norm, self.dim) is not None

    @cached_property
    def proved(self) -> Steps:
        """(1 − p, r): r is proved at p."""
        closed = self._known and self._known.closed(self.unit, self.norm, self.dim)
        if closed:
            with np.errstate(divide="ignore"):
                return FINE, np.maximum(closed(FINE), 0.0) * (1 - ROUNDING)
        return self._stored("proved", self._prove)

    @cached_property
    def searched(self) -> Steps:
        """(1 − p, r): r is certified at p along every direction that was searched."""
        return self.proved if self._known else self._stored("searched", self._search)

    @cached_property
    def proved_table(self) -> Readings:
        return Readings(*self.proved, math.inf if self.unit.facts.positive else None)

    @cached_property
    def searched_table(self) -> Readings:
        if self._known:
            return self.proved_table
        read = np.maximum(from_below(*self.searched)(FINE), 0.0)
        return Readings(FINE, read, math.inf if self.unit.facts.positive else None)

    @cached_property
    def _known(self) -> Theorem | None:
        return exact(self.unit, self.norm, self.dim)

    def _stored(self, kind: str, make: Callable[[], Steps]) -> Steps:
        def arrays() -> dict[str, Array]:
            alpha, radius = make()
            return {"alpha": alpha, "radius": radius}

        found = cached(f"curve-{kind}", self.key, arrays)
        return found["alpha"], found["radius"]

    def _prove(self) -> Steps:
        where = (self.unit, self.norm, self.dim)
        if self._known is not None:
            theorem = self._known
            if (whole := theorem.curve(*where)) is not None:
                return whole
            first = theorem.radius(*where, FIRST, 1.0 - FIRST)
            last = theorem.radius(*where, 1.0 - LAST, LAST)

            def tradeoff(r: float) -> TradeOff:
                found = theorem.tradeoff(*where, r)
                assert found is not None, f"{theorem.name} has neither a closed form nor a T"
                return found

            return proved_steps(tradeoff, first, last)
        curves = [
            found
            for one in theorems()
            if one.applies(*where) and (found := one.curve(*where)) is not None
        ]
        return _best(curves) if curves else self._prove_nodes()

    def _prove_nodes(self) -> Steps:
        """Where theorems answer one p_A at a time: at some nodes of the searched curve."""
        alpha, searched = self.searched
        keep = np.unique(np.linspace(0, len(alpha) - 1, NODES // 2).astype(int))
        proved = np.zeros(len(keep))
        for j, i in enumerate(keep):
            if alpha[i] < 0.5:
                p_a, p_b = 1.0 - alpha[i], float(alpha[i])
                proof = prove(self.unit, self.norm, self.dim, p_a, p_b)
                above(proof, searched[i], "composition along the worst directions", READING_ERROR)
                proved[j] = proof.radius
        return alpha[keep], np.maximum.accumulate(proved)

    def _search(self) -> Steps:
        assert isinstance(self.unit, IID | CubeNoise)
        worst = WorstDirection(self.unit, self.norm, self.dim)
        return nodes(worst.alpha, worst.last)


def _best(curves: list[Steps]) -> Steps:
    """The best of several proved curves: every step of each of them."""
    alpha = np.concatenate([one[0] for one in curves])
    radius = np.concatenate([one[1] for one in curves])
    order = np.argsort(-alpha, kind="stable")
    return alpha[order], np.maximum.accumulate(radius[order])
