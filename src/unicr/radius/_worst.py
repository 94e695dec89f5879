"""The searched curve: at each radius the worst direction found, and how to read between nodes.

A searched radius is an estimate from above; between nodes it is read from below as well as the
curve's smoothness allows, which is no proof. Proved curves are read by `_steps` and `_readings`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from unicr.progress import tell
from unicr.radius._direction import COARSE, FINE, list_candidates, list_neighbours, search_direction
from unicr.radius._question import Evidence, Question
from unicr.radius._readings import LAST_TAIL
from unicr.radius._spectrum import Spectrum
from unicr.tradeoff import compute_tradeoff
from unicr.values import Array

NODES = 64  # radii of a searched curve, before refinement
COARSE_NODES = 13  # of them, at which every direction is followed
TASK = "following the worst directions, once"
MOST_NEAR = 5  # candidates that are evaluated at one radius
READ_LOSS = 1e-3  # of the radius, that reading between two nodes may cost before one is added


class WorstDirection:
    """The smallest T⁻¹(1/2) over all directions at a given radius.

    Every candidate is followed along a coarse grid of radii first; at one radius only the few that
    come within 2 % of the worst there (in Φ⁻¹) are evaluated, then the worst is refined.
    """

    def __init__(self, unit: Question) -> None:
        self._unit, self._norm, self._dim = unit.noise, unit.norm, unit.dim
        self.last, worst = search_direction(unit, Evidence(1 - LAST_TAIL, LAST_TAIL))
        directions = [*(s.unit(unit.norm) for s in list_candidates(unit)), worst]
        self._spectra = list(dict.fromkeys(directions))
        self._radii = _make_grid(self.last)[:: NODES // COARSE_NODES]
        self._log_z = np.array(
            [[self._log_probit(s, r) for r in self._radii] for s in self._spectra]
        )

    def _alpha(self, spectrum: Spectrum, r: float, spread: float) -> float:
        return float(compute_tradeoff(self._unit, spectrum.shifts(r), spread=spread).alpha(0.5))

    def _log_probit(self, spectrum: Spectrum, r: float) -> float:
        alpha = self._alpha(spectrum, r, COARSE)
        return math.log(max(-float(special.ndtri(min(alpha, 0.5))), 1e-12)) if alpha > 0 else 9.0

    def alpha(self, r: float) -> float:
        """T⁻¹(1/2) along the worst direction found at radius r, in full accuracy."""
        x, known = math.log(r), np.log(self._radii)
        at = np.array([np.interp(x, known, row) for row in self._log_z])
        first = np.argsort(-at, kind="stable")[:MOST_NEAR]
        near = [self._spectra[i] for i in first if at[i] >= np.max(at) - 0.02]
        best = min([*self._spectra[:2], *near], key=lambda s: self._alpha(s, r, COARSE))
        lowest = self._alpha(best, r, COARSE)
        step = 0.3
        while step > 0.05:
            around = [
                s.unit(self._norm) for s in list_neighbours(best, self._norm, self._dim, step)
            ]
            values = [self._alpha(s, r, COARSE) for s in around]
            if values and min(values) < lowest * (1 - 1e-5):
                lowest = min(values)
                best = around[values.index(lowest)]
            else:
                step /= 2.5
        return self._alpha(best, r, FINE)


def _make_grid(last: float) -> Array:
    small = last * np.geomspace(1 / 32768, 1 / 64, 10)
    return np.concatenate([small, np.linspace(last / 48, last, NODES - 10)])


def place_nodes(alpha_at: Callable[[float], float], last: float) -> tuple[Array, Array]:
    """(1 − p, r) on a grid of r, refined where reading between two nodes would lose much.

    In front stands (1/2, 0); 1 − p never rises: a radius counts until the first failure.
    """
    grid, known = _make_grid(last), {}
    for j, r in enumerate(grid):
        known[float(r)] = alpha_at(float(r))
        tell(TASK, j + 1, len(grid))
    while True:
        radius = np.array([0.0, *sorted(known)])
        alpha = np.array([0.5, *(known[r] for r in radius[1:])])
        alpha = np.minimum.accumulate(alpha)
        y = -special.ndtri(np.maximum(alpha, LAST_TAIL / 10))
        loss = _measure_gaps(y, radius) / (0.5 * (radius[1:] + radius[:-1]))
        wide = (loss > READ_LOSS) & (np.diff(y) > 1e-3) & (y[:-1] > 1e-3)
        if not wide.any() or len(known) > 6 * NODES:
            return alpha, radius
        for i in np.flatnonzero(wide):
            r = 0.5 * float(radius[i] + radius[i + 1])
            known[r] = alpha_at(r)


def read_from_below(alpha: Array, radius: Array) -> Callable[[Array], Array]:
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


def _measure_gaps(y: Array, r: Array) -> Array:
    """How far the curve can lie above what is read, halfway between nodes: the prolonged chords."""
    slope = np.diff(r) / np.maximum(np.diff(y), 1e-300)
    half = 0.5 * np.diff(y)
    left = np.concatenate([slope[1:2], slope[:-1]]) - slope
    right = slope - np.concatenate([slope[1:], slope[-2:-1]])
    below, above = np.minimum(left, right), np.maximum(left, right)
    return half * np.where(below > 0, below, np.where(above < 0, -above, above - below))
