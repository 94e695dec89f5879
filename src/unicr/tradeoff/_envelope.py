"""One law that is at least as easy to tell apart as each of several: the envelope of theorem (f).

At every γ the largest of the hockey-stick divergences is taken. A maximum of convex functions is
convex, so it is the divergence of a pair again, and that pair may be composed; the pointwise
infimum of the trade-off functions themselves may not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unicr.tradeoff._base import combine_bounds
from unicr.tradeoff._ratio import RatioLaw
from unicr.values import Array

NODES = 1200  # of the envelope, evenly and again near the middle; chords between them lie above
FARTHEST = 700.0  # e^t beyond is no number


def hockey_stick(law: RatioLaw, t: Array) -> Array:
    """H(t) = Σ mass·(1 − e^{t − loss})₊ + infinite, for any t."""
    mass, loss = law.mass, law.loss
    above = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
    weighted = np.concatenate([np.cumsum((mass * np.exp(-loss))[::-1])[::-1], [0.0]])
    first = np.searchsorted(loss, t, side="right")
    return above[first] - np.exp(t) * weighted[first] + law.infinite


def _keep_finite(law: RatioLaw) -> RatioLaw:
    """A law that is easier to tell apart: log-ratios beyond all numbers are infinite, or raised."""
    far = law.loss > FARTHEST
    loss, infinite = np.maximum(law.loss[~far], -FARTHEST), float(np.sum(law.mass[far]))
    return RatioLaw(loss, law.mass[~far], law.infinite + infinite, law.bound)


def _place_nodes(laws: Sequence[RatioLaw]) -> Array:
    """Points that keep a distance, so that slopes keep digits; 0 is where opposite shifts cross."""
    loss = np.sort(np.concatenate([law.loss for law in laws]))
    spread = max(math.sqrt(law.variance) for law in laws)
    even = np.linspace(loss[0], loss[-1], NODES)
    central = np.linspace(max(loss[0], -8 * spread), min(loss[-1], 8 * spread), NODES)
    fixed = np.unique([loss[0], loss[-1], *([0.0] if loss[0] < 0 < loss[-1] else [])])
    gap = (loss[-1] - loss[0]) * 1e-9 + spread * 1e-4
    t = np.unique(np.concatenate([even, central]))
    t = t[np.min(np.abs(t[:, None] - fixed), axis=1) > gap]
    t = t[np.concatenate([[True], np.diff(t) > gap])] if t.size else t
    return np.unique(np.concatenate([t, fixed]))


def make_envelope(laws: Sequence[RatioLaw]) -> RatioLaw:
    """The law whose hockey-stick divergence is the largest of `laws` at every γ.

    Each of them is harder to tell apart (docs/theory.md#theorem-f).

    Values at the nodes are joined by straight lines in γ = e^t, which lie above a convex function.
    """
    bound = combine_bounds([law.bound for law in laws])
    laws = [_keep_finite(law) for law in laws]
    if apart := [law for law in laws if law.loss.size == 0]:
        return apart[0]  # a shift beyond the support: nothing is easier to tell apart
    t = _place_nodes(laws)
    h = np.max([hockey_stick(law, t) for law in laws], axis=0)
    gamma = np.exp(t)
    slopes = -np.diff(np.concatenate([[1.0], h])) / np.diff(np.concatenate([[0.0], gamma]))
    slopes = np.maximum.accumulate(np.concatenate([slopes, [0.0]])[::-1])[::-1]
    mass = gamma * (slopes[:-1] - slopes[1:])
    used = mass > 0
    # raised slopes may bring the sum above 1, by which `compose` would divide: charged below
    mass = mass / max(1.0, float(np.sum(mass)))
    infinite = max(0.0, 1.0 - float(np.sum(mass)))
    law = RatioLaw(t[used], mass[used], infinite, bound)
    # what slopes that were made to fall take off is charged in every coordinate
    short = float(np.max(h - hockey_stick(law, t)))
    return replace(law, charge=max(short, 0.0))
