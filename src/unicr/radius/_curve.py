"""p_A–R curves: the binary radius as a function of p_A, computed once per shape, then read.

A curve holds nodes (p_j, r_j) at which r_j is certified at p_j, made at unit scale. Between nodes
it is read from below. Reading costs nanoseconds: a table on a uniform grid of −log(2(1 − p)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from unicr.errors import RadiusError
from unicr.noise import IID, Gaussian, Noise, SphericalNoise
from unicr.noise.internal import plainest
from unicr.norms import Norm, parse_norm
from unicr.radius._boundary import first_root, margin, start_margin
from unicr.radius._cache import cached
from unicr.radius._direction import COARSE, FINE, candidates, neighbours, search, settled
from unicr.radius._proofs import best_proof, from_l2, quadrature_is_sound
from unicr.radius._radius import check_dimension
from unicr.radius._spectrum import Spectrum
from unicr.tradeoff import TradeOff, shifted
from unicr.tradeoff.internal import spherical_tradeoff
from unicr.values import Array

NODES = 64
LAST = 1e-11  # 1 − p_A of the last node
CELLS = 1 << 14
COARSE_NODES = 13
READ_LOSS = 1e-3
BLOCK = 1 << 16
REACH = -math.log(2 * LAST)


class RadiusCurve:
    """R(p_A) for one noise, norm and dimension, binary case (p_B = 1 − p_A).

    `curve(p)` is the proved radius, `curve(p, searched=True)` the paper's approximate one; both
    vectorised, both from below between their nodes. Below 1/2 the radius is 0; beyond the last
    node (1 − 1e-11) it stays; p = 1 gives inf for unbounded noise. Computed on first use,
    kept on disk.
    """

    def __init__(self, noise: Noise, norm: Norm | float | str, dim: int | None = None) -> None:
        law = plainest(noise)
        if not isinstance(law, IID | SphericalNoise):
            raise RadiusError(f"{noise.text} has no curve: its coordinates are not independent")
        self.noise = noise
        self.norm = parse_norm(norm)
        self.dim = check_dimension(noise, dim)
        self._scale = law.scale
        self._shape = _shape(law.unit, self.norm, self.dim)

    def __call__(self, p: ArrayLike, *, searched: bool = False) -> Array:
        table = self._shape.searched_table if searched else self._shape.proved_table
        return table.read(p) * self._scale

    def nodes(self, *, searched: bool = False) -> tuple[Array, Array]:
        """(p_A, radius) at the nodes of the curve."""
        alpha, radius = self._shape.searched if searched else self._shape.proved
        return 1.0 - alpha, radius * self._scale


@lru_cache(maxsize=128)
def _shape(unit: IID | SphericalNoise, norm: Norm, dim: int) -> _Shape:
    return _Shape(unit, norm, dim)


class _Shape:
    """The nodes and tables of one curve at unit scale."""

    def __init__(self, unit: IID | SphericalNoise, norm: Norm, dim: int) -> None:
        self.unit, self.norm, self.dim = unit, norm, dim
        self.key = f"{unit.cache_key}|{norm.text}|{dim}|{NODES}"

    @cached_property
    def searched(self) -> tuple[Array, Array]:
        """(1 − p, r): r is certified at p along every direction that was searched."""
        return self._stored("searched", self._search)

    @cached_property
    def proved(self) -> tuple[Array, Array]:
        """(1 − p, r): r is proved at p."""
        if isinstance(self.unit, SphericalNoise) and not quadrature_is_sound(self.unit):
            return self.searched[0], np.zeros_like(self.searched[1])
        if self._exact is not None or self._direction_is_settled:
            return self.searched
        return self._stored("proved", self._prove)

    @cached_property
    def searched_table(self) -> _Table:
        return _Table(self._exact or from_below(*self.searched), self.unit.facts.bounded)

    @cached_property
    def proved_table(self) -> _Table:
        if self.proved is self.searched:
            return self.searched_table
        proved, searched = from_below(*self.proved), from_below(*self.searched)
        lower = lambda alpha: np.minimum(proved(alpha), searched(alpha))  # noqa: E731
        return _Table(lower, self.unit.facts.bounded)

    def _stored(self, kind: str, make: Callable[[], tuple[Array, Array]]) -> tuple[Array, Array]:
        def arrays() -> dict[str, Array]:
            alpha, radius = make()
            return {"alpha": alpha, "radius": radius}

        found = cached(f"curve-{kind}", self.key, arrays)
        return found["alpha"], found["radius"]

    @property
    def _direction_is_settled(self) -> bool:
        if isinstance(self.unit, SphericalNoise):
            return True
        return self.unit.facts.symmetric and settled(self.unit, self.norm, self.dim) is not None

    @cached_property
    def _exact(self) -> Callable[[Array], Array] | None:
        """R as a function of 1 − p in closed form, where there is one: (b) and (d)."""
        unit = self.unit
        if isinstance(unit, Gaussian):
            factor = unit.sigma * from_l2(self.norm, self.dim)
            return lambda alpha: -special.ndtri(alpha) * factor
        one_hot = self.norm.p <= 1 or self.dim == 1
        if isinstance(unit, IID) and one_hot and unit.facts.symmetric and unit.facts.log_concave:
            return unit.isf
        return None

    def _search(self) -> tuple[Array, Array]:
        exact = self._exact
        if exact is not None:
            alpha = special.ndtr(-np.linspace(0, -special.ndtri(LAST), NODES))
            return alpha, exact(alpha)
        if self._direction_is_settled:
            last = self._last_settled()
            return _nodes(lambda r: float(self._settled_tradeoff(r).alpha(0.5)), last)
        assert isinstance(self.unit, IID)
        worst = _WorstDirection(self.unit, self.norm, self.dim)
        return _nodes(worst.alpha, worst.last)

    def _settled_tradeoff(self, r: float) -> TradeOff:
        if isinstance(self.unit, SphericalNoise):
            return spherical_tradeoff(self.unit, r / from_l2(self.norm, self.dim))
        directions = settled(self.unit, self.norm, self.dim)
        assert directions is not None
        return shifted(self.unit, directions[0].unit(self.norm).shifts(r))

    def _last_settled(self) -> float:
        p_a = 1 - LAST
        monotone = self.unit.facts.unimodal and not isinstance(self.unit, SphericalNoise)

        def value(r: float) -> float:
            return margin(self._settled_tradeoff(r), p_a, LAST)

        guess = 7.0 * self.unit.scale
        guess *= 1 / math.sqrt(self.dim) if math.isinf(self.norm.p) else 1.0
        start = start_margin(p_a, LAST)
        return first_root(value, start, guess, monotone=monotone, tolerance=1e-3)

    def _prove(self) -> tuple[Array, Array]:
        assert isinstance(self.unit, IID)
        alpha, searched = self.searched
        keep = np.unique(np.linspace(0, len(alpha) - 1, NODES // 2).astype(int))
        proved = np.zeros(len(keep))
        for j, i in enumerate(keep):
            if alpha[i] < 0.5:
                proof = best_proof(self.unit, self.norm, self.dim, 1 - alpha[i], alpha[i])
                proved[j] = min(proof.radius, searched[i])
        return alpha[keep], np.maximum.accumulate(proved)


class _WorstDirection:
    """The smallest T⁻¹(1/2) over all directions at a given radius.

    Every candidate is followed along a coarse grid of radii first; at one radius only those that
    come within 2 % of the worst there (in Φ⁻¹) are evaluated, then the worst is refined.
    """

    def __init__(self, unit: IID, norm: Norm, dim: int) -> None:
        self._unit, self._norm, self._dim = unit, norm, dim
        self.last, worst = search(unit, norm, dim, 1 - LAST, LAST, 7.0 * unit.scale)
        found = [*(s.unit(norm) for s in candidates(unit, norm, dim)), worst]
        self._spectra = list(dict.fromkeys(found))
        self._radii = _grid(self.last)[:: NODES // COARSE_NODES]
        self._log_z = np.array(
            [[self._log_probit(s, r) for r in self._radii] for s in self._spectra]
        )

    def _alpha(self, spectrum: Spectrum, r: float, spread: float) -> float:
        return float(shifted(self._unit, spectrum.shifts(r), spread=spread).alpha(0.5))

    def _log_probit(self, spectrum: Spectrum, r: float) -> float:
        alpha = self._alpha(spectrum, r, COARSE)
        return math.log(max(-float(special.ndtri(min(alpha, 0.5))), 1e-12)) if alpha > 0 else 9.0

    def alpha(self, r: float) -> float:
        """T⁻¹(1/2) along the worst direction found at radius r, in full accuracy."""
        x, known = math.log(r), np.log(self._radii)
        at = np.array([np.interp(x, known, row) for row in self._log_z])
        near = [s for s, z in zip(self._spectra, at, strict=True) if z >= np.max(at) - 0.02]
        best = min([*self._spectra[:2], *near], key=lambda s: self._alpha(s, r, COARSE))
        lowest = self._alpha(best, r, COARSE)
        step = 0.3
        while step > 0.05:
            around = [s.unit(self._norm) for s in neighbours(best, self._norm, self._dim, step)]
            values = [self._alpha(s, r, COARSE) for s in around]
            if values and min(values) < lowest * (1 - 1e-5):
                lowest = min(values)
                best = around[values.index(lowest)]
            else:
                step /= 2.5
        return self._alpha(best, r, FINE)


def _grid(last: float) -> Array:
    small = last * np.geomspace(1 / 32768, 1 / 64, 10)
    return np.concatenate([small, np.linspace(last / 48, last, NODES - 10)])


def _nodes(alpha_at: Callable[[float], float], last: float) -> tuple[Array, Array]:
    """(1 − p, r) on a grid of r, refined where reading between two nodes would lose much.

    In front stands (1/2, 0); 1 − p never rises: a radius counts until the first failure.
    """
    known = {float(r): alpha_at(float(r)) for r in _grid(last)}
    while True:
        radius = np.array([0.0, *sorted(known)])
        alpha = np.array([0.5, *(known[r] for r in radius[1:])])
        alpha = np.minimum.accumulate(alpha)
        y = -special.ndtri(np.maximum(alpha, LAST / 10))
        loss = _gaps(y, radius) / (0.5 * (radius[1:] + radius[:-1]))
        wide = (loss > READ_LOSS) & (np.diff(y) > 1e-3) & (y[:-1] > 1e-3)
        if not wide.any() or len(known) > 6 * NODES:
            return alpha, radius
        for i in np.flatnonzero(wide):
            r = 0.5 * float(radius[i] + radius[i + 1])
            known[r] = alpha_at(r)


def from_below(alpha: Array, radius: Array) -> Callable[[Array], Array]:
    """A function of 1 − p below the curve through the nodes, by chords and neighbours' chords.

    In y = Φ⁻¹(p) the curve is nearly straight. Where it bends down a chord lies below it; where it
    bends up the prolonged neighbouring chords do. Between two nodes the lower of the chord and of
    the better prolongation is taken, so only an inflection inside three cells could be misjudged.
    """
    positive = (alpha > 0) & np.concatenate([[True], np.diff(alpha) < 0])
    y, r = -special.ndtri(alpha[positive]), radius[positive]

    def value(at: Array) -> Array:
        v = -special.ndtri(at)
        i = np.clip(np.searchsorted(y, v, side="right") - 1, 0, len(y) - 2)
        slope = np.diff(r) / np.diff(y)
        chord = r[i] + slope[i] * (v - y[i])
        right = r[i + 1] + slope[np.minimum(i + 1, len(slope) - 1)] * (v - y[i + 1])
        left = np.where(i > 0, r[i] + slope[np.maximum(i - 1, 0)] * (v - y[i]), right)
        low = np.minimum(chord, np.maximum(left, right))
        return np.clip(low, r[i], r[i + 1])

    return value


def _gaps(y: Array, r: Array) -> Array:
    """How far the curve can lie above what is read, halfway between nodes: the prolonged chords."""
    slope = np.diff(r) / np.maximum(np.diff(y), 1e-300)
    half = 0.5 * np.diff(y)
    left = np.concatenate([slope[1:2], slope[:-1]]) - slope
    right = slope - np.concatenate([slope[1:], slope[-2:-1]])
    below, above = np.minimum(left, right), np.maximum(left, right)
    return half * np.where(below > 0, below, np.where(above < 0, -above, above - below))


class _Table:
    """Straight pieces on a uniform grid of x = −log(2(1 − p)), below the given function."""

    def __init__(self, function: Callable[[Array], Array], bounded: bool) -> None:
        x = np.linspace(0.0, REACH, CELLS + 1)
        with np.errstate(divide="ignore"):
            value = np.maximum(function(0.5 * np.exp(-x)), 0.0)
        value[0] = 0.0
        value = np.maximum.accumulate(value)
        bend = np.abs(np.diff(value, n=2))
        margin_ = 0.25 * np.concatenate([bend[:1], np.maximum(bend[1:], bend[:-1]), bend[-1:]])
        self._slope = np.diff(value) * (CELLS / REACH)
        self._start = np.maximum(value[:-1] - margin_, 0.0) - self._slope * x[:-1]
        self._last = float(value[-1])
        self._at_one = self._last if bounded else math.inf

    def read(self, p: ArrayLike) -> Array:
        """The radius at each p; an error where one is not a probability."""
        p = np.asarray(p, dtype=np.float64)
        flat = np.ravel(p)
        if flat.size and not (np.min(flat) >= 0 and np.max(flat) <= 1):
            bad = flat[~((flat >= 0) & (flat <= 1))][0]
            raise RadiusError(f"p_a={bad!r} must be a probability between 0 and 1")
        result = np.empty_like(flat)
        for first in range(0, flat.size, BLOCK):
            part = flat[first : first + BLOCK]
            with np.errstate(divide="ignore"):
                x = np.minimum(-np.log(2.0 - 2.0 * part), REACH)
            cell = np.clip(x * (CELLS / REACH), 0, CELLS - 1).astype(np.int32)
            values = self._start[cell] + self._slope[cell] * x
            result[first : first + BLOCK] = np.where(x > 0, np.minimum(values, self._last), 0.0)
        np.maximum(result, 0.0, out=result)
        if flat.size and np.max(flat) == 1:
            result[flat == 1] = self._at_one
        return result.reshape(p.shape)
