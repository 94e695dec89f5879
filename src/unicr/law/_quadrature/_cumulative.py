"""How much mass of a panel lies before a point, and where is a given mass reached?

Panels are Chebyshev series of their cumulated mass, from either end, so that small masses keep
their relative accuracy; the inverse is found by Newton steps between the knots of a table.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from unicr.law._quadrature._chebyshev import EPS, MEAN_LEFT, MEAN_RIGHT, TO_COEF, N, clenshaw
from unicr.law._quadrature._panels import INNER_POWER, LOG, Panels
from unicr.values import Array, IntArray

_KNOTS = 17  # of the table in which the inverse begins: Newton then needs three or four steps
# Below this share of a panel's largest value the series of the density has lost half its digits,
# and the series of its logarithm is read instead.
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
        """z such that the mass between z and the chosen end of panel `index` equals rest.

        Newton steps inside a bracket, which starts as the two knots around z.
        """
        mass = self.mass[index]
        near = np.where(from_near, rest, np.maximum(mass - rest, 0.0))
        knot = np.zeros(index.size, dtype=np.int64)
        for step in (8, 4, 2, 1):
            higher = self._knot_mass[knot + step, index] <= near
            knot += step * (higher & (knot + step < _KNOTS - 1))
        low = knot / (_KNOTS - 1.0)
        high = low + 1.0 / (_KNOTS - 1.0)
        m0, m1 = self._knot_mass[knot, index], self._knot_mass[knot + 1, index]
        power = self._panels.kind[index] == INNER_POWER
        undone = np.flatnonzero(~power)
        with np.errstate(all="ignore"):
            z = low + (high - low) * np.where(m1 > m0, np.clip((near - m0) / (m1 - m0), 0, 1), 0.0)
            for _ in range(64):
                k, at = index[undone], z[undone]
                excess = np.where(
                    from_near[undone],
                    at * clenshaw(self._from_near, k, at) - rest[undone],
                    rest[undone] - (1.0 - at) * clenshaw(self._from_far, k, at),
                )
                low[undone] = np.where(excess < 0.0, at, low[undone])
                high[undone] = np.where(excess > 0.0, at, high[undone])
                new = at - excess / clenshaw(self.density, k, at)
                inside = (new >= low[undone]) & (new <= high[undone])
                z[undone] = new = np.where(inside, new, (low + high)[undone] / 2.0)
                far = np.abs(new - at) > 4.0 * EPS * np.where(knot[undone] == 0, new, 1.0)
                undone = undone[far]
                if not undone.size:
                    break
            share = np.where(mass > 0.0, rest / mass, 0.0)[power]
            log_z = np.where(from_near[power], np.log(share), np.log1p(-share))
            z[power] = np.exp(log_z / self._panels.kappa[index[power]])
        return z
