"""How high is the learning rate at a step? One curve from a peak down to 0 for each name."""

from __future__ import annotations

import math
from collections.abc import Callable

RISE = 0.3  # share of the steps in which one-cycle rises to its peak
DROPS = (0.5, 0.75, 0.9)  # shares of the steps after which `step` falls to a tenth


def one_cycle(step: int, steps: int, peak: float) -> float:
    """From peak/25 up to the peak by a cosine, then down to 0 by another."""
    top = RISE * steps - 1
    if step <= top:
        low, share = peak / 25, step / top
        return peak + (low - peak) * (1 + math.cos(math.pi * share)) / 2
    share = (step - top) / (steps - 1 - top)
    return peak * (1 + math.cos(math.pi * share)) / 2


def cosine(step: int, steps: int, peak: float) -> float:
    """From the peak at once, down to 0 by a cosine."""
    return peak * (1 + math.cos(math.pi * step / max(1, steps - 1))) / 2


def drop_rate(step: int, steps: int, peak: float) -> float:
    """The peak for half of the steps, then a tenth of it, a hundredth and a thousandth."""
    return float(peak * 0.1 ** sum(step >= share * steps for share in DROPS))


SCHEDULES: dict[str, Callable[[int, int, float], float]] = {
    "one-cycle": one_cycle,
    "cosine": cosine,
    "step": drop_rate,
}
