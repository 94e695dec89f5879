"""What the trade-off of spherical noise needs to know: the law of an angle, and the shape of φ.

φ is cut into stretches on which it is monotone, at its turning points and corners; between them a
level is found again by a table and chords.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from unicr.noise import SphericalNoise
from unicr.values import Array

REACH = 9.3  # radius and angle are followed out to a normal tail of this many deviations, 7e-21
TABLE = 4096  # lengths at which turning points and corners of φ are sought


class Angle:
    """P(cos θ ≥ x) for a uniform direction in R^d, fast: a spline through exact Beta tails.

    The probit of the tail is an odd, nearly linear function of v, v² = −(d − 1)·log(1 − x²).
    """

    def __init__(self, dim: int, last: float = 24.0, cells: int = 2400) -> None:
        from scipy.interpolate import CubicSpline

        self._nu = dim - 1
        v = np.linspace(0.0, last, cells + 1)
        gap = np.exp(-v * v / self._nu)  # 1 − x²
        x = np.sqrt(-np.expm1(-v * v / self._nu))
        a = self._nu / 2
        tail = special.betainc(a, a, gap / (1 + x) / 2)
        ok = tail > 1e-300
        ok[0] = True
        z = -special.ndtri(np.where(tail > 0, tail, 1e-300))
        z[0] = 0.0
        spline = CubicSpline(v[ok], z[ok])
        self._c = np.ascontiguousarray(spline.c.T)
        self._per_unit = cells / last
        self._last = float(v[ok][-1])

    def tail(self, r: Array, s: float, rho: Array) -> Array:
        """P(‖z − δ‖ ≤ ρ) where ‖z‖ = r, ‖δ‖ = s."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scale = 1.0 / (2 * s * r)
            x = ((r - rho) * (r + rho) + s * s) * scale
            gap = np.maximum((s + (rho - r)) * (rho + r - s) * scale, 0.0)
            gap *= np.maximum((s - (rho - r)) * (r + s + rho) * scale, 0.0)
            square = np.where(x * x < 0.5, np.log1p(-x * x), np.log(gap))
        return self._probability(x, square)

    def beyond(self, x: Array) -> Array:
        """P(cos θ > x)."""
        with np.errstate(divide="ignore"):
            return self._probability(x, np.log1p(-np.minimum(x * x, 1.0)))

    def _probability(self, x: Array, log_gap: Array) -> Array:
        """P(cos θ > x), log(1 − x²) given."""
        v = np.sqrt(np.maximum(-self._nu * log_gap, 0.0))
        inside = v < self._last
        v = np.where(inside, v, 0.0)
        cell = np.minimum((v * self._per_unit).astype(np.intp), len(self._c) - 1)
        y = v - cell / self._per_unit
        c = self._c[cell]
        z = ((c[..., 0] * y + c[..., 1]) * y + c[..., 2]) * y + c[..., 3]
        z = np.where(inside, z, np.inf)
        return np.asarray(special.ndtr(-np.copysign(z, x)))


@lru_cache(maxsize=16)
def angle_law(dim: int) -> Angle:
    return Angle(dim)


class Radial:
    """log φ at unit scale with what the quadrature needs to know of it: quantiles and corners."""

    def __init__(self, noise: SphericalNoise) -> None:
        self.noise = noise
        law = noise._law
        self.low, self.high = law.support
        self._unit, self._log_mass = law.unit, law.log_mass_in_units
        deviates = np.linspace(-REACH, REACH, 14)
        edges = np.concatenate(
            [law.ppf(special.ndtr(deviates[:7])), law.isf(special.ndtr(-deviates[7:]))]
        )
        edges = np.unique(np.clip(edges, self.low, self.high))
        # density ∝ r^(κ−1) towards the centre: one panel from 0 holds it, unless it is singular
        steep = np.flatnonzero(edges[1:7] > 3 * edges[:6])
        rise = np.diff(special.log_ndtr(deviates[:2]))[0]
        if steep.size and self.low == 0 and rise >= math.log(edges[1] / edges[0]):
            edges = np.append(0.0, edges[steep[-1] + 1 :])
        self.edges = edges if edges.size > 1 else np.array([self.low, self.high])
        if math.isfinite(self.high):
            self.edges[-1] = self.high
        scan = refined(self.edges, TABLE // self.edges.size)[1:]
        value = np.maximum(self(scan), -1e300)
        places = np.union1d(_jumps(self, scan, value), np.asarray(law.breakpoints))
        places = places[(places > self.low) & (places < self.high * (1 - 1e-4))]
        self.corners = _distinct([b for b in places.tolist() if self._corner(b)])
        turns = extrema(self, scan, value, turning_points(value))
        self.turns = [b for b in turns.tolist() if not np.any(np.isclose(b, self.corners, 1e-3))]

    def __call__(self, r: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = np.asarray(self.noise._radial(r), dtype=np.float64)
        if self.low > 0 or self.high < math.inf:
            value = np.where((r >= self.low) & (r <= self.high), value, -np.inf)
        return value

    def density(self, r: Array) -> Array:
        """Of the radius."""
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            log_f = self.noise.dim * np.log(r / self._unit) + self(r) - self._log_mass
            return np.where(r > 0, np.exp(log_f) / r, 0.0)

    def _corner(self, b: float) -> bool:
        """Whether log φ jumps or changes its slope there."""
        g = self(b * (1 + np.array([-2e-5, -1e-5, -1e-13, 1e-13, 1e-5, 2e-5])))
        if not np.all(np.isfinite(g)):
            return True
        size = 1e-9 * (1 + float(np.max(np.abs(g))))
        left, right = g[1] - g[0], g[5] - g[4]
        bent = abs(left - right) > 0.02 * max(abs(left), abs(right)) + size
        return bool(abs(g[3] - g[2]) > size or bent)


@lru_cache(maxsize=64)
def radial_shape(noise: SphericalNoise) -> Radial:
    return Radial(noise)


class Piece(NamedTuple):
    """A stretch of radii on which φ is monotone, as a table for inverting it."""

    rho: Array
    g: Array
    falls: bool


def refined(edges: Array, count: int) -> Array:
    """Points between edges: even steps, or even ratios where an interval is long."""
    low, high = edges[:-1, None], edges[1:, None]
    y = np.arange(count) / count
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = low * (high / low) ** y
    points = np.where((low > 0) & (high > 1.5 * low), ratio, low + (high - low) * y)
    return np.unique(np.append(points.ravel(), edges[-1]))


def turning_points(value: Array) -> NDArray[np.intp]:
    """Indices at which a table changes direction by more than rounding."""
    change = np.diff(value)
    noise = 1e-12 * (1 + np.minimum(np.abs(value[1:]), np.abs(value[:-1])))
    moves = np.flatnonzero(np.abs(change) > noise)
    sign = np.sign(change[moves])
    return np.asarray(moves[1:][sign[1:] != sign[:-1]])


def extrema(g: Radial, rho: Array, value: Array, turns: NDArray[np.intp]) -> Array:
    """The turning points of φ, by golden section inside their cells."""
    low, high = rho[np.maximum(turns - 1, 0)], rho[np.minimum(turns + 1, rho.size - 1)]
    sign = np.where(value[turns] >= value[np.maximum(turns - 1, 0)], 1.0, -1.0)
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(40 if turns.size else 0):
        left, right = high - golden * (high - low), low + golden * (high - low)
        first = sign * g(left) >= sign * g(right)
        low, high = np.where(first, low, left), np.where(first, right, high)
    return 0.5 * (low + high)


def _jumps(g: Radial, rho: Array, value: Array) -> Array:
    """Where a table of log φ moves in one cell far more than in the cells beside it."""
    change = np.pad(np.abs(np.diff(value)), 1)
    beside = np.maximum(change[:-2], change[2:])
    cell = np.flatnonzero(change[1:-1] > 4 * beside + 1e-6)
    low, high = rho[cell], rho[cell + 1]
    for _ in range(60 if cell.size else 0):
        middle = 0.5 * (low + high)
        at = np.maximum(g(np.stack([low, middle, high])), -1e300)
        first = np.abs(at[1] - at[0]) > np.abs(at[2] - at[1])
        low, high = np.where(first, low, middle), np.where(first, middle, high)
    return high


def _distinct(places: list[float]) -> list[float]:
    return [b for i, b in enumerate(places) if i == 0 or b > places[i - 1] * (1 + 1e-12)]
