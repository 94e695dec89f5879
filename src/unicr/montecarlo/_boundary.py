"""Algorithms 1 and 2 of the paper on samples of the log-ratio: K(δ), and the λ where it is zero."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unicr.extras import torch
from unicr.montecarlo._logratio import LogRatios
from unicr.montecarlo._settings import Estimator
from unicr.tradeoff.internal import compute_margin, compute_start_margin
from unicr.values import Array

SCAN = 6  # points tried on the way to a known radius where K may not be monotone
OUTWARD = 1.25  # first step beyond a guess that is certified; steps grow from there
FARTHEST = 1e9  # times the guess: a radius beyond counts as infinite


class Corners(NamedTuple):
    """An estimated trade-off function: Q-mass `power` against P-mass `size`, both ascending."""

    size: Array
    power: Array

    def beta(self, alpha: float) -> float:
        """T(α), linear between corners: a randomised test on an atom."""
        j = int(np.searchsorted(self.size, alpha, side="right")) - 1
        if j == len(self.size) - 1:
            return 1.0 - float(self.power[j])
        run = self.size[j + 1] - self.size[j]
        share = (alpha - self.size[j]) / run
        return 1.0 - float(self.power[j] + share * (self.power[j + 1] - self.power[j]))

    def alpha(self, beta: float) -> float:
        """The smallest α with T(α) ≤ β."""
        j = int(np.searchsorted(self.power, 1.0 - beta, side="left"))
        if j == 0:
            return 0.0
        if j == len(self.power):
            return 1.0
        share = (1.0 - beta - self.power[j - 1]) / (self.power[j] - self.power[j - 1])
        return float(self.size[j - 1] + share * (self.size[j] - self.size[j - 1]))


def weigh_corners(under_q: Array) -> Corners:
    """T from samples of Q alone: a sample with log-ratio L has Q-mass 1/n and P-mass e^(−L)/n.

    dP = e^(−L) dQ where P is absolutely continuous. Beyond a threshold the weights are bounded, so
    small type-I errors are measured by many samples instead of by few.
    """
    n = len(under_q)
    descending = -np.sort(-under_q)
    with np.errstate(over="ignore"):
        size = np.cumsum(np.exp(-descending)) / n
    power = np.arange(n + 1) / n
    return Corners(np.concatenate([[0.0], size]), power)


def quantile_corners(under_p: Array, under_q: Array) -> Corners:
    """T from the two empirical laws of L, as the paper's Algorithm 1 takes its quantiles.

    T(1 − p_A) is F̂_Q(t_A) with t_A the p_A quantile of F̂_P, T(p_B) is F̂_Q(t_B) with t_B the
    1 − p_B quantile (the paper prints p_B); equal values of L are one corner.
    """
    values = np.concatenate([under_p, under_q])
    order = np.argsort(-values, kind="stable")
    from_p = order < len(under_p)
    size = np.cumsum(from_p) / len(under_p)
    power = np.cumsum(~from_p) / len(under_q)
    last = np.append(np.diff(values[order]) != 0, True)
    return Corners(np.concatenate([[0.0], size[last]]), np.concatenate([[0.0], power[last]]))


class Boundary:
    """K along directions, at one set of samples: Algorithms 1 and 2, many directions at a time."""

    def __init__(
        self, ratios: LogRatios, p_a: float, p_b: float, *, estimator: Estimator, monotone: bool
    ) -> None:
        self.ratios, self.p_a, self.p_b = ratios, p_a, p_b
        self._estimator, self._monotone = estimator, monotone
        self._start = compute_start_margin(p_a, p_b)

    def margins(self, directions: torch.Tensor, lengths: Array) -> Array:
        """`margin` of length·direction, row by row."""
        moves = directions * torch.from_numpy(lengths).to(directions.device)[:, None]
        under_q = self.ratios.under_q(moves)
        if self._estimator == "weighted":
            corners = [weigh_corners(row) for row in under_q]
        else:
            under_p = self.ratios.under_p(moves)
            corners = [quantile_corners(*pair) for pair in zip(under_p, under_q, strict=True)]
        return np.array([compute_margin(corner, self.p_a, self.p_b) for corner in corners])

    def radii(
        self,
        directions: torch.Tensor,
        guess: Array,
        *,
        tolerance: float,
        limits: Array | None = None,
    ) -> Array:
        """Algorithm 2: for each row the λ where K first falls to zero, from the certified side.

        With `limits`, inf for the rows that are certified all the way to their limit. Rows with
        ‖δ‖_p = 1 make λ the radius. Outward steps first where K may not be monotone.

        See docs/theory.md#the-monte-carlo-engine.
        """
        count = len(directions)
        low, at_low = np.zeros(count), np.full(count, self._start)
        high, at_high = np.full(count, math.inf), np.full(count, math.nan)

        def evaluate(rows: NDArray[np.intp], lengths: Array) -> None:
            if not rows.size:
                return
            values = self.margins(directions[rows.tolist()], lengths)
            good = values >= 0
            low[rows[good]], at_low[rows[good]] = lengths[good], values[good]
            high[rows[~good]], at_high[rows[~good]] = lengths[~good], values[~good]

        if limits is not None:
            for step in [1.0] if self._monotone else np.linspace(0, 1, SCAN + 1)[1:]:
                rows = np.flatnonzero(np.isinf(high) & np.isfinite(limits))
                evaluate(rows, step * limits[rows])
        else:
            length = guess.copy() if self._monotone else guess / 16
            while (rows := np.flatnonzero(np.isinf(high) & (length < FARTHEST * guess))).size:
                before, at_before = low[rows].copy(), at_low[rows].copy()
                evaluate(rows, length[rows])
                factor = np.full(rows.size, OUTWARD)
                if self._monotone:
                    with np.errstate(divide="ignore", invalid="ignore"):
                        slope = (at_before - at_low[rows]) / (length[rows] - before)
                        reach = 1 + 1.05 * at_low[rows] / (slope * length[rows])
                    factor = np.where(slope > 0, np.clip(reach, 1.02, 4.0), 4.0)
                length[rows] *= factor
        for step in range(80):
            rows = np.flatnonzero(np.isfinite(high) & (high - low > tolerance * high))
            if not rows.size:
                break
            width = high[rows] - low[rows]
            with np.errstate(invalid="ignore", divide="ignore"):
                chord = low[rows] + width * at_low[rows] / (at_low[rows] - at_high[rows])
            chord *= 1 + (0.4 if step % 2 else -0.4) * tolerance
            middle = low[rows] + 0.5 * width
            usable = np.isfinite(chord) & (step % 4 != 3)
            edge = np.minimum(0.02 * width, 0.4 * tolerance * high[rows])
            chord = np.clip(chord, low[rows] + edge, high[rows] - edge)
            evaluate(rows, np.where(usable, chord, middle))
        return np.where(np.isfinite(high), low, math.inf)
