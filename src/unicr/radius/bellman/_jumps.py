"""What a shift shows for certain, apart from the rest: a bound for each, multiplied.

A pair of laws whose log-ratio is infinite with Q-mass 1 − e^(−a), and −∞ with P-mass 1 − e^(−b), is
a finite pair, T′, with both: T(α) = e^(−a) T′(α e^b). So it is for products, where a and b add up
(docs/theory.md#jumps-apart). `Steps` are pairs that stand for all shifts between two, each at the
cost of the smaller one; `bound_sums` bounds what all coordinates together have of a and b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unicr.noise import IID
from unicr.radius.bellman._kernel import KERNEL_SPREAD
from unicr.tradeoff import RatioLaw, make_ratio_law
from unicr.values import Array

# Onto a and b: masses of one law are right to 4e-16 (`RatioCells`), their sums and logarithms to
# some hundred units.
MASS_ROUNDING = 2e-15
SUM_ROUNDING = 1e-12  # relative, for sums over coordinates
ANGLES = 17  # directions in which sums of (a, b) are bounded, for noise without symmetry
CORNERS = 60  # of the staircase around all pairs of sums; more of them only lose less


@dataclass(frozen=True)
class Jump:
    """What one shift shows for certain: `gone` is a, Q's, and `left` is b, P's."""

    gone: float
    left: float


def split_law(law: RatioLaw, widest: float) -> tuple[RatioLaw, Jump]:
    """A pair that is easier to tell apart, as its finite part, |L| ≤ widest but for a constant, and
    its jump.

    An atom beyond `widest` keeps there as much of both masses as fits; the rest is infinite
    (docs/theory.md#lemma-4: its two masses go to the two ends of a wider range).
    """
    loss, mass = law.loss, law.mass
    # (q, p = q·e^−L): p·e^widest of q stay at L = widest
    kept = np.where(loss > widest, mass * np.exp(np.minimum(widest - loss, 0.0)), mass)
    loss = np.clip(loss, -widest, widest)
    p = kept * np.exp(-loss)  # below −widest: q·e^widest of p stay at L = −widest
    q_mass, p_mass = float(np.sum(kept)), float(np.sum(p))
    if not (q_mass > 0 and p_mass > 0):
        return RatioLaw(np.zeros(1), np.ones(1), 0.0), Jump(math.inf, math.inf)
    used = kept > 0
    moved = loss[used] - math.log(q_mass) + math.log(p_mass)
    order = np.argsort(moved, kind="stable")
    finite = RatioLaw(moved[order], (kept[used] / q_mass)[order], 0.0)
    return finite, Jump(_charge(-math.log(q_mass)), _charge(-math.log(p_mass)))


def _charge(value: float) -> float:
    return max(value, 0.0) * (1 + SUM_ROUNDING) + MASS_ROUNDING


def list_laws(noise: IID, u: float) -> list[RatioLaw]:
    """For each sign the pair of the shift u, easier to tell apart than that of every smaller one:
    T_u falls with |u| on either side of 0 (`_chord.find_falling_reach`).
    """
    signs = (1.0,) if noise.facts.symmetric else (1.0, -1.0)
    return [make_ratio_law(noise, sign * u, KERNEL_SPREAD) for sign in signs]


class Steps:
    """Pairs for the cells of a grid of shifts 0 < u_0 < u_1 < …, the first from 0, and their jumps.

    `finite[k]` holds a pair for each sign, `jumps[k]` their (a, b).
    """

    def __init__(self, noise: IID, shifts: Array, widest: float) -> None:
        self.finite: list[list[RatioLaw]] = []
        self.jumps = np.zeros((len(shifts), 1 if noise.facts.symmetric else 2, 2))
        for k, u in enumerate(shifts):
            split = [split_law(law, widest) for law in list_laws(noise, float(u))]
            self.finite.append([law for law, _ in split])
            self.jumps[k] = [(jump.gone, jump.left) for _, jump in split]


def list_corners(rates: Array, costs: Array, first: Array, budget: float) -> tuple[Array, Array]:
    """Pairs (a, b), one of which is at least as large, in both, as what all coordinates sum to.

    `rates` are the jumps (k, sign, 2) of the steps with their `costs`, `first` those of the first
    coordinate (sign, 2); `budget` is what the other coordinates may cost. In every direction the
    sum is at most the largest rate per cost times the budget.
    """
    flat = rates.reshape(-1, 2)
    cost = np.repeat(costs, rates.shape[1])
    theta = np.linspace(0.0, math.pi / 2, ANGLES)
    way = np.stack([np.cos(theta), np.sin(theta)])
    way[:, 0], way[:, -1] = (1.0, 0.0), (0.0, 1.0)
    with np.errstate(invalid="ignore"):
        per = np.max(np.nan_to_num(flat @ way, nan=np.inf) / cost[:, None], axis=0)
        most = per * budget + np.max(np.nan_to_num(first @ way, nan=np.inf), axis=0)
    most = most * (1 + SUM_ROUNDING)
    if not np.all(np.isfinite(most)):
        return np.array([np.inf]), np.array([np.inf])
    if rates.shape[1] == 1:  # an even pair: a and b are alike, and largest together
        return most[:1], most[-1:]
    x = most[0] * np.linspace(0.0, 1.0, CORNERS + 1)
    inner = (most[None, 1:-1] - np.outer(x[:-1], way[0, 1:-1])) / way[1, 1:-1]
    y = np.minimum(np.min(inner, axis=1), most[-1])
    used = y >= 0
    return x[1:][used], y[used] * (1 + SUM_ROUNDING) + SUM_ROUNDING * most[-1]


@lru_cache(maxsize=8)
def make_steps(noise: IID, shifts: tuple[float, ...], widest: float) -> Steps:
    """The steps of a grid, kept: flows of one scale share them."""
    return Steps(noise, np.asarray(shifts), widest)
