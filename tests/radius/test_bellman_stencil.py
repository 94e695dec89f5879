"""Stencils of theorem (j): a normal density between mesh points against forty digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from unicr.radius.bellman._stencil import POINTS, dominates, find_stencils


def _smeared(y: mpmath.mpf, step: float, smooth: float) -> mpmath.mpf:
    """The tent around 0, straight in γ, smeared by N(0, s²), over its step: in closed form.

    ∫ e^(av) φ_s(y − v) dv over [b, c] = e^(ay + a²s²/2) (Φ((c − m)/s) − Φ((b − m)/s)), where
    m = y + as².
    """
    h, s = mpmath.mpf(step), mpmath.mpf(smooth)

    def over(a: int, low: mpmath.mpf, high: mpmath.mpf) -> mpmath.mpf:
        m = y + a * s * s
        part = mpmath.ncdf((high - m) / s) - mpmath.ncdf((low - m) / s)
        return mpmath.exp(a * y + a * a * s * s / 2) * part

    down, up = 1 - mpmath.exp(-h), mpmath.exp(h) - 1
    left = (over(1, -h, mpmath.mpf(0)) - mpmath.exp(-h) * over(0, -h, mpmath.mpf(0))) / down
    right = (mpmath.exp(h) * over(0, mpmath.mpf(0), h) - over(1, mpmath.mpf(0), h)) / up
    return (left + right) / h


@pytest.mark.parametrize("per", [2.0, 2.5, 5.0])
@pytest.mark.parametrize("step", [1e-3, 0.04])
def test_a_stencil_is_above_the_density_everywhere(per: float, step: float) -> None:
    """At random y out to 20 widths, where only the last terms are left, and near the tight ones."""
    smooth, parts = step * per, 8
    table = find_stencils(step, smooth, parts)
    assert np.all(np.sum(table, axis=1) < 1.001)
    rng = np.random.default_rng(7)
    at = np.concatenate([rng.uniform(-7, 7, 10), rng.uniform(-20, 20, 3)])
    with mpmath.workdps(120):
        for m in (0, 3, 7):
            for x in at:
                y = mpmath.mpf(float(x)) * smooth
                terms = [
                    mpmath.mpf(float(c)) * _smeared(y - float(j) * mpmath.mpf(step), step, smooth)
                    for c, j in zip(table[m], POINTS, strict=True)
                ]
                density = mpmath.npdf(y - mpmath.mpf(m) * step / parts, 0, smooth)
                assert mpmath.fsum(terms) >= density


def test_the_proof_refuses_what_is_short_anywhere() -> None:
    step, smooth = 0.01, 0.025
    c = find_stencils(step, smooth, 8)[2]
    assert dominates(c, 0.25, step, smooth)
    assert not dominates(0.999 * c, 0.25, step, smooth)  # short in the middle
    for end in (0, -1):
        cut = c.copy()
        cut[end] = 0.0  # short far out, where nobody looks
        assert not dominates(cut, 0.25, step, smooth)
    assert not dominates(c, 0.5, step, smooth)
