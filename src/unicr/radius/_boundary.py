"""Phase I, scalar optimisation: along one direction, the first λ at which K falls to zero."""

from __future__ import annotations

import math
from collections.abc import Callable

from unicr.errors import RadiusError
from unicr.radius._question import Evidence
from unicr.tradeoff import TradeOff
from unicr.tradeoff.internal import compute_margin, compute_start_margin

TOLERANCE = 1e-5  # of the radius: far below the 0.2 % within which a bracket counts as exact
FIRST_GAP = 1e-4  # of a proved radius: the first step beyond it
REACH = 1e12  # times the guess: a root farther out is no root of these numbers


def find_first_root(
    value: Callable[[float], float],
    start: float,
    guess: float,
    *,
    monotone: bool,
    tolerance: float = TOLERANCE,
    endless: bool = False,
    stop: float = math.inf,
    proved: float = 0.0,
) -> float:
    """The certified end of the first interval [0, r] on which the value is at least 0.

    `start` = value(0) > 0. Monotone: chords from a bracket that always shrinks. Otherwise first
    steps outwards by an eighth until the first failure (or `stop`, what is known elsewhere; then
    from nearer by); it may miss narrower dips. Up to `proved` nothing fails: steps begin there,
    small ones first.
    Where nothing fails up to REACH times the guess the answer is inf if a theorem allows that
    (`endless`); otherwise the numbers cannot be trusted, and it is an error.

    See docs/theory.md#certifies.
    """
    low, at_low = 0.0, start
    if not monotone:
        r = guess / (100 if math.isinf(stop) else 8)
        gap = FIRST_GAP * proved
        if proved > 0:
            low, r = proved, proved + gap
        while (v := value(r)) >= 0:
            low, at_low = r, v
            gap *= 2.0
            r += min(gap, 0.125 * r) if proved > 0 else 0.125 * r
            if low > stop or r > REACH * guess:
                return low if low > stop else _answer_without_root(endless, r)
    else:
        r = guess
        while (v := value(r)) >= 0:
            slope = (at_low - v) / (r - low)
            distance = v / slope if slope > 0 else math.inf
            low, at_low = r, v
            if distance <= tolerance * r:
                return r
            r += min(max(1.02 * distance, tolerance * r), 3 * r)
            if r > REACH * guess:
                return _answer_without_root(endless, r)
    high, at_high = r, v
    width = high - low
    for step in range(120):
        # 1e-13: below that share of the guess a radius is 0 to these numbers
        if high - low <= tolerance * high or high <= 1e-13 * guess:
            break
        slope = (at_low - at_high) / (high - low)
        gentle = min(slope, (start - at_low) / low) if low > 0 else 0.0
        if math.isfinite(gentle) and gentle > 0 and at_low <= gentle * tolerance * low:
            break  # at the gentler of the two slopes the root is closer than the tolerance
        stuck = step % 4 == 3 and high - low > 0.25 * width
        if stuck or not math.isfinite(slope):
            r = 0.5 * (low + high)
        else:
            r = low + at_low / slope
            r = max(r - 0.4 * tolerance * r, low + 0.3 * (r - low))
        if step % 4 == 3:
            width = high - low
        v = value(r)
        if v >= 0:
            low, at_low = r, v
        else:
            high, at_high = r, v
    return low


def find_radius(
    tradeoff: Callable[[float], TradeOff],
    evidence: Evidence,
    guess: float,
    *,
    monotone: bool = True,
    tolerance: float = TOLERANCE,
    endless: bool = False,
) -> float:
    """The first radius at which T no longer keeps the probability of A above that of every other
    class.

    On the certified side of it: K ≥ 0 there, and before it where T falls with the radius
    (`monotone`; docs/theory.md#certifies).
    """
    p_a, p_b = evidence.p_a, evidence.p_b

    def value(r: float) -> float:
        return compute_margin(tradeoff(r), p_a, p_b)

    start = compute_start_margin(p_a, p_b)
    return find_first_root(
        value, start, guess, monotone=monotone, tolerance=tolerance, endless=endless
    )


def _answer_without_root(endless: bool, r: float) -> float:
    if endless:
        return math.inf
    raise RadiusError(
        f"no perturbation up to {r:.3g} reaches the boundary: floating point cannot tell the noise "
        "from its shift (its tail is too heavy, or its log-density is wrong); use other parameters"
    )
