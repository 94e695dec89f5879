"""A law read from a table: of a density that somebody wrote, or of a law that was conditioned."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import NoiseError
from unicr.law._base import Curvature, Facts, Law
from unicr.law._fit import NotOfThatShapeError, fit_pieces
from unicr.law._pieces import Pieces
from unicr.law._quadrature import TabulatedDensity
from unicr.values import Array


@dataclass(frozen=True, eq=False)
class Table(Law):
    """Probabilities and quantiles of `Pieces`, with the facts that hold of them.

    Two tables are equal where all that their answers rest on is, and their facts. `mean` and `std`
    are nan and inf if the density that the table was made of has none, though every table has.
    """

    pieces: Pieces
    known: Facts
    mean: float = math.nan
    std: float = math.inf
    tabulated = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def fingerprint(self) -> str:
        return f"|{self.pieces.fingerprint}|{self.known}"

    @property
    def facts(self) -> Facts:
        return self.known

    @property
    def support(self) -> tuple[float, float]:
        return self.pieces.support

    @cached_property
    def breakpoints(self) -> tuple[float, ...]:
        """Jumps, ends, and the highest knots, where a peak may be."""
        top = max(float(self.pieces.start.max()), float(self.pieces.end.max()))
        peaks = self.pieces.knots[:-1][self.pieces.start == top]
        peaks = np.append(peaks, self.pieces.knots[1:][self.pieces.end == top])
        return tuple(np.union1d(self.pieces.jumps, peaks[[0, -1]]).tolist())

    def log_density(self, x: Array, log_unit: float) -> Array:
        return self.pieces.logpdf(x) - log_unit

    def cdf(self, x: ArrayLike) -> Array:
        return self.pieces.cdf(x)

    def sf(self, x: ArrayLike) -> Array:
        return self.pieces.sf(x)

    def ppf(self, u: ArrayLike) -> Array:
        return self.pieces.ppf(u)

    def isf(self, u: ArrayLike) -> Array:
        return self.pieces.isf(u)

    def masses(self, low: Array, high: Array) -> Array:
        return self.pieces.masses(low, high)

    def bound_ratio(self, shift: float, left: Array, right: Array) -> tuple[Array, Array]:
        return self.pieces.bound_ratio(shift, left, right)

    @property
    def jumps(self) -> Array:
        return self.pieces.jumps

    @property
    def curvature(self) -> Curvature:
        return self.pieces.curvature

    def look(self, edges: Array) -> tuple[Array, Array, Array]:
        return self.pieces.look(edges)

    def given(self, low: float, high: float) -> Table:
        return describe(self.pieces.cut(low, high))


def describe(pieces: Pieces) -> Table:
    """A table with the facts of its pieces."""
    low, high = pieces.support
    facts = Facts(
        symmetric=pieces.symmetric,
        log_concave=pieces.log_concave,
        bounded=math.isfinite(low) and math.isfinite(high),
        finite_variance=True,
        unimodal=pieces.unimodal,
        positive=pieces.positive,
        source="table",
    )
    return Table(pieces, facts, pieces.moment(1), math.sqrt(pieces.moment(2)))


def tabulate(
    density: TabulatedDensity,
    name: str,
    symmetric: bool | None = None,
    log_concave: bool | None = None,
) -> Table:
    """The table that stands for a density; NoiseError if it has not a shape that is declared.

    Declared False, a shape is not made, and not claimed.
    """
    try:
        pieces = fit_pieces(density, symmetric=symmetric, log_concave=log_concave)
    except NotOfThatShapeError as error:
        raise NoiseError(f"{name} was declared to be {error.shape}, but it is not") from None
    table = describe(pieces)
    facts = replace(
        table.known,
        symmetric=table.known.symmetric and symmetric is not False,
        log_concave=table.known.log_concave and log_concave is not False,
    )
    if math.isfinite(density.second_moment):
        return replace(table, known=facts)
    facts = replace(facts, finite_variance=False)
    mean = table.mean if math.isfinite(density.mean) else math.nan
    return Table(pieces, facts, mean, math.inf)
