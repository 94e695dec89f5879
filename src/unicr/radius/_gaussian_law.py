"""How well a shifted coordinate can be told apart, for many shifts at once and rounded upwards.

P is the law of ε, Q that of ε + u, L the log-ratio; ε is symmetric and unimodal. H_γ is the
hockey-stick divergence and G_m the trade-off of a Gaussian shift m. Everything here errs
towards "easier to tell apart": H too large, trade-offs too small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from unicr.noise import IID
from unicr.values import Array


@dataclass(frozen=True, eq=False)
class HalfLaws:
    """One row of atoms for each shift, only those with L ≥ 0, sorted by `loss`.

    `mass` is under Q, mass·exp(−loss) under P. The other half follows from z → u − z: an atom
    (l, q) has a mirror image (−l, q·exp(−l)). `infinite` is Q-mass counted as L = ∞.
    """

    loss: Array
    mass: Array
    infinite: Array

    def hockey_stick(self, row: int, log_gamma: Array) -> Array:
        """H_γ at γ = exp(`log_gamma`) ≥ 1 for one shift."""
        loss, mass = self.loss[row], self.mass[row]
        q = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
        p = np.append(np.cumsum((mass * np.exp(-loss))[::-1])[::-1], 0.0)
        above = np.searchsorted(loss, log_gamma, side="right")
        value: Array = q[above] - np.exp(log_gamma) * p[above] + self.infinite[row]
        return value


def gaussian_hockey_stick(log_gamma: Array, shift: Array | float) -> Array:
    """H_γ of a Gaussian shift, γ = exp(`log_gamma`)."""
    x = log_gamma / shift
    value: Array = special.ndtr(0.5 * shift - x) - np.exp(
        np.minimum(log_gamma, 700.0)
    ) * special.ndtr(-0.5 * shift - x)
    return value


def nodes(step: float, deepest: float, growth: float = 0.0) -> Array:
    """Probits 0 … `deepest`, `step` apart at first; `growth` widens the steps in the tail."""
    if growth == 0:
        return np.linspace(0.0, deepest, int(np.ceil(deepest / step)) + 1)
    count = int(np.ceil(np.arcsinh(deepest * growth / step) / growth))
    x = step / growth * np.sinh(growth * np.arange(count + 1))
    return np.asarray(x * (deepest / x[-1]), dtype=np.float64)


def _interval_mass(noise: IID, z: Array) -> Array:
    """P-mass between consecutive points on one side of zero, from the tail."""
    mass: Array = np.abs(np.diff(noise.sf(np.abs(z)), axis=1))
    return mass


def _log_ratio(noise: IID, z: Array, shift: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return noise.logpdf(z - shift) - noise.logpdf(z)


def half_laws(noise: IID, shifts: Array, probits: Array, between: int = 25) -> HalfLaws:
    """Atoms of L ≥ 0 (z ≥ u/2) for every shift u > 0: a mean-preserving spread of the truth.

    z is cut at u ± the quantiles of |ε| at `probits`, at `between` points of [u/2, u] and at the
    corners of the density. A cell keeps its P- and Q-mass and puts them on the ends of the range
    of L there, as in `ratio_law`: exact ends for log-concave noise, five points plus their
    curvature for any other. What lies beyond the last cut counts as L = ∞, and so does a cell
    whose masses contradict its range.
    """
    u = shifts[:, None]
    y, x_last = _cuts(noise, u, probits, between)
    z = y + u
    p, q = _interval_mass(noise, z), _interval_mass(noise, y)
    if noise.facts.log_concave:
        ratio = np.maximum.accumulate(np.maximum(_log_ratio(noise, z, u), 0.0), axis=1)
        low, high = ratio[:, :-1], ratio[:, 1:]
    else:
        low, high = _sampled_range(noise, z, shifts)
    useful = (p > 0) & (q > 0) & np.isfinite(high) & _consistent(noise, z, u, p, q, low, high)
    infinite = noise.sf(x_last) + np.sum(np.where(useful, 0.0, q), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.clip(np.log(q) - np.log(p), low, high)
        share = np.exp(low - centre) * np.expm1(centre - high) / np.expm1(low - high)
    share = np.where(high > low, np.clip(share, 0.0, 1.0), 1.0)
    at_low = np.where(useful, q * share, 0.0)
    at_high = np.where(useful, q * (1.0 - share), 0.0)
    if noise.facts.log_concave:
        mass = np.zeros_like(z)
        mass[:, :-1] += at_low
        mass[:, 1:] += at_high
        return HalfLaws(np.where(np.isfinite(ratio), ratio, 1e3), mass, infinite)
    loss = np.where(np.tile(useful, 2), np.concatenate([low, high], axis=1), 0.0)
    order = np.argsort(loss, axis=1)
    mass = np.concatenate([at_low, at_high], axis=1)
    return HalfLaws(
        np.take_along_axis(loss, order, 1), np.take_along_axis(mass, order, 1), infinite
    )


def _consistent(
    noise: IID, z: Array, u: Array, p: Array, q: Array, low: Array, high: Array
) -> NDArray[np.bool_]:
    """Whether log(q/p) lies in the range, up to what rounding of the tails does to p and q."""
    with np.errstate(invalid="ignore", divide="ignore"):
        error = 1e-15 * (noise.sf(np.abs(z[:, :-1] - u)) / q + noise.sf(np.abs(z[:, :-1])) / p)
        slack = 1e-9 + np.maximum(error, np.where(np.minimum(p, q) < 1e-17, np.inf, 0.0))
        ratio = np.log(q) - np.log(p)
        return (ratio >= low - slack) & (ratio <= high + slack)


def _cuts(noise: IID, u: Array, probits: Array, between: int) -> tuple[Array, float]:
    """Where z − u is cut, sorted, zero among the cuts and no two of them nearly equal."""
    x = np.maximum(noise.isf(special.ndtr(-probits)), 0.0)[None, :]
    corners = noise.breakpoints if noise.facts.log_concave else noise.mesh
    corners = np.asarray(corners, dtype=np.float64)[None, :]
    parts = (
        x + 0 * u,
        -np.minimum(x, 0.5 * u),
        -u * np.linspace(0.0, 0.5, between),
        np.clip(corners - u, -0.5 * u, x[:, -1:]),
        np.clip(corners + 0 * u, -0.5 * u, x[:, -1:]),
    )
    y = np.sort(np.concatenate(parts, axis=1), axis=1)
    same = np.diff(y, axis=1) < 1e-11 * u
    y[:, 1:] = np.where(same & (y[:, 1:] != 0), y[:, :-1], y[:, 1:])
    y[:, 0] = -0.5 * u[:, 0]
    return np.sort(y, axis=1), float(x[0, -1])


def _sampled_range(noise: IID, z: Array, shifts: Array) -> tuple[Array, Array]:
    """Lowest and highest L on each cell from five points and a margin for their curvature."""
    inside = np.array([1e-9, 0.25, 0.5, 0.75, 1 - 1e-9])
    points = z[:, :-1, None] + np.diff(z, axis=1)[:, :, None] * inside
    values = _log_ratio(noise, points, shifts[:, None, None])
    with np.errstate(invalid="ignore"):
        bend = np.nan_to_num(np.max(np.abs(np.diff(values, n=2, axis=2)), axis=2))
    low = np.maximum(np.min(values, axis=2) - bend, 0.0)
    return low, np.maximum(np.max(values, axis=2) + bend, low)
