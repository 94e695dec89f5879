"""The trade-off of spherical noise, μ(z) = φ(‖z‖₂), against a shift of given l2 length.

With r = ‖z‖ and ρ = ‖z − δ‖ the log-ratio is L = log φ(ρ) − log φ(r) (THEORY (i)). Given r, the
angle has a Beta law, so P(L > t | r) is a tail of it in closed form, and P(L > t) is one integral
over the radius. The noise is even, so Q(L > t) = P(L < −t) and the hockey-stick is
H(t) = 1 − P(L ≥ −t) − e^t·P(L > t), with H(−t) = 1 − e^{−t}·(1 − H(t)).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from unicr.errors import RadiusError
from unicr.noise.internal import RadialNoise
from unicr.tradeoff._base import Bound, Lines
from unicr.tradeoff._radial import (
    REACH,
    TABLE,
    Piece,
    angle_law,
    extrema,
    radial_shape,
    refined,
    turning_points,
)
from unicr.values import Array

ROUNDING = 2e-11  # charged to every hockey-stick value: floating point and the angle's table
LARGEST_T = 600.0  # e^t stays finite; steeper lines matter at α = 0 only
SUBLINES = 30  # lines between two computed values of H
SMOOTH = 1e-6  # interpolation errors above this show a corner of H (an atom of L): no fourth order
KINKS_BELOW = 24  # dimensions in which the angle's law is too rough at its ends to be ignored


def spherical_tradeoff(noise: RadialNoise, shift: float, *, step: float = 0.06) -> Lines:
    """T between ε and ε + δ, ‖δ‖₂ = `shift`, from below.

    H is computed on a grid of t (`step` is its mesh, in deviations of L under Q) and continued
    between by cubic Hermite pieces. What is charged to H, at each t: twice the difference to a
    rule with two thirds of the nodes and a blunter level search, whose own error is larger by
    orders of magnitude; the mass that the radius rule misses; floating point; and, between
    the t's, a quarter of the error that the same pieces make on twice the mesh (the fourth order
    makes it a sixteenth; twice the error where H is not that smooth). The result is called
    "lower" where φ falls without corners; its charges are measured, not proved. For any other φ
    it is an "estimate" with the same charges.
    """
    if not math.isfinite(shift):
        raise RadiusError(f"shift={shift!r}: a shift is a finite length, for example 0.5")
    s = abs(float(shift)) / noise.scale
    if s == 0:
        return Lines(np.zeros(1), np.zeros(1), "exact")
    law = _LogRatio(noise, s)
    t, far = _mesh(law, step)
    h, slope, error = law.hockey_stick(t)
    rounding = ROUNDING + 16 * float(np.finfo(np.float64).eps) * law.size
    h = h + 2 * _neighbours(error) + rounding
    fine_t, fine_h = _between(t, h, slope)
    far_h = law.beyond(far) + rounding
    t, h = np.concatenate([t, fine_t, far]), np.concatenate([h, fine_h, far_h])
    order = np.argsort(t, kind="stable")
    t, h = t[order], np.clip(h[order], 0.0, 1.0)
    mirrored = 1.0 - np.exp(-t) * (1.0 - h)
    bound: Bound = "lower" if law.falling else "estimate"
    return Lines(np.concatenate([-t[::-1], t]), np.concatenate([mirrored[::-1], h]), bound)


def _neighbours(value: Array) -> Array:
    """The largest of each entry and its two neighbours."""
    wide = np.pad(value, 1, mode="edge")
    return np.maximum(np.maximum(wide[:-2], wide[1:-1]), wide[2:])


def _mesh(law: _LogRatio, step: float) -> tuple[Array, Array]:
    """The t > 0 to compute: evenly spaced in deviations of L under Q; and a few beyond them.

    The first stands for 0, but just off it: a plateau of φ gives L an atom at 0. Two plateaus
    give atoms at their differences, which are framed likewise.
    """
    first = max(1e-10, 1e-14 * law.size)
    coarse = np.geomspace(max(1e-7, 4 * first), LARGEST_T, 80)
    beyond = law.beyond(coarse)
    finite = np.maximum.accumulate(np.clip(beyond - beyond[-1], 0.0, 1.0)[::-1])[::-1]
    deviate = -special.ndtri(np.clip(finite, 1e-12, 1 - 1e-12))
    wanted = np.arange(deviate[0] + step / 2, min(6.4, deviate[-1]), step)
    t = np.exp(np.interp(wanted, deviate, np.log(coarse)))
    atoms = law.differences()
    t = np.unique(np.concatenate([t, [first], 0.9999999 * atoms, 1.0000001 * atoms]))
    t = t[t < LARGEST_T]
    t = t[np.append(True, np.diff(t) > 1e-9 * t[1:])]
    return t, np.append(coarse[coarse > 1.01 * t[-1]][:-1:6], LARGEST_T)


def _hermite(t: Array, h: Array, slope: Array, at: Array) -> Array:
    i = np.clip(np.searchsorted(t, at, side="right") - 1, 0, t.size - 2)
    width = t[i + 1] - t[i]
    y = (at - t[i]) / width
    value = h[i] * (1 + 2 * y) * (1 - y) ** 2 + h[i + 1] * y * y * (3 - 2 * y)
    return np.asarray(value + width * y * (1 - y) * (slope[i] * (1 - y) - slope[i + 1] * y))


def _between(t: Array, h: Array, slope: Array) -> tuple[Array, Array]:
    """More lines between the computed ones, each with its interpolation error charged."""
    if t.size < 5:
        return np.empty(0), np.empty(0)
    miss = np.zeros(t.size)
    for start in (0, 1):
        kept = slice(start, None, 2)
        odd = np.arange(start + 1, t.size - 1, 2)
        miss[odd] = np.abs(_hermite(t[kept], h[kept], slope[kept], t[odd]) - h[odd])
    miss[0], miss[-1] = miss[1], miss[-2]
    local = _neighbours(miss)
    local = np.maximum(local[:-1], local[1:])
    charge = np.where(local < SMOOTH, local / 4, 2 * local)
    inner = np.arange(1, SUBLINES) / SUBLINES
    at = t[:-1, None] + np.diff(t)[:, None] * inner
    value = _hermite(t, h, slope, at.ravel()).reshape(at.shape) + charge[:, None]
    return at.ravel(), value.ravel()


class _LogRatio:
    """The law of L for one shift, as integrals over the radius."""

    def __init__(self, noise: RadialNoise, s: float) -> None:
        self._g = g = radial_shape(noise.unit)
        self._s, self._angle = s, angle_law(noise.dim)
        self._rough = noise.dim < KINKS_BELOW
        cosine = math.sqrt(-math.expm1(-REACH * REACH / (noise.dim - 1)))
        self._edges = self._panels(cosine)
        self._pieces = self._monotone(cosine)
        self.falling = len(self._pieces) == 1 and self._pieces[0].falls and not g.corners
        finite = [p.g[np.isfinite(p.g) & (p.g > -1e299)] for p in self._pieces]
        self.size = 1.0 + max(float(np.max(np.abs(v), initial=0.0)) for v in finite)
        self._values = self._critical()
        self._moving = self._rough or self._values.size > 0
        self._order, self._polish = (16, 3) if self._moving else (12, 2)

    def _span(self, low: float, high: float, cosine: float) -> tuple[float, float]:
        """How near and how far ‖z − δ‖ reaches from radii in [low, high]."""
        s = self._s
        nearest = min(max(s * cosine, low), high)
        near = math.sqrt(max(nearest**2 + s**2 - 2 * nearest * s * cosine, 0.0))
        return near, math.sqrt(high**2 + s**2 + 2 * high * s * cosine)

    def _panels(self, cosine: float) -> Array:
        """Edges in r: quantiles of the radius under P, what Q adds, and every corner."""
        g, s = self._g, self._s
        low, high = float(g.edges[0]), float(g.edges[-1])
        near, far = self._span(low, high, cosine)
        near, far = min(low, max(near, g.low)), max(high, min(far, g.high))
        count = math.ceil(min((far - high) / (high - g.edges[-2]), 8))
        parts = [g.edges, np.array([near]), np.linspace(high, far, count + 1)]
        for b in (*g.corners, *g.turns, g.low, g.high):
            if 0 < b < math.inf:
                parts.append(np.array([b, abs(s - b), s + b]))
        if not self._rough:
            parts.append(s * np.array([0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0]))
        edges = np.unique(np.concatenate(parts))
        edges = edges[(edges >= near) & (edges <= far)]
        edges = edges[np.append(True, np.diff(edges) > 1e-14 * edges[1:])]
        long = np.flatnonzero((edges[:-1] > 0) & (edges[1:] > 100 * edges[:-1]))
        between = [np.geomspace(edges[i], edges[i + 1], 8)[1:-1] for i in long]
        return np.unique(np.concatenate([edges, *between]))

    def _monotone(self, cosine: float) -> list[Piece]:
        """φ cut into monotone stretches over all the ρ that matter."""
        g = self._g
        low, high = self._span(float(self._edges[0]), float(self._edges[-1]), cosine)
        low, high = max(low, g.low), min(high, g.high)
        if low >= high:
            return [Piece(np.array([g.low, g.low + 1e-300]), np.zeros(2), True)]
        inner = self._edges[(self._edges > low) & (self._edges < high)]
        edges = np.concatenate([[low], inner, [high]])
        tiny = 1e-13 * high
        if low < 1e-3 * edges[1]:
            edges = np.concatenate(
                [[low], np.geomspace(max(low, tiny), edges[1], 25)[1:], edges[2:]]
            )
        rho = refined(edges, max(TABLE // (edges.size - 1), 8))
        rho = np.concatenate([rho, *(b * (1 + np.array([-1e-14, 1e-14])) for b in g.corners)])
        rho = np.unique(rho[(rho >= low) & (rho <= high)])
        if rho[0] < tiny:
            rho[0] = min(tiny, 0.5 * rho[1])
        value = np.maximum(g(rho), -1e300)
        turns = turning_points(value)
        if turns.size:
            extra = extrema(g, rho, value, turns)
            rho = np.unique(np.concatenate([rho, extra]))
            value = np.maximum(g(rho), -1e300)
            turns = turning_points(value)
        pieces = []
        for i, j in zip([0, *turns], [*turns, rho.size - 1], strict=True):
            part = value[i : j + 1]
            falls = bool(part[0] >= part[-1])
            part = np.minimum.accumulate(part) if falls else np.maximum.accumulate(part)
            pieces.append(Piece(rho[i : j + 1], part, falls))
        return pieces

    def _critical(self) -> Array:
        """Values of log φ at its turning points and corners: the level sets change there."""
        ends = [float(p.rho[0]) for p in self._pieces[1:]]
        corners = [b * (1 + e) for b in self._g.corners for e in (-1e-13, 1e-13)]
        value = self._g(np.array([*ends, *corners]))
        return np.unique(value[np.isfinite(value)])

    def differences(self) -> Array:
        """The positive differences of the first few critical values."""
        value = self._values[-8:]
        gaps = np.abs(value[:, None] - value[None, :])
        return np.unique(gaps[gaps > 1e-6])

    def _kinks(self, t: Array) -> Array:
        """For each t the radii at which P(L > t | r) is not smooth, one row each."""
        g, s = self._g, self._s

        def level_changes(value: float) -> Callable[[Array], Array]:
            return lambda r: value - g(r)

        curves = [level_changes(float(value)) for value in self._values]
        if self._rough:
            curves.append(lambda r: g(np.maximum(np.abs(r - s), 1e-200)) - g(r))
            curves.append(lambda r: g(r + s) - g(r))
        grid = refined(np.union1d(self._edges, [s]), max(640 // self._edges.size, 4))
        grid = np.union1d(grid[grid > 0], self._edges[1] * np.geomspace(1e-9, 0.1, 20))
        grid = grid[(grid >= self._edges[0]) & (grid <= self._edges[-1])]
        rows, roots = [], []
        for curve in curves:
            with np.errstate(invalid="ignore"):
                higher = np.nan_to_num(curve(grid), nan=-1e300)[None, :] > t[:, None]
                row, cell = np.nonzero(higher[:, 1:] != higher[:, :-1])
                low, high, at_low = grid[cell], grid[cell + 1], higher[row, cell]
                for _ in range(36):
                    middle = 0.5 * (low + high)
                    same = (curve(middle) > t[row]) == at_low
                    low, high = np.where(same, middle, low), np.where(same, high, middle)
            rows.append(row)
            roots.append(0.5 * (low + high))
        row, root = np.concatenate(rows), np.concatenate(roots)
        order = np.argsort(row, kind="stable")
        row, root = row[order], root[order]
        rank = np.arange(row.size) - np.searchsorted(row, row)
        used = rank < 12
        result = np.full((t.size, min(int(rank.max(initial=-1)) + 1, 12)), self._edges[-1])
        result[row[used], rank[used]] = root[used]
        return result

    def _rule(self, edges: Array, order: int) -> tuple[Array, Array]:
        """Radii and P-weights of the panels; squeezed towards the edges where kinks may be."""
        node, weight = np.polynomial.legendre.leggauss(order)
        y, weight = 0.5 * (1 + node), 0.5 * weight
        if self._moving:
            y, weight = y * y * (3 - 2 * y), 6 * y * (1 - y) * weight
        low, high = edges[:, :-1, None], edges[:, 1:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            log_ratio = np.log(high / low)
            curved = (low > 0) & (high > 1.5 * low)
            r = np.where(curved, low * np.exp(log_ratio * y), low + (high - low) * y)
            w = np.where(curved, r * log_ratio, high - low) * weight
        r, w = r.reshape(edges.shape[0], -1), w.reshape(edges.shape[0], -1)
        return r, w * self._g.density(r)

    def _edges_for(self, t: Array) -> Array:
        """One row of panel edges for all t, or a row for each where kinks move with t."""
        edges = self._edges[None, :]
        if not self._moving:
            return edges
        fixed = np.broadcast_to(edges, (t.size, edges.shape[1]))
        kinks = self._kinks(t)
        steps = np.min(kinks, axis=1, keepdims=True, initial=edges[0, -1]) * [8.0, 64.0, 512.0]
        steps = np.where(steps < edges[0, 1], steps, edges[0, -1])  # up from a kink near 0
        return np.sort(np.concatenate([fixed, kinks, steps], axis=1), axis=1)

    def hockey_stick(self, t: Array) -> tuple[Array, Array, Array]:
        """H(t), H′(t) for t > 0, and the measured error of H: quadrature and level search."""
        both = np.concatenate([-t, t])
        edges = self._edges_for(both)
        found, mass = self._integrate(both, edges, self._order, self._polish)
        blunt, _ = self._integrate(both, edges, 2 * self._order // 3, self._polish - 1)
        growth = np.exp(t)
        weighted = growth * found[t.size :]
        change = np.abs(found - blunt)
        error = change[: t.size] + growth * change[t.size :] + abs(float(np.max(mass)) - 1.0)
        return 1.0 - found[: t.size] - weighted, -weighted, error + abs(float(np.min(mass)) - 1.0)

    def beyond(self, t: Array) -> Array:
        """Q(L > t) ≥ H(t), its measured error added."""
        edges = self._edges_for(-t)
        found, mass = self._integrate(-t, edges, self._order, self._polish)
        blunt, _ = self._integrate(-t, edges, 2 * self._order // 3, self._polish - 1)
        return 1.0 - found + np.abs(found - blunt) + np.abs(mass - 1.0)

    def _integrate(self, t: Array, edges: Array, order: int, polish: int) -> tuple[Array, Array]:
        """P(L > t) for each t, and the mass of the radius by the same rule (1 if exact)."""
        r, w = self._rule(edges, order)
        level = self._g(r) + t[:, None]
        total = np.zeros(level.shape)
        for number, piece in enumerate(self._pieces):
            rho, none = self._invert(piece, level, polish)
            inner = self._angle.tail(r, self._s, rho)
            if not piece.falls:
                total += self._angle.tail(r, self._s, piece.rho[-1:]) - inner
            elif number == 0 and self._g.low == 0:
                total += np.where(none, 0.0, inner)
            else:
                total += inner - self._angle.tail(r, self._s, piece.rho[:1])
        return np.sum(np.where(w > 0, w * total, 0.0), axis=1), np.sum(w, axis=1)

    def _invert(self, piece: Piece, level: Array, polish: int) -> tuple[Array, NDArray[np.bool_]]:
        """Where φ crosses a level on a monotone piece, and whether it starts on the far side.

        The table gives the cell, chord steps the place.
        """
        sign = -1.0 if piece.falls else 1.0
        side = "left" if piece.falls else "right"
        right = np.searchsorted(sign * piece.g, sign * level, side=side)  # type: ignore[call-overload]
        i = np.clip(right, 1, piece.g.size - 1)
        low, high = piece.rho[i - 1], piece.rho[i]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            chord = (high - low) / (piece.g[i] - piece.g[i - 1])
            rho = low + (level - piece.g[i - 1]) * chord
            for _ in range(polish):
                rho = np.clip(rho, low, high)
                rho = rho - (self._g(rho) - level) * chord
        rho = np.where(np.isfinite(rho), np.clip(rho, low, high), high)
        rho = np.where(right == 0, piece.rho[0], rho)
        return np.where(right == piece.g.size, piece.rho[-1], rho), right == 0
