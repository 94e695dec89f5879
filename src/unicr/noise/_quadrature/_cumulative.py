"""How much mass of a panel lies before a point, and where is a given mass reached?

Panels are Chebyshev series of their cumulated mass, from either end, so that small masses keep
their relative accuracy; the inverse starts from a Hermite table and is polished by Newton steps.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from unicr.noise._quadrature._chebyshev import EPS, MEAN_LEFT, MEAN_RIGHT, TO_COEF, N, clenshaw
from unicr.noise._quadrature._panels import INNER_POWER, LOG, Panels
from unicr.values import Array, IntArray

_KNOTS = 17
_TINY = 1e-7


class CumulatedMass:
    """The mass inside each of `panels`, whose masses are probabilities: exp(`log_total`) is one."""

    def __init__(self, panels: Panels, log_total: float) -> None:
        self._panels = panels
        self._log_total = log_total
        self.mass: Array = panels.mass
        with np.errstate(under="ignore"):
            g = np.exp(panels.log_values - log_total) * panels.length[:, None]
        g[panels.kind == INNER_POWER] = 0.0
        self.density: Array = np.ascontiguousarray((g @ TO_COEF.T).T)
        self._top = g.max(axis=1)
        with np.errstate(invalid="ignore"):
            self._logs = np.ascontiguousarray((panels.log_values @ TO_COEF.T).T)
        self._from_near = np.ascontiguousarray((g @ MEAN_LEFT.T).T)
        self._from_far = np.ascontiguousarray((g @ MEAN_RIGHT.T).T)
        knots = np.linspace(0.0, 1.0, _KNOTS)
        vander = chebyshev.chebvander(2.0 * knots - 1.0, N - 1)
        table = knots[:, None] * (vander @ self._from_near)
        table[-1] = self.mass
        self._knot_mass = np.minimum(np.maximum.accumulate(table, axis=0), self.mass)
        self._knot_slope = np.maximum(vander @ self.density, 0.0)

    def log_density(self, index: IntArray, z: Array) -> Array:
        """Log of the density at z: of its series, or where that is tiny the series of its log."""
        p = self._panels
        length, kind = p.length[index], p.kind[index]
        value = clenshaw(self.density, index, z)
        with np.errstate(all="ignore"):
            out = np.log(value / length)
            tiny = value < _TINY * self._top[index]
            if tiny.any():
                logs = clenshaw(self._logs, index[tiny], z[tiny]) - self._log_total
                out[tiny] = np.where(np.isnan(logs), -np.inf, logs)
            out -= np.where(kind == LOG, p.start[index] + length * z, 0.0)
            power = kind == INNER_POWER
            if power.any():
                k = p.kappa[index[power]]
                at = np.log(self.mass[index[power]] * k / length[power])
                climb = np.where(k == 1.0, 0.0, (k - 1.0) * np.log(z[power]))
                out[power] = at + climb
        return np.asarray(out, dtype=np.float64)

    def near(self, index: IntArray, z: Array) -> Array:
        """Mass of the panel between its anchor side and z."""
        out = z * clenshaw(self._from_near, index, z)
        power = self._panels.kind[index] == INNER_POWER
        if power.any():
            k = index[power]
            out[power] = self.mass[k] * np.clip(z[power], 0.0, 1.0) ** self._panels.kappa[k]
        return out

    def far(self, index: IntArray, z: Array) -> Array:
        """Mass of the panel between z and its outer side."""
        out = (1.0 - z) * clenshaw(self._from_far, index, z)
        power = self._panels.kind[index] == INNER_POWER
        if power.any():
            k = index[power]
            with np.errstate(divide="ignore"):
                log_z = np.log(np.clip(z[power], 0.0, 1.0))
            out[power] = -self.mass[k] * np.expm1(self._panels.kappa[k] * log_z)
        return out

    def invert(self, index: IntArray, rest: Array, from_near: NDArray[np.bool_]) -> Array:
        """z such that the mass between z and the chosen end of panel `index` equals rest."""
        mass = self.mass[index]
        near = np.where(from_near, rest, np.maximum(mass - rest, 0.0))
        knot = np.zeros(index.size, dtype=np.int64)
        for step in (8, 4, 2, 1):
            higher = self._knot_mass[knot + step, index] <= near
            knot += step * (higher & (knot + step < _KNOTS - 1))
        h = 1.0 / (_KNOTS - 1)
        z0: Array = knot.astype(np.float64) * h
        m0, m1 = self._knot_mass[knot, index], self._knot_mass[knot + 1, index]
        d0, d1 = self._knot_slope[knot, index], self._knot_slope[knot + 1, index]
        with np.errstate(all="ignore"):
            w = m1 - m0
            t = np.clip(np.where(w > 0.0, (near - m0) / w, 0.0), 0.0, 1.0)
            a, b = w / (d0 * h), w / (d1 * h)
            hermite = t * t * (3 - 2 * t) + t * (1 - t) ** 2 * a - t * t * (1 - t) * b
            t = np.where((hermite >= 0.0) & (hermite <= 1.0), hermite, t)
        z = z0 + h * t
        low, high = z0, z0 + h
        small_z = knot == 0
        for _ in range(3):
            z, step_size, _ = self._newton(index, rest, from_near, z, low, high)
        undone = step_size > 4.0 * EPS * np.where(small_z, z, 1.0)
        if undone.any():
            k, r, side = index[undone], rest[undone], from_near[undone]
            zk, lo, hi = z[undone], low[undone].copy(), high[undone].copy()
            for _ in range(60):
                before = zk
                zk, _, excess = self._newton(k, r, side, zk, lo, hi)
                lo, hi = np.where(excess > 0, lo, before), np.where(excess > 0, before, hi)
                outside = (zk <= lo) | (zk >= hi)
                zk = np.where(outside, lo + (hi - lo) / 2.0, zk)
            z[undone] = zk
        power = self._panels.kind[index] == INNER_POWER
        if power.any():
            k = index[power]
            with np.errstate(all="ignore"):
                share = np.where(mass[power] > 0, rest[power] / mass[power], 0.0)
                log_z = np.where(from_near[power], np.log(share), np.log1p(-share))
                z[power] = np.exp(log_z / self._panels.kappa[k])
        return z

    def _newton(
        self,
        index: IntArray,
        rest: Array,
        from_near: NDArray[np.bool_],
        z: Array,
        low: Array,
        high: Array,
    ) -> tuple[Array, Array, Array]:
        """One Newton step; returns the new z, the step length and the signed excess in z."""
        excess = np.empty_like(z)
        for side in (True, False):
            m = from_near == side
            if m.any():
                zi, ki = z[m], index[m]
                if side:
                    excess[m] = zi * clenshaw(self._from_near, ki, zi) - rest[m]
                else:
                    excess[m] = rest[m] - (1.0 - zi) * clenshaw(self._from_far, ki, zi)
        slope = clenshaw(self.density, index, z)
        with np.errstate(all="ignore"):
            step = np.where(slope > 0.0, excess / slope, 0.0)
        new = np.clip(z - step, low, high)
        return new, np.abs(new - z), excess
