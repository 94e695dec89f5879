"""Is the table right?

A Gauss-Legendre rule on differently cut panels must find mass one, and nothing that the scan saw
may be missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unicr.errors import NoiseError
from unicr.law._quadrature._logdensity import LogDensity
from unicr.law._quadrature._panels import INNER_POWER, LOG, Panels
from unicr.values import Array

if TYPE_CHECKING:
    from unicr.law._quadrature._table import TabulatedDensity


def self_check(f: LogDensity, panels: Panels, log_mass: float, far_share: float) -> None:
    """A Gauss-Legendre rule on differently cut panels must find mass 1."""
    xi, weight = np.polynomial.legendre.leggauss(17)
    smooth = panels.take(panels.kind != INNER_POWER)
    mass = far_share
    power = panels.kind == INNER_POWER
    if power.any():
        inner = panels.take(power)
        ladder = 10.0 ** -np.arange(0.0, 13.0)
        alpha = inner.kappa - 1.0
        s = inner.length[:, None] * ladder
        s = np.maximum(s, inner.closest[:, None])
        at = inner.base[:, None] + inner.direction[:, None] * s
        s = np.maximum(np.abs(at - inner.base[:, None]), 1e-300)
        log_f = f.strict(at) - log_mass
        with np.errstate(all="ignore"):
            law = np.exp(log_f + np.log(s)) / inner.kappa[:, None]
            law = law * (inner.length[:, None] / s) ** (alpha + 1.0)[:, None]
        mass += float(np.sum(np.median(law, axis=1)))
    for a, b in ((0.0, 0.382), (0.382, 1.0)):
        z = a + (b - a) * (xi + 1.0) / 2.0
        s = smooth.distance(np.broadcast_to(z, (smooth.size, z.size)))
        x = smooth.base[:, None] + smooth.direction[:, None] * s
        log_g = f.strict(x) - log_mass + np.where((smooth.kind == LOG)[:, None], np.log(s), 0.0)
        with np.errstate(under="ignore", over="ignore"):
            mass += float(np.sum(smooth.length * (np.exp(log_g) @ weight) * (b - a) / 2.0))
    if not abs(mass - 1.0) <= 1e-9:
        raise NoiseError(
            "two independent integrations of the density disagree (the second one finds the mass "
            f"{mass:.12g} instead of 1): name its modes, jumps and kinks with `points`, or give a "
            "smoother logpdf"
        )


def check_scan(table: TabulatedDensity, x: Array) -> None:
    """The scanned densities must be those of the table: no feature seen may be left out."""
    cell = np.diff(np.asarray(table.cdf(x)))
    density = np.asarray(table.pdf(x))
    density = np.where(np.isfinite(density), density, 0.0)
    with np.errstate(all="ignore"):
        least = np.minimum(density[1:], density[:-1]) * np.diff(x)
    missing = np.where(np.isfinite(least), least, 0.0) - cell
    # a cell's mass falls below its smallest end density only where the density dips inside it
    worst = int(np.argmax(missing))
    if missing[worst] > 1e-9:
        inner = np.linspace(x[worst], x[worst + 1], 41)
        dip = float(np.min(table.pdf(inner))) * float(x[worst + 1] - x[worst])
        if dip - cell[worst] > 1e-9:
            raise NoiseError(
                f"the integration missed a feature of the density near x = {x[worst]:.6g}: name "
                "that place with `points`"
            )
