"""Closed forms are rounded down: against 40 digits, in every family, also close to p_A = 1/2."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from unicr import noise
from unicr.radius import RadiusCurve, certified_radius
from unicr.radius._rounding import RADIUS_CHARGE, TAIL_CHARGE, lower_radius
from unicr.radius.bellman._mesh import Mesh

DIGITS = 40
PROBABILITIES = (0.500000001, 0.50001, 0.51, 0.6, 0.75, 0.9, 0.99, 0.9999, 1 - 1e-9, 1 - 1e-12)
Tail = Callable[[mpmath.mpf], mpmath.mpf]


def general_normal(beta: str) -> Tail:
    b = mpmath.mpf(beta)
    return lambda x: mpmath.gammainc(1 / b, x**b, mpmath.inf, regularized=True) / 2


def exponential_mix(x: mpmath.mpf) -> mpmath.mpf:
    """∝ exp(−x/2 − x²/2), by completing the square."""
    half, root = mpmath.mpf("0.5"), mpmath.sqrt(2)
    return mpmath.erfc((x + half) / root) / mpmath.erfc(half / root) / 2


TAILS: dict[str, Tail] = {
    "gaussian(scale=1)": lambda x: mpmath.erfc(x) / 2,
    "laplace(scale=1)": lambda x: mpmath.exp(-x) / 2,
    "uniform(scale=1)": lambda x: (1 - x) / 2,
    "sech(scale=1)": lambda x: 2 / mpmath.pi * mpmath.atan(mpmath.exp(-x)),
    "gennorm(beta=1.1, scale=1)": general_normal("1.1"),
    "gennorm(beta=3, scale=1)": general_normal("3"),
    "expmix(beta=0.5, scale=1)": exponential_mix,
}


@pytest.mark.parametrize("spec", TAILS)
def test_closed_forms_never_exceed_the_quantile(spec: str) -> None:
    law = noise.parse(spec)
    curve = RadiusCurve(law, 1, 10)
    with mpmath.workdps(DIGITS):
        for p_a in PROBABILITIES:
            proved = certified_radius(law, 1, 10, p_a=p_a).proved
            tail = 1 - mpmath.mpf(p_a)
            true = mpmath.findroot(lambda x, tail=tail: TAILS[spec](x) - tail, proved)
            near = TAIL_CHARGE / (p_a - 0.5)  # what a raised tail costs close to 1/2
            assert proved < true
            assert proved > true * (1 - 2 * RADIUS_CHARGE - near)
            assert float(curve(p_a)) < true


def test_the_scale_is_multiplied_before_rounding() -> None:
    """d^(1/p − 1/2)·σ·Φ⁻¹(p_A), for scales of every size."""
    rng = np.random.default_rng(11)
    with mpmath.workdps(DIGITS):
        for sigma in 10 ** rng.uniform(-6, 6, 40):
            law = noise.gaussian(sigma=float(sigma))
            half = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(0.9) - 1)
            true = mpmath.mpf(float(sigma)) * half / mpmath.mpf(784) ** (mpmath.mpf(1) / 6)
            assert (
                true * (1 - 2 * RADIUS_CHARGE)
                < certified_radius(law, 3, 784, p_a=0.9).proved
                < true
            )


def test_lowering_keeps_zero_and_infinity() -> None:
    assert lower_radius(0.0, 3.0) == 0
    assert lower_radius(math.inf, 0.5) == math.inf
    assert np.all(lower_radius(np.array([1.0, 2.0]), 2.0) < [2.0, 4.0])


@pytest.mark.parametrize("seed", range(5))
def test_cumulated_sums_of_masses_stay_within_their_charge(seed: int) -> None:
    """Ψ at the points of a mesh against 40 digits: masses of every size, signs as of bends."""
    rng = np.random.default_rng(seed)
    mesh = Mesh(0.01, -6.0, 9.0)
    mass = rng.choice([-1, 1, 1, 1], mesh.count) * 10 ** rng.uniform(-12, 0, mesh.count)
    careful = mesh.sum_values(mass)
    allowed = mesh.rounding * float(np.sum(np.abs(mass)))
    with mpmath.workdps(DIGITS):
        above, weighted = mpmath.mpf(0), mpmath.mpf(0)
        for j in range(mesh.count - 1, -1, -1):
            gamma = mpmath.mpf(float(mesh.gamma[j]))
            above += mpmath.mpf(float(mass[j]))
            weighted += mpmath.mpf(float(mass[j])) / gamma
            assert abs(above - gamma * weighted - mpmath.mpf(float(careful[j]))) <= allowed
