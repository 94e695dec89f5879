"""A law read from a table: of a density that somebody wrote, or of a law that was conditioned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import ArrayLike

from unicr.errors import NoiseError
from unicr.law._base import Facts, Law
from unicr.law._quadrature import TabulatedDensity
from unicr.values import Array


@dataclass(frozen=True, eq=False)
class Table(Law):
    """Probabilities and quantiles of a `TabulatedDensity`, with the facts that hold of it.

    Two tables are equal where all that their answers rest on is, and their facts.
    """

    density: TabulatedDensity
    known: Facts
    tabulated = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def fingerprint(self) -> str:
        return f"|{self.density.fingerprint}|{self.known}"

    @property
    def facts(self) -> Facts:
        return self.known

    @property
    def std(self) -> float:
        return math.sqrt(self.density.second_moment)

    @property
    def mean(self) -> float:
        return self.density.mean

    @property
    def support(self) -> tuple[float, float]:
        return self.density.support

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return self.density.breakpoints

    @property
    def mesh(self) -> Array:
        return self.density.mesh

    def log_density(self, x: Array, log_unit: float) -> Array:
        return self.density.logpdf(x) - log_unit

    def cdf(self, x: ArrayLike) -> Array:
        return self.density.cdf(x)

    def sf(self, x: ArrayLike) -> Array:
        return self.density.sf(x)

    def ppf(self, u: ArrayLike) -> Array:
        return self.density.ppf(u)

    def isf(self, u: ArrayLike) -> Array:
        return self.density.isf(u)


def check_facts(
    density: TabulatedDensity, name: str, symmetric: bool | None, log_concave: bool | None
) -> Facts:
    """The facts of a density: as declared, or else as a dense grid shows them.

    A declaration that the grid contradicts is refused; one that it does not is believed, and the
    facts say that they are declared (docs/theory.md#grades-and-rounding-charges).
    """
    checked: dict[str, Any] = {
        "symmetric": density.symmetric_about_zero(),
        "log_concave": density.log_concave(),
    }
    for word, declared in (("symmetric", symmetric), ("log_concave", log_concave)):
        if declared and not checked[word]:
            raise NoiseError(f"{name} was declared {word}, but a numerical check finds it is not")
    low, high = density.support
    both_declared = symmetric is not None and log_concave is not None
    return Facts(
        symmetric=checked["symmetric"] if symmetric is None else symmetric,
        log_concave=checked["log_concave"] if log_concave is None else log_concave,
        bounded=math.isfinite(low) and math.isfinite(high),
        finite_variance=math.isfinite(density.second_moment),
        unimodal=checked["log_concave"] or density.unimodal(),
        positive=density.positive(),
        source="declared" if both_declared else "checked",
    )
