"""The law of the length ‖z‖ of noise whose density looks at the length alone, in any dimension.

`RadialDensity` is that density φ as a function of the length; `LengthLaw` is the law that follows.
It is tabulated as the law of w = log(‖z‖/r₀), density e^{d·w}·φ(r₀·e^w), which stays smooth and
of moderate slope where r^(d−1) rises too steeply for the spacing of floating-point radii.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import NoiseError
from unicr.law._base import Facts, Law
from unicr.law._quadrature import TabulatedDensity
from unicr.law._quadrature._logdensity import LogDensity
from unicr.law._quadrature._scan import nice
from unicr.values import Array

WHOLE = (0.0, math.inf)  # every length
_FLATTEST = 0.02  # least power of r by which the mass near the centre must vanish
_HEAVIEST = -0.05  # greatest power of r by which the mass far out may vanish
# Radii that are looked at wherever the mass is: a thousandth apart as logarithms, even near 1.
_SCANNED = np.concatenate([np.logspace(-3, 6, 20_727), np.linspace(0.02, 200, 10_000)])


class RadialDensity(ABC):
    """φ: the density of a noise at z as a function of r = ‖z‖ alone, at unit scale.

    A subclass is a frozen dataclass of its parameters. `log_density` alone is enough: certifiers
    then test on a fine table that φ falls. `by_formula` says that more is known: that φ falls, and
    that log φ is concave in log r. Then `drop`, and `bend` with `steepness`, tell how it falls,
    in r^power, and masses and levels of φ are rounded outwards
    (docs/theory.md#densities-of-the-length). The power is 2 for noise of the ℓ2 length, else 1.
    """

    @property
    def by_formula(self) -> bool:
        """Whether φ is known by its formula to fall, and log φ to be concave in log r."""
        return False

    @property
    def flat(self) -> bool:
        """Whether φ is known to be constant up to `end`, which is 1."""
        return False

    @property
    def end(self) -> float:
        """Where the support ends."""
        return math.inf

    def typical_lengths(self, dim: int) -> tuple[float, ...]:
        """Lengths near which the mass lies, as hints for the quadrature; the first is its unit.

        NoiseError if the mass is infinite in this dimension.
        """
        return ()

    @abstractmethod
    def log_density(self, r: Array) -> Array:
        """log φ(r), up to a constant."""

    def drop(self, r: Array, gap: Array, power: int) -> Array:
        """log φ(r) − log φ(ρ), ρ^power = r^power + gap, within some roundings of itself.

        It may be that of a gap which differs from the given one by 1e-12 of it. Needed where
        `by_formula`: a difference of two logarithms is not that accurate.
        """
        raise NotImplementedError

    def bend(self, low: float, high: float, power: int) -> int:
        """1 (−1) if log φ is convex (concave) in r^power for low ≤ r ≤ high by formula, else 0."""
        return 0

    def steepness(self, r: Array, power: int) -> Array:
        """−d log φ/d(r^power). Needed where `by_formula` and `bend` may be 1."""
        raise NotImplementedError


class _LogPhi:
    """s ↦ log φ(e^s), continued as a power of r where e^s or its powers leave the floats."""

    def __init__(
        self, radial: Callable[[Array], Array], dim: int, support: tuple[float, float]
    ) -> None:
        self._radial = LogDensity(radial, support)
        self._ends = [self._end(-1.0), self._end(1.0)]
        near, far = (slope if value > -math.inf else math.nan for _, value, slope in self._ends)
        if dim + near < _FLATTEST:
            raise NoiseError(
                f"the radial density has infinite mass at 0: it grows like r^{near:.6g} there, and "
                f"in dimension {dim} the exponent must be above {_FLATTEST - dim:g}"
            )
        if dim + far > _HEAVIEST:
            raise NoiseError(
                f"the radial density has infinite mass far out: it behaves like r^{far:.6g}, and "
                f"in dimension {dim} the exponent must be below {_HEAVIEST - dim:g}; check that "
                "`radial_logpdf` returns the LOG of the density"
            )
        self.far = dim + far

    def _end(self, sign: float) -> tuple[float, float, float]:
        """Where the continuation starts, log φ there, and the power of r it follows."""
        # e^690 is near the largest float; at e^340 its square is, at e^230 its cube: log φ may
        # hold such powers, and give nan beyond them
        for reach in (690.0, 340.0, 230.0):
            inner, outer = (float(self._at(sign * s)) for s in (reach - 8.0, reach))
            if math.isfinite(inner) and math.isfinite(outer):
                return sign * reach, outer, sign * (outer - inner) / 8.0
        return sign * 690.0, -math.inf, 0.0

    def _at(self, s: ArrayLike) -> Array:
        return self._radial(np.exp(s))

    def __call__(self, s: Array) -> Array:
        (low, *_), (high, *_) = self._ends
        value = self._at(np.clip(s, low, high))
        for beyond, (start, end, slope) in zip((s < low, s > high), self._ends, strict=True):
            value = np.where(beyond, end + slope * (s - start), value)
        return value


@dataclass(frozen=True)
class LengthLaw(Law):
    """The law of ‖z‖ for the density φ(‖z‖) on R^dim, given that ‖z‖ lies in `window`."""

    density: RadialDensity
    dim: int
    window: tuple[float, float] = WHOLE
    tabulated = True

    def __reduce__(self) -> tuple[Any, ...]:  # a table is made again: it holds functions
        return LengthLaw, (self.density, self.dim, self.window)

    @cached_property
    def table(self) -> LengthTable:
        """What probabilities and quantiles are read from."""
        return _tabulate(self)

    @property
    def whole(self) -> bool:
        """Whether the length is not conditioned."""
        return self.window == WHOLE

    @property
    def by_formula(self) -> bool:
        """See `RadialDensity`: what holds of φ holds of a part of it that begins at 0."""
        return self.density.by_formula and self.window[0] == 0

    @property
    def flat(self) -> bool:
        """Whether φ is known to be constant on the whole support, which is [0, 1]."""
        return self.density.flat and self.whole

    @property
    def fingerprint(self) -> str:
        return self.table.fingerprint

    @property
    def facts(self) -> Facts:
        return Facts(
            symmetric=False,
            log_concave=False,
            bounded=math.isfinite(self.support[1]),
            finite_variance=math.isfinite(self.second_moment),
            unimodal=False,
            source="analytic" if self.by_formula else "checked",
        )

    @property
    def second_moment(self) -> float:
        """E‖z‖², infinite if it does not exist."""
        return self.table.second_moment

    @property
    def std(self) -> float:
        return math.sqrt(self.second_moment)

    @property
    def mean(self) -> float:
        mean = self.table.mean
        return mean if math.isfinite(mean) else math.nan

    @property
    def support(self) -> tuple[float, float]:
        return self.table.support

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return self.table.breakpoints

    def log_density(self, x: Array, log_unit: float) -> Array:
        w = self.table.to_log(x)
        with np.errstate(invalid="ignore"):
            value = self.table.log_law.logpdf(w) - w
        return np.where(x > 0, value, -np.inf) - (math.log(self.table.unit) + log_unit)

    def cdf(self, x: ArrayLike) -> Array:
        return self.table.log_law.cdf(self.table.to_log(x))

    def sf(self, x: ArrayLike) -> Array:
        return self.table.log_law.sf(self.table.to_log(x))

    def ppf(self, u: ArrayLike) -> Array:
        return self.table.from_log(self.table.log_law.ppf(u))

    def isf(self, u: ArrayLike) -> Array:
        return self.table.from_log(self.table.log_law.isf(u))

    def given(self, low: float, high: float) -> LengthLaw:
        """The law of the length given that low ≤ ‖z‖ ≤ high: of the same φ, cut there."""
        return replace(self, window=(max(low, self.window[0]), min(high, self.window[1])))


@lru_cache(maxsize=64)
def _tabulate(law: LengthLaw) -> LengthTable:
    return LengthTable(law)


class LengthTable:
    """The law of w = log(‖z‖/r₀) as a table.

    `unit` is r₀: any radius of the order of a typical one. `log_mass` is the log of
    ∫ r^(dim−1)·φ(r) dr.
    """

    def __init__(self, law: LengthLaw) -> None:
        density, dim = law.density, law.dim
        support = (law.window[0], min(law.window[1], density.end))
        points = density.typical_lengths(dim)
        if not law.whole:
            points = tuple(p for p in points if support[0] < p < support[1])
            points = points or (max(0.9 * support[1], sum(support) / 2),)  # any length inside
        points = tuple(p for p in points if p > 0)
        self.unit = unit = points[0] if points else 1.0
        self._dim, self._shift = dim, math.log(unit)
        self._phi = _LogPhi(density.log_density, dim, support)
        with np.errstate(divide="ignore"):
            low, high = np.log(np.asarray(support) / unit).tolist()
        self._window = (low, high)
        self._hints = [math.log(p / unit) for p in points]
        self._places = np.log(_SCANNED / unit)
        self.log_law = table = self._build(dim)
        self.log_mass = table.log_mass + dim * self._shift
        low, high = (self._radius(w) for w in table.support)
        self.support = (max(low, support[0]), min(high, support[1]))
        self.breakpoints = tuple(self._radius(w) for w in table.breakpoints)

    def _build(self, power: int) -> TabulatedDensity:
        """The density e^{power·w}·φ: of w itself if the power is the dimension."""

        def logpdf(w: Array) -> Array:
            return power * w + self._phi(w + self._shift)

        return TabulatedDensity.build(
            logpdf, support=self._window, points=self._hints, places=self._places
        )

    @cached_property
    def positive(self) -> bool:
        """Whether φ has no hole and no end."""
        # e^±60 of the usual radius: beyond, no probability that a double holds is left
        return self.log_law.positive(60.0)

    def _radius(self, w: float) -> float:
        """r at w; a round number if one lies within rounding."""
        if math.isinf(w):
            return 0.0 if w < 0 else w
        r = self.unit * math.exp(min(w, 700.0 - self._shift))
        return nice(r, 1e-15 * (4.0 + abs(w)) * r)

    def _moment(self, order: int) -> float:
        """E‖z‖^order, infinite if it does not exist."""
        # ∫ r^(far + order − 1) dr; so near to a tail like r^−1 a slope read off floats cannot tell
        if self._phi.far + order > -1e-3:
            return math.inf
        weighted = self._build(self._dim + order)
        return self.unit**order * math.exp(weighted.log_mass - self.log_law.log_mass)

    @cached_property
    def mean(self) -> float:
        """E‖z‖."""
        return self._moment(1)

    @cached_property
    def second_moment(self) -> float:
        """E‖z‖²."""
        return self._moment(2)

    @property
    def fingerprint(self) -> str:
        """Equal for equal laws, whatever they are called."""
        return f"{self.unit!r}:{self.log_law.fingerprint}"

    def to_log(self, r: ArrayLike) -> Array:
        """w = log(r/r₀), −inf for r ≤ 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(np.maximum(np.asarray(r, dtype=np.float64), 0.0) / self.unit)

    def from_log(self, w: Array) -> Array:
        """The length r = r₀·e^w, inside the support."""
        with np.errstate(over="ignore"):
            return np.clip(self.unit * np.exp(w), *self.support)


@dataclass(frozen=True)
class LogLength:
    """The law of log(‖z‖/r₀), to be sampled: smooth also where that of ‖z‖ has a pole at zero."""

    length: LengthLaw
    text: str

    @property
    def _law(self) -> TabulatedDensity:
        return self.length.table.log_law

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return self._law.breakpoints

    def masses(self, low: Array, high: Array) -> Array | None:
        return None

    def pdf(self, w: ArrayLike) -> Array:
        return self._law.pdf(w)

    def cdf(self, w: ArrayLike) -> Array:
        return self._law.cdf(w)

    def sf(self, w: ArrayLike) -> Array:
        return self._law.sf(w)

    def ppf(self, u: ArrayLike) -> Array:
        return self._law.ppf(u)

    def isf(self, u: ArrayLike) -> Array:
        return self._law.isf(u)
