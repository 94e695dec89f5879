"""How finely must the panels be cut?

Each is split until its mass is accurate relative to the smaller of the probabilities on its two
sides, until rounding forbids more, or until it obeys a power law. Where that goes deep stands a
jump or a kink that the scan did not show.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unicr.errors import NoiseError
from unicr.law._quadrature._chebyshev import DERIVATIVE, EPS, NODES, TO_COEF, WEIGHTS, N
from unicr.law._quadrature._logdensity import HINT, LogDensity
from unicr.law._quadrature._panels import INNER_POWER, LINEAR, LOG, Panels, split, x_edges
from unicr.law._quadrature._scan import nice
from unicr.values import Array

# Error of a panel's mass, as a share of the smaller of cdf and sf there: a hundred roundings, which
# leaves the relative accuracy of 1e-12 that `TabulatedDensity` promises after all sums.
_TOL = 3e-14
_NEGLIGIBLE = 1e-24  # of the whole mass: no probability is asked for that far out
MAX_PANELS = 20_000  # about a second of work; rough densities need more, and are refused


class SingularPoint(Exception):
    def __init__(self, x: float):
        super().__init__(f"singular at {x}")
        self.x = x


def _sample(f: LogDensity, panels: Panels) -> None:
    """Fill log_values with log(density wrt the panel's own variable) at the nodes."""
    s = panels.distance(np.broadcast_to(NODES, (panels.size, N)))
    x = panels.base[:, None] + panels.direction[:, None] * s
    value = f.strict(x)
    if np.isposinf(value).any():
        raise SingularPoint(float(x[np.isposinf(value)][0]))
    is_log = (panels.kind == LOG)[:, None]
    # x was rounded: move the value from the float actually used to the node that was meant.
    rounding = s - np.abs(x - panels.base[:, None])
    if rounding.any():
        with np.errstate(all="ignore"):
            slope = value @ DERIVATIVE.T / panels.length[:, None]
            shift = slope * np.where(is_log, rounding / s, rounding)
        # a larger shift is no rounding: the slope was taken across a jump
        value = value + np.where(np.abs(shift) < 1e-4, shift, 0.0)
    panels.log_values = value + np.where(is_log, np.log(s), 0.0)


def _noise_level(panels: Panels) -> Array:
    """Relative error of the density that rounding of x and of its logarithm makes inevitable."""
    s0, s1 = (panels.distance(np.full(panels.size, z)) for z in (0.0, 1.0))
    high = panels.log_values.max(axis=1)
    low = np.maximum(panels.log_values.min(axis=1), high - 50.0)
    with np.errstate(all="ignore"):
        steep = (high - low) / (s1 - s0) * np.abs(panels.base + panels.direction * s1)
    steep = np.where(np.isfinite(steep) & (panels.kind == LOG), steep, 0.0)
    level = 4.0 * EPS * (4.0 + np.maximum(np.abs(high), np.abs(low)) + steep)
    # never forgive more than 1e-4: a panel that is worse must be split, whatever its values
    return np.asarray(np.minimum(level, 1e-4), dtype=np.float64)


def _power_fit(f: LogDensity, panels: Panels) -> tuple[Array, Array, Array]:
    """Fit log f = c + alpha log s on panels [0, q]; returns alpha, log f(q), worst misfit."""
    x = panels.base[:, None] + panels.direction[:, None] * panels.length[:, None] * NODES
    s = np.abs(x - panels.base[:, None])
    value = f.strict(x)
    low, high = N // 3, N - 1
    with np.errstate(all="ignore"):
        u = np.log(s) - np.log(panels.length)[:, None]
        alpha = (value[:, high] - value[:, low]) / (u[:, high] - u[:, low])
        top = value[:, high] - alpha * u[:, high]
        misfit = np.max(np.abs(value - top[:, None] - alpha[:, None] * u), axis=1)
    return alpha, top, np.where(np.isfinite(misfit), misfit, np.inf)


def _accept_powers(
    f: LogDensity, panels: Panels, candidates: NDArray[np.bool_], shift: float
) -> NDArray[np.bool_]:
    """Turn panels [0, q] that obey a power law, or cannot be cut further, into power panels."""
    accepted = np.zeros(panels.size, dtype=bool)
    index = np.flatnonzero(candidates)
    if index.size == 0:
        return accepted
    chosen = panels.take(index)
    alpha, log_top, misfit = _power_fit(f, chosen)
    power = misfit < 2e-13 + 8.0 * EPS * np.abs(log_top)
    power |= chosen.length < np.where(alpha < -0.05, 64.0, 0.0625) * chosen.closest
    alpha = np.where(np.isfinite(alpha), alpha, 0.0)
    # |x − x0|^−1 has no integral; −0.98 leaves a mass that 20 nodes still see
    bad = power & (alpha < -0.98)
    if bad.any():
        raise NoiseError(
            f"the density has infinite mass at x = {chosen.base[bad][0]:.17g}: it grows like |x - "
            f"x0|^{alpha[bad][0]:.4g} there, and the exponent must be above -0.98; {HINT}"
        )
    with np.errstate(under="ignore", over="ignore"):
        mass = chosen.length * np.exp(log_top - shift) / np.maximum(1.0 + alpha, 0.02)
    index, mass, alpha = index[power], mass[power], alpha[power]
    panels.mass[index] = np.where(np.isfinite(mass), mass, 0.0)
    panels.kappa[index] = 1.0 + alpha
    panels.kind[index] = INNER_POWER
    accepted[index] = True
    return accepted


def adapt(f: LogDensity, panels: Panels) -> tuple[Panels, float]:
    """Refine until every panel is accurate relative to the smaller of its cdf and sf."""
    active = panels
    _sample(f, active)
    shift = float(np.max(active.log_values + np.log(active.length)[:, None]))
    done: list[Panels] = []
    while active.size:
        with np.errstate(under="ignore", over="ignore"):
            g = np.exp(active.log_values - shift)
        top = g.max(axis=1)
        if not np.isfinite(top).all():
            worst = int(np.argmax(active.log_values.max(axis=1)))
            raise SingularPoint(float(active.base[worst]))
        active.mass = np.maximum(active.length * (g @ WEIGHTS), 0.0)
        tail = np.abs(g @ TO_COEF[-3:].T).max(axis=1)
        error = active.length * np.maximum(2.0 * tail, EPS * top)
        relative = np.where(top > 0.0, error / np.where(top > 0, top * active.length, 1.0), 0.0)

        leaves = Panels.concatenate([*done, active])
        order = leaves.order()
        mass = leaves.mass[order]
        before = np.concatenate([[0.0], np.cumsum(mass)[:-1]])
        after = np.concatenate([np.cumsum(mass[::-1])[::-1][1:], [0.0]])
        total = float(mass.sum())
        scale = np.empty(leaves.size)
        smaller = np.minimum(before, after)
        scale[order] = np.where(smaller > 0.0, smaller, mass)
        allowed = _TOL * np.maximum(scale[leaves.size - active.size :], _NEGLIGIBLE * total)

        accept = error <= allowed
        noise = (relative <= _noise_level(active)) & (active.mass <= 1e2 * allowed / _TOL)
        stuck = (relative < 1e-7) & (relative > 0.3 * active.parent_error)
        active.stagnation = np.where(stuck, active.stagnation + 1, 0)
        active.parent_error = relative
        linear = active.kind == LINEAR
        narrow = ~linear & (active.length <= 32.0 * EPS * np.maximum(1.0, np.abs(active.start)))
        s_mid = active.distance(np.full(active.size, 0.5))
        x_mid = np.abs(active.base + active.direction * s_mid)
        narrow |= ~linear & (active.length * s_mid <= 2.0 * np.spacing(x_mid))
        accept |= noise | (active.stagnation >= 3) | narrow

        accept |= _accept_powers(f, active, linear & ~accept, shift)
        done.append(active.take(accept))
        active = split(active.take(~accept))
        if sum(p.size for p in done) + active.size > MAX_PANELS:
            raise NoiseError(
                f"logpdf is too rough or too noisy to be integrated to 1e-9 ({MAX_PANELS} panels "
                "are not enough): name its jumps and kinks with `points`, or smooth it"
            )
        if active.size:
            _sample(f, active)
    panels = Panels.concatenate(done)
    return panels.take(panels.order()), shift


def hidden_breaks(f: LogDensity, panels: Panels) -> list[float]:
    """The jumps and kinks where the refinement went deep: there second differences are largest."""
    index = np.flatnonzero((panels.depth >= 14) & (panels.kind == LOG))
    left, right = x_edges(panels)
    breaks = []
    for run in np.split(index, np.flatnonzero(np.diff(index) > 6) + 1) if index.size else ():
        i = run[np.argmin((right - left)[run])]
        least = 4.0 * float(np.spacing(abs(left[i])))
        reach = 4.0 * max(right[i] - left[i], least)
        a, b = float(left[i] - reach), float(right[i] + reach)
        while b - a > least:
            x = np.linspace(a, b, 9)
            at = int(np.argmax(np.abs(np.diff(np.clip(f.strict(x), -1e300, 1e300), n=2))))
            a, b = float(x[at]), float(x[at + 2])
        breaks.append(nice(a + (b - a) / 2.0, max(b - a, 1e-13 * abs(a))))
    return breaks
