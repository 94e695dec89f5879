"""A proved curve from few trade-off functions: many steps (1 − p, r), each of them proved.

Let f_r lie below T_δ for every ‖δ‖ ≤ r. A longer δ is a walk of r and then s, and no test of the
whole walk is better than f_s(1 − f_r). So r + s is certified where f_r(1 − p) ≥ 1 − a_s, with
a_s = f_s⁻¹(1/2): from f at some radii a_r follows at all others, with nothing interpolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy import special

from unicr.progress import tell
from unicr.tradeoff import TradeOff
from unicr.values import Array

FINENESS = 4e-4  # between steps, as a share of the radius
HALVINGS = 11  # halvings of the first radius down to the shortest walk
WALK_LOSS = 5e-4  # of the radius, that a walk may lose before T is asked halfway
TASK = "composing a curve, once"
MOST_TRADEOFFS = 240  # radii at which T is asked: what is read is lower with fewer, not less proved


def prove_steps(
    tradeoff: Callable[[float], TradeOff], first: float, last: float
) -> tuple[Array, Array]:
    """(1 − p, r) with r proved at p, rising: 0.04 % apart from `first` to `last`.

    A walk of r and then s is two shifts one after the other (docs/theory.md#lemma-3).

    Where a walk from one radius to the next loses more than 0.05 %, `tradeoff` is asked halfway,
    MOST times at most: what is read is then lower, not less proved.
    """
    known = _TradeOffs(tradeoff)
    least = first * 0.5**HALVINGS
    octaves = [last * 0.5**k for k in range(math.ceil(math.log2(last / least)), -1, -1)]
    for r in octaves:
        known.add(r)
    walks = _Walks(known, octaves)
    while True:
        radii = sorted(known.tradeoffs)
        losses = sorted(
            (_measure_loss(known, walks, a, b), a, b) for a, b in pairwise(radii) if b >= first
        )
        wide = [(a, b) for loss, a, b in losses[::-1] if loss > WALK_LOSS][
            : MOST_TRADEOFFS - len(radii)
        ]
        if not wide:
            tell(TASK, 1, 1)
            return _expand_walks(known, walks, first)
        for a, b in wide:
            known.add(0.5 * (a + b))
            tell(TASK, len(known.tradeoffs), None)


def _measure_loss(known: _TradeOffs, walks: _Walks, a: float, b: float) -> float:
    """By how much the walk from a to b falls short of b, as a share of b."""
    walked = float(known[a].alpha(1.0 - walks.alpha(b - a)))
    y = -special.ndtri(np.clip([known.alpha(a), known.alpha(b), walked], 1e-300, 0.5))
    rate = (b - a) / max(y[1] - y[0], 1e-12)
    return float(min((y[2] - y[1]) * rate, b - a) / b)


class _TradeOffs:
    """f at the radii that were asked for, with a = f⁻¹(1/2)."""

    def __init__(self, tradeoff: Callable[[float], TradeOff]) -> None:
        self._make = tradeoff
        self.tradeoffs: dict[float, TradeOff] = {}
        self._alpha: dict[float, float] = {}

    def add(self, r: float) -> None:
        """Ask for f at one more radius."""
        self.tradeoffs[r] = self._make(r)
        self._alpha[r] = float(self.tradeoffs[r].alpha(0.5))

    def __getitem__(self, r: float) -> TradeOff:
        return self.tradeoffs[r]

    def alpha(self, r: float) -> float:
        """a at one of the radii."""
        return self._alpha[r]


class _Walks:
    """a_s for every walk s, rounded up to a table that is itself made of walks."""

    def __init__(self, known: _TradeOffs, octaves: list[float]) -> None:
        sizes, alphas = octaves[:1], [known.alpha(octaves[0])]
        self._sizes, self._alphas = np.array(sizes), np.array(alphas)
        for a, b in pairwise(octaves):
            rest = a * np.arange(2 * FINENESS, 1.0, 2 * FINENESS)
            reached = known[a].alpha(1.0 - self.alpha(rest))
            self._sizes = np.concatenate([self._sizes, a + rest, [b]])
            self._alphas = _make_falling(np.concatenate([self._alphas, reached, [known.alpha(b)]]))

    def alpha(self, s: float | Array) -> Array:
        """a at the next size above s."""
        return self._alphas[np.searchsorted(self._sizes, s)]


def _expand_walks(known: _TradeOffs, walks: _Walks, first: float) -> tuple[Array, Array]:
    """Every radius between two that are known, by a walk from the lower one."""
    alpha, radius = [np.array([0.5])], [np.array([0.0])]
    for a, b in pairwise(sorted(known.tradeoffs)):
        if b >= 0.1 * first:
            rest = a * np.arange(FINENESS, b / a - 1.0, FINENESS)
            alpha.append(known[a].alpha(1.0 - walks.alpha(rest)))
            radius.append(a + rest)
            alpha.append(np.array([known.alpha(b)]))
            radius.append(np.array([b]))
    return _make_falling(np.concatenate(alpha)), np.concatenate(radius)


def _make_falling(alpha: Array) -> Array:
    """α, made to fall along r: what certifies a radius certifies every smaller one.

    See docs/theory.md#certifies.
    """
    return np.maximum.accumulate(alpha[::-1])[::-1]
