"""What are the mass, the moments, the cdf and the quantiles of a density given by its logarithm?

`TabulatedDensity` runs the whole construction, checks the outcome and answers from the table.
Masses are cumulated from both sides, so that `cdf` and `sf` keep their relative accuracy in the
tails.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import NoiseError
from unicr.law._quadrature._adapt import SingularPoint, adapt, hidden_breaks
from unicr.law._quadrature._chebyshev import NODES, N
from unicr.law._quadrature._checks import check_scan, self_check
from unicr.law._quadrature._cumulative import CumulatedMass
from unicr.law._quadrature._logdensity import HINT, PATIENCE, LogDensity
from unicr.law._quadrature._panels import LOG, Panels, initial_panels, mesh, x_edges
from unicr.law._quadrature._scan import Landscape, merge, survey
from unicr.law._quadrature._tails import far_mass, moment
from unicr.values import Array, IntArray

Tail = tuple[float, float, float]

# Panels whose mass lies below this share go to the power-law tail: with fewer digits than a double
# has they would only add rounding, and no quantile below 1e-18 is promised.
_TRIM = 1e-21
_LARGEST = float(np.finfo(np.float64).max)


class TabulatedDensity:
    """Normalisation, moments, cdf and quantiles of a density given by its logarithm.

    Build one with `TabulatedDensity.build(logpdf)`. Once built it answers from the table alone, so
    that density and probabilities are those of one law, with or without the user's function.
    Relative accuracy of `pdf`, `cdf` and `sf` is about 1e-12 down to tails of 1e-18, where a power
    law continuous with the table takes over.
    """

    log_mass: float
    support: tuple[float, float]
    breakpoints: tuple[float, ...]
    mean: float
    second_moment: float

    @classmethod
    def build(
        cls,
        logpdf: Callable[..., Any],
        *,
        support: tuple[float, float] = (-math.inf, math.inf),
        points: Sequence[float] = (),
        places: ArrayLike = (),
    ) -> TabulatedDensity:
        """Tabulate exp(logpdf).

        `points` names modes, jumps or kinks that a scan could miss; `places` are only looked at.
        """
        low, high = _check_support(support)
        hints = [float(p) for p in points]
        if not all(math.isfinite(p) for p in hints):
            raise NoiseError(f"points must be finite numbers, not {tuple(points)!r}")
        f = LogDensity(logpdf, (low, high))
        hints = [p for p in hints if low <= p <= high]
        f.patience = PATIENCE
        with np.errstate(all="ignore"):
            table = cls._build(f, hints, np.asarray(places, dtype=np.float64))
        f.patience = math.inf
        return table

    @classmethod
    def _build(cls, f: LogDensity, hints: list[float], places: Array) -> TabulatedDensity:
        table = cls.__new__(cls)
        for _ in range(8):
            land = survey(f, hints, places)
            try:
                panels, shift = adapt(f, initial_panels(f, land))
                hidden = hidden_breaks(f, panels)
                if hidden:
                    land.anchors = merge(land.anchors, hidden)
                    panels, shift = adapt(f, initial_panels(f, land))
            except SingularPoint as point:
                if point.x in hints:
                    raise NoiseError(
                        f"the density has infinite mass at x = {point.x:.17g}; {HINT}"
                    ) from None
                hints.append(point.x)
                continue
            table._finish(f, land, panels, shift)
            return table
        raise NoiseError(f"logpdf is +inf at many points, such as {hints[-3:]}; {HINT}")

    def _finish(self, f: LogDensity, land: Landscape, panels: Panels, shift: float) -> None:
        total = math.fsum(panels.mass)
        if not total > 0.0:
            raise NoiseError(f"the density integrates to {total}; {HINT}")
        far = [far_mass(f, land, sign, shift, total) for sign in (-1.0, 1.0)]
        total += far[0][0] + far[1][0]
        self._f = f
        self.log_mass = shift + math.log(total)
        self.support = (
            land.low if land.hard_low else -math.inf,
            land.high if land.hard_high else math.inf,
        )
        self.breakpoints = tuple(land.anchors)
        self._corners = np.full(len(land.anchors), np.nan)
        self._land = land
        self.mean = moment(panels, shift, total, far, 1)
        self.second_moment = moment(panels, shift, total, far, 2)
        self_check(f, panels, self.log_mass, (far[0][0] + far[1][0]) / total)
        self._tabulate(panels, total, far)
        anchors = np.array(land.anchors)
        corners = np.where(np.isin(anchors, f.support), np.nan, f(anchors) - self.log_mass)
        sides = np.stack([self.beside(-1.0), self.beside(1.0)])
        near = np.clip(corners, sides.min(axis=0) - 1.0, sides.max(axis=0) + 1.0)
        self._corners = np.where(np.isfinite(corners), near, corners)
        check_scan(self, land.x)

    def _tabulate(self, panels: Panels, total: float, far: list[Tail]) -> None:
        land = self._land
        mass = panels.mass / total
        below = np.concatenate([[far[0][0] / total], mass]).cumsum()
        above = np.concatenate([[far[1][0] / total], mass[::-1]]).cumsum()[::-1]
        first, last = 0, panels.size
        if not land.hard_low:
            first = int(np.searchsorted(below, _TRIM, side="right"))
            first = min(max(first - 1, 0), panels.size - 1)
        if not land.hard_high:
            last = panels.size - int(np.searchsorted(above[::-1], _TRIM, side="right")) + 1
            last = min(max(last, first + 1), panels.size)
        low_tail, high_tail = float(below[first]), float(above[last])
        kept = panels.take(slice(first, last))
        kept.mass = mass[first:last]
        left, right = x_edges(kept)
        self._origin = land.centre
        tails = (self._tail(float(left[0]), low_tail), self._tail(float(right[-1]), high_tail))
        self._use(kept, tails)

    def _use(self, panels: Panels, tails: tuple[Tail, Tail]) -> None:
        """Answer from these panels, whose masses are probabilities, and from these ends."""
        self._panels, self._tails = panels, tails
        self._left, self._right = x_edges(panels)
        self._inside = CumulatedMass(panels, self.log_mass)
        self._below = tails[0][0] + np.concatenate([[0.0], panels.mass.cumsum()])
        self._above = np.concatenate([panels.mass[::-1].cumsum()[::-1], [0.0]]) + tails[1][0]

    def _tail(self, edge: float, mass: float) -> Tail:
        """(mass, kappa, distance of its start from the origin) of the power-law end piece."""
        reach = abs(edge - self._origin)
        if mass <= 0.0 or reach == 0.0:
            return max(mass, 0.0), -1.0, max(reach, 1e-300)
        log_slope = float(self._f(edge)) - self.log_mass + math.log(reach) - math.log(mass)
        return mass, -math.exp(min(max(log_slope, math.log(0.02)), 25.0)), reach

    def call_logpdf(self, x: ArrayLike) -> Array:
        """Normalised log-density, by a call of the user's function."""
        value = self._f(x, ends=True) - self.log_mass
        return np.where(np.isnan(value) & ~np.isnan(np.asarray(x, np.float64)), -np.inf, value)[()]

    def logpdf(self, x: ArrayLike) -> Array:
        """Normalised log-density: the derivative of `cdf`; at a breakpoint, as it was given."""
        x = np.asarray(x, dtype=np.float64)
        flat = x.ravel()
        index, z = self._locate(flat)
        inside = (z >= 0.0) & (z <= 1.0)
        out = np.where(inside, self._inside.log_density(index, np.clip(z, 0.0, 1.0)), -np.inf)
        for sign, (mass, kappa, reach) in zip((-1.0, 1.0), self._tails, strict=True):
            beyond = flat < self._left[0] if sign < 0 else flat > self._right[-1]
            if mass > 0.0 and beyond.any():
                ratio = np.maximum(np.abs(flat[beyond] - self._origin) / reach, 1.0)
                out[beyond] = math.log(mass * -kappa / reach) + (kappa - 1.0) * np.log(ratio)
        out[(flat < self.support[0]) | (flat > self.support[1])] = -np.inf
        corner = np.clip(np.searchsorted(self.breakpoints, flat), 0, len(self.breakpoints) - 1)
        known = (flat == np.take(self.breakpoints, corner)) & ~np.isnan(self._corners[corner])
        out = np.where(known, self._corners[corner], out)
        out[np.isnan(flat)] = np.nan
        return out.reshape(x.shape)[()]

    def beside(self, sign: float) -> Array:
        """The log-density of the table just left (-1) or right (1) of every breakpoint."""
        return self.logpdf(np.nextafter(self.breakpoints, sign * math.inf))

    def _locate(self, flat: Array) -> tuple[IntArray, Array]:
        """The panel next to each x, and where in it; -1 or 2 in a gap between two panels."""
        p = self._panels
        index = np.clip(np.searchsorted(self._left, flat, side="right") - 1, 0, p.size - 1)
        s = np.abs(flat - p.base[index])
        length, start = p.length[index], p.start[index]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = np.where(p.kind[index] == LOG, (np.log(s) - start) / length, s / length)
        slack = 64.0 * np.spacing(np.maximum(np.abs(flat), np.abs(p.base[index])))
        before = np.where(p.direction[index] < 0, 2.0, -1.0)
        z = np.where(np.isnan(z), 0.0, np.clip(z, 0.0, 1.0))
        z = np.where(flat < self._left[index] - slack, before, z)
        return index, np.where(flat > self._right[index] + slack, 1.0 - before, z)

    def pdf(self, x: ArrayLike) -> Array:
        """Normalised density."""
        with np.errstate(under="ignore"):
            return np.exp(self.logpdf(x))[()]

    def cdf(self, x: ArrayLike) -> Array:
        """P(X <= x), accurate relative to itself in the lower tail."""
        return self._probability(x, upper=False)

    def sf(self, x: ArrayLike) -> Array:
        """P(X > x), accurate relative to itself in the upper tail."""
        return self._probability(x, upper=True)

    def ppf(self, u: ArrayLike) -> Array:
        """The quantile at probability u; the ends of the support at 0 and 1, NaN outside."""
        return self._quantile(u, upper=False)

    def isf(self, v: ArrayLike) -> Array:
        """The quantile with P(X > x) = v, accurate for tiny v."""
        return self._quantile(v, upper=True)

    def _probability(self, x: ArrayLike, upper: bool) -> Array:
        x = np.asarray(x, dtype=np.float64)
        flat = x.ravel()
        p = self._panels
        index, z = self._locate(flat)
        z = np.clip(z, 0.0, 1.0)
        near = p.direction[index] > 0 if not upper else p.direction[index] < 0
        part = np.where(near, self._inside.near(index, z), self._inside.far(index, z))
        part = np.clip(part, 0.0, self._inside.mass[index])
        out = (self._above[index + 1] if upper else self._below[index]) + part
        for sign, (mass, kappa, reach) in zip((-1.0, 1.0), self._tails, strict=True):
            edge = self._left[0] if sign < 0 else self._right[-1]
            beyond = flat < edge if sign < 0 else flat > edge
            if beyond.any():
                with np.errstate(all="ignore"):
                    ratio = np.maximum(np.abs(flat[beyond] - self._origin) / reach, 1.0)
                    tail = mass * ratio**kappa
                out[beyond] = tail if (sign > 0) == upper else 1.0 - tail
        out = np.clip(out, 0.0, 1.0)
        out[np.isnan(flat)] = np.nan
        low, high = self.support
        out[flat <= low] = 1.0 if upper else 0.0
        out[flat >= high] = 0.0 if upper else 1.0
        return out.reshape(x.shape)[()]

    def _quantile(self, u: ArrayLike, upper: bool) -> Array:
        u = np.asarray(u, dtype=np.float64)
        flat = u.ravel()
        valid = (flat >= 0.0) & (flat <= 1.0)
        out = np.full(flat.size, np.nan)
        swap = valid & (flat > 0.5)
        for chosen, side in ((valid & ~swap, upper), (swap, not upper)):
            if chosen.any():
                target = flat[chosen] if side is upper else 1.0 - flat[chosen]
                out[chosen] = self._solve(target, side)
        return out.reshape(u.shape)[()]

    def _solve(self, target: Array, upper: bool) -> Array:
        """x with cdf(x) = target (or sf(x) = target), for targets in [0, 0.5]."""
        p, last = self._panels, self._panels.size - 1
        if upper:
            index = p.size - np.searchsorted(self._above[::-1], target, side="left")
            index = np.clip(index, 0, last)
            rest = target - self._above[index + 1]
        else:
            index = np.clip(np.searchsorted(self._below, target, side="left") - 1, 0, last)
            rest = target - self._below[index]
        rest = np.clip(rest, 0.0, self._inside.mass[index])
        from_near = (p.direction[index] > 0) != upper
        z = self._inside.invert(index, rest, from_near)
        along = p.start[index] + p.length[index] * z
        s = np.where(p.kind[index] == LOG, np.exp(np.minimum(along, 709.0)), along)
        x = np.clip(p.base[index] + p.direction[index] * s, self._left[index], self._right[index])
        sign = 1.0 if upper else -1.0
        mass, kappa, reach = self._tails[1 if upper else 0]
        beyond = target < mass
        if beyond.any():
            with np.errstate(all="ignore"):
                far = reach * (target[beyond] / mass) ** (1.0 / kappa)
                x[beyond] = np.clip(self._origin + sign * far, -_LARGEST, _LARGEST)
        x[target <= 0.0] = self.support[1 if upper else 0]
        return x

    @cached_property
    def _grid(self) -> Array:
        """The nodes, the quantiles and the scan: where the shape of the density is judged."""
        p = self._panels
        nodes = p.base[:, None] + p.direction[:, None] * p.distance(
            np.broadcast_to(NODES, (p.size, N))
        )
        uniform = np.linspace(self._left[0], self._right[-1], 4001)
        quantiles = self.ppf(np.linspace(0.0, 1.0, 2003)[1:-1])
        x = np.unique(np.concatenate([nodes.ravel(), uniform, quantiles, self._land.x]))
        return x[(x > self._land.low) & (x < self._land.high)]

    @cached_property
    def mesh(self) -> Array:
        """Points so dense that between two of them the density has a simple shape."""
        return mesh(self._panels, self._left, self._right)

    def positive(self, reach: float = 1e30) -> bool:
        """Whether no zero wider than rounding shows up to `reach`: no end and no hole."""
        if any(math.isfinite(end) for end in (*self.support, *self._f.support)):
            return False
        x = np.concatenate([self._grid, self._land.x[np.abs(self._land.x) < reach]])
        x = x[np.isneginf(self.call_logpdf(x))]
        step = 1e-12 * np.maximum(np.abs(x), float(self.isf(0.25) - self.ppf(0.25)))
        around = np.stack([self.call_logpdf(x - step), self.call_logpdf(x + step)])
        return bool(np.all(around > -np.inf))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that answers rest on, whatever the density is called."""
        inside, ends = self._inside, (self.support, self._tails, self._origin)
        edges = (self._left, self._right, self.breakpoints, self._corners)
        parts = [np.asarray(a).tobytes() for a in (*edges, *ends, inside.mass, inside.density)]
        return hashlib.sha256(b"".join(parts)).hexdigest()[:32]


def _check_support(support: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in support)
    except (TypeError, ValueError) as cause:
        raise NoiseError(f"support must be a pair (low, high), not {support!r}") from cause
    if not low < high:
        raise NoiseError(f"support={support!r}: the first number must be below the second")
    return low, high
