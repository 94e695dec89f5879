"""What is the law of the length ‖z‖ of spherical noise, in any dimension?

It is tabulated as the law of w = log(‖z‖/r₀), density e^{d·w}·φ(r₀·e^w), which stays smooth and
of moderate slope where r^(d−1) rises too steeply for the spacing of floating-point radii.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import NoiseError
from unicr.law._quadrature import TabulatedDensity
from unicr.law._quadrature._logdensity import LogDensity
from unicr.law._quadrature._scan import nice
from unicr.values import Array

_FLATTEST = 0.02  # least power of r by which the mass near the centre must vanish
_HEAVIEST = -0.05  # greatest power of r by which the mass far out may vanish
# Radii that are looked at wherever the mass is: a thousandth apart as logarithms, even near 1.
_SCANNED = np.concatenate([np.logspace(-3, 6, 20_727), np.linspace(0.02, 200, 10_000)])


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
                f"the radial density is not integrable at 0: it grows like r^{near:.6g} there, "
                f"and in dimension {dim} the exponent must be above {_FLATTEST - dim:g}"
            )
        if dim + far > _HEAVIEST:
            raise NoiseError(
                f"the radial density is not integrable at infinity: it behaves like r^{far:.6g}, "
                f"and in dimension {dim} the exponent must be below {_HEAVIEST - dim:g}; "
                "`radial_logpdf` must return the LOG of the density"
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


class RadiusLaw:
    """P(‖z‖ ≤ r) and its inverse for the density φ(‖z‖) on R^dim, given log φ.

    `unit` is r₀: any radius of the order of a typical one. The law has the methods of
    `TabulatedDensity`, as functions of r; `log_mass` is the log of ∫ r^(dim−1)·φ(r) dr.
    """

    def __init__(
        self,
        radial: Callable[[Array], Array],
        dim: int,
        *,
        support: tuple[float, float] = (0.0, math.inf),
        points: Sequence[float] = (),
    ) -> None:
        points = [p for p in points if p > 0]
        self.unit = unit = points[0] if points else 1.0
        self._dim, self._shift = dim, math.log(unit)
        self._phi = phi = _LogPhi(radial, dim, support)
        shift = self._shift
        with np.errstate(divide="ignore"):
            low, high = np.log(np.asarray(support) / unit).tolist()
        self._window = (low, high)

        def logpdf(w: Array) -> Array:
            return dim * w + phi(w + shift)

        self._hints = [math.log(p / unit) for p in points]
        self._places = np.log(_SCANNED / unit)
        self.log_density = table = TabulatedDensity.build(
            logpdf, support=self._window, points=self._hints, places=self._places
        )
        self.log_mass_in_units = table.log_mass
        self.log_mass = table.log_mass + dim * shift
        low, high = (self._radius(w) for w in table.support)
        self.support = (max(low, support[0]), min(high, support[1]))
        self.breakpoints = tuple(self._radius(w) for w in table.breakpoints)

    @cached_property
    def positive(self) -> bool:
        """Whether the density has no hole and no end."""
        # e^±60 of the usual radius: beyond, no probability that a double holds is left
        return self.log_density.positive(60.0)

    def _radius(self, w: float) -> float:
        """r at w; a round number if one lies within rounding."""
        if math.isinf(w):
            return 0.0 if w < 0 else w
        r = self.unit * math.exp(min(w, 700.0 - self._shift))
        return nice(r, 1e-15 * (4.0 + abs(w)) * r)

    @cached_property
    def second_moment(self) -> float:
        """E‖z‖², infinite if it does not exist."""
        # ∫ r^(far + 1) dr; so near to a tail like r^−1 a slope read off floats cannot tell
        if self._phi.far + 2.0 > -1e-3:
            return math.inf

        def logpdf(w: Array) -> Array:
            return (self._dim + 2) * w + self._phi(w + self._shift)

        weighted = TabulatedDensity.build(
            logpdf, support=self._window, points=self._hints, places=self._places
        )
        return self.unit**2 * math.exp(weighted.log_mass - self.log_density.log_mass)

    @property
    def fingerprint(self) -> str:
        """Equal for equal laws, whatever they are called."""
        return f"{self.unit!r}:{self.log_density.fingerprint}"

    def _w(self, r: ArrayLike) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(np.maximum(np.asarray(r, dtype=np.float64), 0.0) / self.unit)

    def pdf(self, r: ArrayLike) -> Array:
        """The density of ‖z‖."""
        w = self._w(r)
        with np.errstate(over="ignore", under="ignore"):
            return np.exp(self.log_density.logpdf(w) - w) / self.unit

    def cdf(self, r: ArrayLike) -> Array:
        """P(‖z‖ ≤ r)."""
        return self.log_density.cdf(self._w(r))

    def sf(self, r: ArrayLike) -> Array:
        """P(‖z‖ > r)."""
        return self.log_density.sf(self._w(r))

    def ppf(self, u: ArrayLike) -> Array:
        """The r with P(‖z‖ ≤ r) = u."""
        return self.from_log(self.log_density.ppf(u))

    def isf(self, u: ArrayLike) -> Array:
        """The r with P(‖z‖ > r) = u."""
        return self.from_log(self.log_density.isf(u))

    def from_log(self, w: Array) -> Array:
        """The radius r = r₀·e^w, inside the support."""
        with np.errstate(over="ignore"):
            return np.clip(self.unit * np.exp(w), *self.support)


@dataclass(frozen=True, eq=False)
class LogRadius:
    """The law of w = log(‖z‖/r₀): smooth also where that of ‖z‖ has a pole at zero."""

    radius: RadiusLaw
    text: str

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return self.radius.log_density.breakpoints

    def pdf(self, w: ArrayLike) -> Array:
        return self.radius.log_density.pdf(w)

    def cdf(self, w: ArrayLike) -> Array:
        return self.radius.log_density.cdf(w)

    def sf(self, w: ArrayLike) -> Array:
        return self.radius.log_density.sf(w)

    def ppf(self, u: ArrayLike) -> Array:
        return self.radius.log_density.ppf(u)

    def isf(self, u: ArrayLike) -> Array:
        return self.radius.log_density.isf(u)
