"""Where are the jumps and kinks that the scan did not show?

Deep refinement betrays them: a jump is then found by bisection, a kink where the polynomials
fitted on both sides cross.
"""

from __future__ import annotations

import math

import numpy as np

from unicr.noise._quadrature._landscape import edge_position
from unicr.noise._quadrature._logdensity import LogDensity
from unicr.noise._quadrature._panels import LOG, Panels, x_edges


def hidden_breaks(f: LogDensity, panels: Panels) -> list[float]:
    """Places where the refinement went deep: jumps by bisection, kinks by extrapolation."""
    deep = (panels.depth >= 14) & (panels.kind == LOG)
    index = np.flatnonzero(deep)
    if index.size == 0:
        return []
    left, right = x_edges(panels)
    found = []
    for run in np.split(index, np.flatnonzero(np.diff(index) > 6) + 1):
        i = int(run[np.argmin((right - left)[run])])
        reach = 4.0 * max(right[i] - left[i], 4.0 * float(np.spacing(abs(left[i]))))
        a, b = float(left[i] - reach), float(right[i] + reach)
        found.append(_locate_break(f, a, b, float(right[run[-1]] - left[run[0]])))
    return found


def _locate_break(f: LogDensity, a: float, b: float, spread: float) -> float:
    before, fa, fb, after = f.strict(np.array([a - (b - a), a, b, b + (b - a)])).tolist()
    finite = math.isfinite(before + fa) and math.isfinite(fb + after)
    if not finite or abs(fa - fb) > 8.0 * max(abs(fa - before), abs(fb - after)) + 1e-9:
        x0, x1 = a, b
        for _ in range(80):
            mid = x0 + (x1 - x0) / 2.0
            if mid in (x0, x1):
                break
            got = float(f.strict(np.array([mid]))[0])
            near_left = got == fa if math.isinf(fa) else abs(got - fa) < abs(got - fb)
            x0, x1 = (mid, x1) if near_left else (x0, mid)
        return edge_position(x0, x1)
    step = max(spread / 8.0, 8.0 * (b - a))
    nodes = step * (1.0 + np.arange(5.0)) / 5.0
    low = np.polyfit(-nodes / step, f.strict(a - nodes), 4)
    high = np.polyfit(nodes / step, f.strict(b + nodes), 4)
    at = np.linspace(a, b, 2001)
    gap = np.polyval(low, (at - a) / step) - np.polyval(high, (at - b) / step)
    cross = np.flatnonzero(np.sign(gap[1:]) != np.sign(gap[:-1]))
    if cross.size == 0:
        return a + (b - a) / 2.0
    k = int(cross[0])
    guess = at[k] - gap[k] * (at[k + 1] - at[k]) / (gap[k + 1] - gap[k])
    for digits in (3, 6):
        nice = float(f"{guess:.{digits}g}")
        if abs(nice - guess) <= 1e-3 * (b - a) + 1e-12 * abs(guess):
            return nice
    return float(guess)
