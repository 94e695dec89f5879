"""How much mass lies beyond the scan, and what are the moments?

The far ends are continued as power laws; a tail that is too heavy to be integrated is refused.
"""

from __future__ import annotations

import math

import numpy as np

from unicr.errors import NoiseError
from unicr.law._quadrature._chebyshev import NODES, WEIGHTS, N
from unicr.law._quadrature._logdensity import HINT, LogDensity
from unicr.law._quadrature._panels import INNER_POWER, Panels
from unicr.law._quadrature._scan import Landscape


def far_mass(
    f: LogDensity, land: Landscape, sign: float, shift: float, total: float
) -> tuple[float, float, float]:
    """(mass beyond the scan in units of exp(shift), kappa, distance reached) for one side.

    The mass beyond a distance s falls like s^kappa.
    """
    hard, end = (land.hard_low, land.low) if sign < 0 else (land.hard_high, land.high)
    side, origin = ("-", land.anchors[0]) if sign < 0 else ("+", land.anchors[-1])
    side, s = f"{side}infinity", abs(end - origin)
    if hard or s == 0.0:
        return 0.0, -math.inf, 0.0
    ratio = 1e3 if s > 1e30 else 1.05
    outer, inner = f(np.array([origin + sign * s * (1 - 1e-12), origin + sign * s / ratio]))
    with np.errstate(all="ignore"):
        kappa = 1.0 + float((outer - inner) / math.log(ratio))
    if not kappa > -1e6:
        return 0.0, -math.inf, 0.0
    if kappa > -0.02:
        raise NoiseError(
            f"the density has infinite mass towards {side}: near x = {end:.3g} it behaves like "
            f"|x|^{kappa - 1.0:.4g}, and it must fall faster than |x|^-1.02; {HINT}, or declare a "
            "bounded `support`"
        )
    log_f = float(f(np.array([end]))[0])
    mass = math.exp(min(log_f + math.log(s) - shift, 700.0)) / -kappa
    if mass > 1e-12 * total:
        raise NoiseError(
            f"the tail towards {side} is too heavy: a share of {mass / total:.2g} of the mass lies "
            f"beyond x = {end:.3g}; {HINT} with a tail that falls faster than |x|^-1.05"
        )
    return mass, kappa, s


def moment(
    panels: Panels, shift: float, total: float, far: list[tuple[float, float, float]], power: int
) -> float:
    """E x^power over panels and far tails; inf or nan if it does not converge."""
    smooth = panels.take(panels.kind != INNER_POWER)
    s = smooth.distance(np.broadcast_to(NODES, (smooth.size, N)))
    x = smooth.base[:, None] + smooth.direction[:, None] * s
    with np.errstate(all="ignore"):
        log_size = smooth.log_values - shift - math.log(total) + power * np.log(np.abs(x))
        term = np.exp(log_size) * np.sign(x) ** power
        parts = smooth.length * (term @ WEIGHTS)
    parts = np.where(np.isfinite(parts), parts, np.inf)
    inner = panels.take(panels.kind == INNER_POWER)
    q, kappa = inner.direction * inner.length, inner.kappa
    mean_s, mean_s2 = q * kappa / (kappa + 1.0), q**2 * kappa / (kappa + 2.0)
    share = inner.mass / total
    if power == 1:
        parts = np.append(parts, share * (inner.base + mean_s))
    else:
        parts = np.append(parts, share * (inner.base**2 + 2.0 * inner.base * mean_s + mean_s2))
    for sign, (mass, k, reach) in zip((-1.0, 1.0), far, strict=True):
        if k + power > -1e-3:
            return math.nan if power == 1 else math.inf
        if mass / total > 0.0:
            size = math.exp(min(math.log(mass / total) + power * math.log(reach), 700.0))
            parts = np.append(parts, sign**power * size * k / (k + power))
    return math.fsum(parts) if np.isfinite(parts).all() else math.inf
