"""A one-dimensional distribution with a density, as a value: what every noise is made of.

A law says its probabilities, its quantiles and the facts that a certifier may use. `scaled` and
`given` make other laws of it: they are the only places where a law is multiplied or conditioned.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from unicr.values import Array

if TYPE_CHECKING:
    import torch

    from unicr.law._table import Table


@dataclass(frozen=True)
class Facts:
    """What a certifier may rely on, and where that knowledge comes from.

    `source` is "analytic" (a formula of this package), "declared" (the user's word) or
    "checked" (tested numerically on a dense grid, not proved). Unimodal means one rise, one fall
    (an i.i.d. noise: each coordinate; a joint one: along every line through zero). Positive means
    a density above zero almost everywhere, no holes and no end on any side: only then does
    p_A = 1 certify every radius. False where nobody knows.
    """

    symmetric: bool
    log_concave: bool
    bounded: bool
    finite_variance: bool
    unimodal: bool = True
    positive: bool = False
    source: Literal["analytic", "declared", "checked"] = "analytic"


class Law(ABC):
    """The distribution of one real number X. Immutable; equal laws are one and the same law.

    `normal_sigma` and `half_width` are for the two laws that theorems know by formula in every
    norm: the σ of N(0, σ²), and the λ of the uniform law on [−λ, λ]; None for all others.
    """

    @property
    def tabulated(self) -> bool:
        """Whether probabilities and quantiles are read from a table instead of formulas."""
        return False

    @property
    def normal_sigma(self) -> float | None:
        """σ where X follows N(0, σ²), else None."""
        return None

    @property
    def half_width(self) -> float | None:
        """λ where X is uniform on [−λ, λ], else None."""
        return None

    @property
    def fingerprint(self) -> str:
        """What tells laws of one name apart; empty where the name says all, as for a formula."""
        return ""

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """Symmetric? Log-concave? Unimodal? Bounded? They are facts, not estimates."""

    @property
    @abstractmethod
    def std(self) -> float:
        """sqrt(E X²), about zero; inf where it does not exist."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """E X, nan where it does not exist."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The smallest interval that holds all the mass."""

    @property
    @abstractmethod
    def breakpoints(self) -> tuple[float, ...]:
        """Where the density is not smooth: cusps, jumps, ends of a bounded support."""

    @property
    def mesh(self) -> Array:
        """Points so dense that between two of them the density is smooth, as far as is known."""
        return np.asarray(self.breakpoints, dtype=np.float64)

    def ratio_turns(self, shift: float) -> tuple[float, ...] | None:
        """Points between which log p(x − shift) − log p(x) is monotone, None where not known.

        Trade-offs read the range of that ratio in a cell from the cell's ends, which is a bound
        only if no turn lies inside (docs/theory.md#lemma-4-cells).
        """
        return () if self.facts.log_concave else None

    @abstractmethod
    def log_density(self, x: Array, log_unit: float) -> Array:
        """log p(x) − log_unit, rounded once: the log-density of s·X at s·x, log_unit = log s."""

    def log_density_of_tensor(self, x: torch.Tensor, log_unit: float) -> torch.Tensor:
        """The same for a float64 tensor on any device."""
        import torch

        values = self.log_density(x.detach().cpu().numpy(), log_unit)
        return torch.from_numpy(np.ascontiguousarray(values)).to(x.device)

    def logpdf(self, x: ArrayLike) -> Array:
        """Log of the normalised density."""
        return self.log_density(np.asarray(x, dtype=np.float64), 0.0)

    def pdf(self, x: ArrayLike) -> Array:
        """The normalised density."""
        return np.exp(self.logpdf(x))

    @abstractmethod
    def cdf(self, x: ArrayLike) -> Array:
        """P(X ≤ x), with full relative accuracy in the lower tail."""

    @abstractmethod
    def sf(self, x: ArrayLike) -> Array:
        """P(X > x), with full relative accuracy in the upper tail."""

    @abstractmethod
    def ppf(self, u: ArrayLike) -> Array:
        """The x with cdf(x) = u."""

    @abstractmethod
    def isf(self, u: ArrayLike) -> Array:
        """The x with sf(x) = u."""

    def mass_between(self, low: float, high: float) -> float:
        """P(low < X ≤ high), from the side on which the difference cancels less."""
        return max(float(self.cdf(high) - self.cdf(low)), float(self.sf(low) - self.sf(high)))

    def scaled(self, factor: float) -> Law:
        """The law of factor·X, factor > 0."""
        return self if factor == 1.0 else Scaled(self, factor)

    def given(self, low: float, high: float) -> Table:
        """The law of X given that low ≤ X ≤ high: its density renormalised, as a table.

        A restriction of a log-concave (or unimodal) density has that fact too; it is symmetric
        where the density and the interval are. It has every moment.
        """
        from unicr.law._quadrature import TabulatedDensity
        from unicr.law._table import Table

        ends = (max(low, self.support[0]), min(high, self.support[1]))
        inner = [b for b in self.breakpoints if ends[0] < b < ends[1]]
        facts = replace(
            self.facts,
            symmetric=self.facts.symmetric and low == -high,
            bounded=True,
            positive=False,
            finite_variance=True,
        )
        return Table(TabulatedDensity.build(self.logpdf, support=ends, points=inner), facts)


@dataclass(frozen=True)
class Scaled(Law):
    """The law of factor·X, where X has the law `base`."""

    base: Law
    factor: float

    @property
    def tabulated(self) -> bool:
        return self.base.tabulated

    @property
    def normal_sigma(self) -> float | None:
        sigma = self.base.normal_sigma
        return None if sigma is None else sigma * self.factor

    @property
    def half_width(self) -> float | None:
        width = self.base.half_width
        return None if width is None else width * self.factor

    @property
    def fingerprint(self) -> str:
        return self.base.fingerprint

    @property
    def facts(self) -> Facts:
        return self.base.facts

    @property
    def std(self) -> float:
        return self.base.std * self.factor

    @property
    def mean(self) -> float:
        return self.base.mean * self.factor

    @property
    def support(self) -> tuple[float, float]:
        low, high = self.base.support
        return (low * self.factor, high * self.factor)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return tuple(b * self.factor for b in self.base.breakpoints)

    @property
    def mesh(self) -> Array:
        return self.base.mesh * self.factor

    def ratio_turns(self, shift: float) -> tuple[float, ...] | None:
        unit = shift / self.factor
        turns = self.base.ratio_turns(unit)
        if turns is None:
            return None
        # A turn at the shift itself is a cusp of the density: it must not move by a rounding.
        return tuple(shift if turn == unit else turn * self.factor for turn in turns)

    def log_density(self, x: Array, log_unit: float) -> Array:
        return self.base.log_density(x / self.factor, math.log(self.factor) + log_unit)

    def log_density_of_tensor(self, x: torch.Tensor, log_unit: float) -> torch.Tensor:
        shift = math.log(self.factor) + log_unit
        return self.base.log_density_of_tensor(x / self.factor, shift)

    def cdf(self, x: ArrayLike) -> Array:
        return self.base.cdf(np.asarray(x, dtype=np.float64) / self.factor)

    def sf(self, x: ArrayLike) -> Array:
        return self.base.sf(np.asarray(x, dtype=np.float64) / self.factor)

    def ppf(self, u: ArrayLike) -> Array:
        return self.base.ppf(u) * self.factor

    def isf(self, u: ArrayLike) -> Array:
        return self.base.isf(u) * self.factor

    def scaled(self, factor: float) -> Law:
        return self.base.scaled(self.factor * factor)
