"""A one-dimensional distribution with a density, as a value: what every noise is made of.

A law says its probabilities, its quantiles and the facts that a certifier may use. `scaled` and
`given` make other laws of it: they are the only places where a law is multiplied or conditioned.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from unicr.values import Array

if TYPE_CHECKING:
    import torch

# of `invert_tail`
FARTHEST = 800.0  # exp(−800) is below every float: no tail that falls like exp(−z) is searched on
SMALLEST = 5e-324  # the least float above 0: quantiles below it are infinite
MOST_STEPS = 180  # halving every third step, 60 halvings reach the last place of z
# A step this short changes z by no more than its own last place.
SETTLED, SETTLED_SHARE = 1e-16, 4e-16


@dataclass(frozen=True)
class Facts:
    """Facts about a density that theorems use, and where they come from.

    `source` is "analytic" (a formula of this package), "table" (read exactly from the numbers of a
    table), "declared" (stated by the user) or "checked" (tested at many points, not proved).
    Unimodal means that the density rises and then falls (i.i.d. noise: in each coordinate; joint
    noise: along every line through zero). Positive means that the density is above zero almost
    everywhere; only then does p_A = 1 certify every radius. A fact that is not known is False.
    """

    symmetric: bool
    log_concave: bool
    bounded: bool
    finite_variance: bool
    unimodal: bool = True
    positive: bool = False
    source: Literal["analytic", "table", "declared", "checked"] = "analytic"


@dataclass(frozen=True, eq=False)
class Curvature:
    """Where a density is convex or concave, and how much its slopes fall.

    Between two neighbouring `places` it is one of them: concave inside the intervals `concave`,
    else convex; at the places `falls` its slope falls, or it jumps. `slope_fall` is by how much
    slopes fall in all, in the concave parts and at those places (inf at a cusp of infinite slope),
    `jump` the sum of all jumps, `variation` how much the density goes up and down in all. `flat`
    says whether it is constant between its jumps.
    """

    places: Array
    falls: Array
    concave: tuple[tuple[float, float], ...]
    slope_fall: float
    jump: float
    variation: float
    flat: bool = False

    def bound_excess(self, width: float) -> float:
        """How far the probability of any event may lie above its chord over so long a shift.

        Its second derivative is at least −`slope_fall` in all but the jumps', its slope changes by
        at most the jumps' sum, and nothing moves it by more than half the variation for each unit
        of the shift (docs/theory.md#theorem-j, "All shifts").
        """
        bent = self.slope_fall * width * width / 8 + self.jump * width / 4
        return min(bent, 0.5 * self.variation * width) * (1 + 1e-9)


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
        """What tells laws of one name apart; empty if the name says all, as for a formula."""
        return ""

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """Symmetric? Log-concave? Unimodal? Bounded? They are facts, not estimates."""

    @property
    @abstractmethod
    def std(self) -> float:
        """sqrt(E X²), about zero; inf if it does not exist."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """E X, nan if it does not exist."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The smallest interval that holds all the mass."""

    @property
    @abstractmethod
    def breakpoints(self) -> tuple[float, ...]:
        """Where the density is not smooth: cusps, jumps, ends of a bounded support."""

    def ratio_turns(self, shift: float) -> tuple[float, ...] | None:
        """Points between which log p(x − shift) − log p(x) is monotone, None if not known.

        Trade-offs read the range of that ratio in a cell from the cell's ends, which is a bound
        only if no turn lies inside (docs/theory.md#lemma-4-cells).
        """
        return () if self.facts.log_concave else None

    @property
    def curvature(self) -> Curvature | None:
        """Where the density is convex or concave; None if that is not known."""
        return None

    def look(self, edges: Array) -> tuple[Array, Array, Array]:
        """The density at both ends of the cells between rising edges, from inside, and their mass.

        No cell has one of the `places` of `curvature` inside.
        """
        density, (below, above) = self.pdf(edges), self.tails(edges)
        mass = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
        return density[:-1], density[1:], mass

    def tails(self, x: Array) -> tuple[Array, Array]:
        """`cdf` and `sf` at the same places."""
        return self.cdf(x), self.sf(x)

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

    def masses(self, low: Array, high: Array) -> Array | None:
        """P(low < X ≤ high) of each pair, right relative to itself; None where only `cdf` knows."""
        return None

    def bound_ratio(self, shift: float, left: Array, right: Array) -> tuple[Array, Array] | None:
        """Least and largest log p(z − shift) − log p(z) for left < z < right, rounded outwards.

        None if that is not known. The cells must be apart from the `jumps` of both copies.

        See docs/theory.md#lemma-4.
        """
        return None

    @property
    def jumps(self) -> Array:
        """Where the density is not continuous, ends of the support among them, if `bound_ratio` is
        known.
        """
        return np.zeros(0)

    def mass_between(self, low: float, high: float) -> float:
        """P(low < X ≤ high), from the side on which the difference cancels less."""
        return max(float(self.cdf(high) - self.cdf(low)), float(self.sf(low) - self.sf(high)))

    def scaled(self, factor: float) -> Law:
        """The law of factor·X, factor > 0."""
        return self if factor == 1.0 else Scaled(self, factor)

    def given(self, low: float, high: float) -> Law:
        """The law of X given that low ≤ X ≤ high: its density renormalised, as a table.

        It has every moment.
        """
        from unicr.law._quadrature import TabulatedDensity
        from unicr.law._table import tabulate

        ends = (max(low, self.support[0]), min(high, self.support[1]))
        inner = [b for b in self.breakpoints if ends[0] < b < ends[1]]
        return tabulate(TabulatedDensity.build(self.logpdf, support=ends, points=inner), "it")


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

    def masses(self, low: Array, high: Array) -> Array | None:
        return self.base.masses(low / self.factor, high / self.factor)

    def bound_ratio(self, shift: float, left: Array, right: Array) -> tuple[Array, Array] | None:
        f = self.factor
        return self.base.bound_ratio(shift / f, left / f, right / f)

    @property
    def jumps(self) -> Array:
        return self.base.jumps * self.factor

    def scaled(self, factor: float) -> Law:
        return self.base.scaled(self.factor * factor)

    def given(self, low: float, high: float) -> Law:
        return self.base.given(low / self.factor, high / self.factor).scaled(self.factor)


class SymmetricLaw(Law):
    """A density p(x) = p(−x), by formulas for x ≥ 0.

    A subclass is a frozen dataclass of its parameters with a kernel (log-density up to a constant),
    the constant, the tail and its inverse; everything else follows from symmetry. The tail must
    have full relative accuracy, and its inverse too: the sampler's thresholds and the closed forms
    of radii rest on them.
    """

    @property
    def log_concave(self) -> bool:
        """Whether the kernel is concave."""
        return True

    @property
    def mean(self) -> float:
        return 0.0

    @property
    def support(self) -> tuple[float, float]:
        return (-math.inf, math.inf)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return ()

    @property
    @abstractmethod
    def log_norm(self) -> float:
        """log of the integral of exp(kernel) over the line."""

    @abstractmethod
    def kernel(self, z: Any, xp: Any) -> Any:
        """Unnormalised log-density, written with functions that numpy and torch both have."""

    @abstractmethod
    def tail(self, z: Array) -> Array:
        """P(X > z) for z ≥ 0, infinity included."""

    @abstractmethod
    def tail_inverse(self, v: Array) -> Array:
        """The z ≥ 0 with P(X > z) = v, for 0 ≤ v ≤ 1/2."""

    @property
    def facts(self) -> Facts:
        bounded = math.isfinite(self.support[1])
        return Facts(
            symmetric=True,
            log_concave=self.log_concave,
            bounded=bounded,
            finite_variance=math.isfinite(self.std),
            positive=not bounded,
        )

    def log_density(self, x: Array, log_unit: float) -> Array:
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            kernel = np.asarray(self.kernel(x, np), dtype=np.float64)
        return kernel - (self.log_norm + log_unit)

    def log_density_of_tensor(self, x: torch.Tensor, log_unit: float) -> torch.Tensor:
        import torch

        kernel: torch.Tensor = self.kernel(x, torch)
        return kernel - (self.log_norm + log_unit)

    def sf(self, x: ArrayLike) -> Array:
        z = np.asarray(x, dtype=np.float64)
        with np.errstate(over="ignore", under="ignore"):
            tail = self.tail(np.abs(z))
        return np.where(z > 0, tail, 1.0 - tail)

    def tails(self, x: Array) -> tuple[Array, Array]:
        with np.errstate(over="ignore", under="ignore"):
            tail = self.tail(np.abs(x))
        rest = 1.0 - tail
        return np.where(x < 0, tail, rest), np.where(x > 0, tail, rest)

    def cdf(self, x: ArrayLike) -> Array:
        return self.sf(-np.asarray(x, dtype=np.float64))

    def isf(self, u: ArrayLike) -> Array:
        v = np.asarray(u, dtype=np.float64)
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            z = self.tail_inverse(np.minimum(v, 1.0 - v))
        return np.where((v >= 0) & (v <= 1), np.where(v <= 0.5, z, -z), np.nan)

    def ppf(self, u: ArrayLike) -> Array:
        return -self.isf(u)


def invert_tail(
    tail: Callable[[Array], Array], density: Callable[[Array], Array], v: Array
) -> Array:
    """The z ≥ 0 with tail(z) = v, for a tail that falls at least like exp(−z).

    Newton's method on the logarithm of the tail, inside a bracket that every third step halves:
    Newton alone creeps where a steep tail turns into a flat one.
    """
    v = np.asarray(v, dtype=np.float64)
    flat = np.clip(v.ravel(), SMALLEST, 0.5)
    low, high = np.zeros_like(flat), np.full_like(flat, FARTHEST)
    z = np.minimum(-np.log(2 * flat), FARTHEST / 2)
    goal = np.log(flat)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        settled = np.zeros(flat.shape, dtype=bool)
        for step_number in range(MOST_STEPS):
            value = tail(z)
            above = value > flat
            low, high = np.where(above, z, low), np.where(above, high, z)
            step = z + (np.log(value) - goal) * value / density(z)
            settled |= np.abs(step - z) <= SETTLED + SETTLED_SHARE * np.abs(z)
            inside = (step > low) & (step < high) & (step_number % 3 < 2)
            z = np.where(settled, z, np.where(inside, step, 0.5 * (low + high)))
            if settled.all():
                break
    return np.where(v > 0, z.reshape(v.shape), np.inf)
