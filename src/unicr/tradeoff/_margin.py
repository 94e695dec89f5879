"""K as searches see it: a margin that is nearly linear in the length of δ, and where to start."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from scipy import special


class InvertibleTradeOff(Protocol):
    """Anything that gives T and its inverse at a number."""

    def beta(self, alpha: float, /) -> Any:
        """T(α)."""

    def alpha(self, beta: float, /) -> Any:
        """The smallest α with T(α) ≤ β."""


def compute_margin(tradeoff: InvertibleTradeOff, p_a: float, p_b: float) -> float:
    """A number that is ≥ 0 exactly where the perturbation is certified, nearly linear in λ.

    Binary case: Φ⁻¹(p_A) − Φ⁻¹(least p_A that certifies). Otherwise K itself.

    See docs/theory.md#certifies.
    """
    if p_b >= 1.0 - p_a:
        alpha = float(tradeoff.alpha(0.5))
        return float(special.ndtri(alpha) - special.ndtri(1.0 - p_a)) if alpha > 0 else -math.inf
    return float(tradeoff.beta(1.0 - p_a) + tradeoff.beta(p_b) - 1.0)


def compute_start_margin(p_a: float, p_b: float) -> float:
    """What `margin` is at λ = 0."""
    if p_b >= 1.0 - p_a:
        return -float(special.ndtri(1.0 - p_a))
    return p_a - p_b


def guess_radius(p_a: float, p_b: float) -> float:
    """Half the Gaussian gap: the size of a radius at unit scale, to start searches from."""
    gap = float(special.ndtri(min(p_a, 1 - 1e-16)) - special.ndtri(max(p_b, 1e-300)))
    return max(0.5 * gap, 1e-12)


def maximise(
    value: Callable[[float], float], first: Iterable[float], rounds: int
) -> tuple[float, float]:
    """About where a function is largest, and its value there: halved steps around the best."""
    tried = {x: value(x) for x in first}
    for _ in range(rounds):
        x = sorted(tried)
        best = max(range(len(x)), key=lambda i: tried[x[i]])
        for i in (best - 1, best):
            if 0 <= i < len(x) - 1:
                middle = 0.5 * (x[i] + x[i + 1])
                tried[middle] = value(middle)
    return max(tried.items(), key=lambda pair: pair[1])
