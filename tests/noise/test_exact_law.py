"""The law that the lattice sampler draws from, integer by integer, beside the density's own."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from unicr import noise
from unicr.noise import Lattice
from unicr.noise.internal import LatticeNoise
from unicr.sample._law import EVEN, FALLING, REST, RISING, IntegerLaw, integer_law

WHOLE = 1 << 64
NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)
Tail = Callable[[mpmath.mpf], mpmath.mpf]


def gaussian(scale: float) -> Tail:
    """P(ε > x) to all digits."""
    return lambda x: mpmath.erfc(x / mpmath.mpf(scale) / mpmath.sqrt(2)) / 2


def laplace(scale: float) -> Tail:
    def tail(x: mpmath.mpf) -> mpmath.mpf:
        z = x / mpmath.mpf(scale)
        return mpmath.exp(-z) / 2 if z > 0 else 1 - mpmath.exp(z) / 2

    return tail


def cauchy(scale: float) -> Tail:
    return lambda x: mpmath.mpf(1) / 2 - mpmath.atan(x / mpmath.mpf(scale)) / mpmath.pi


def power(scale: float, beta: float) -> Tail:
    def tail(x: mpmath.mpf) -> mpmath.mpf:
        z = abs(x) / mpmath.mpf(scale)
        half = mpmath.gammainc(1 / mpmath.mpf(beta), z**beta, regularized=True) / 2
        return half if x > 0 else 1 - half

    return tail


def masses(tail: Tail, step: mpmath.mpf, first: int, count: int) -> list[mpmath.mpf]:
    """P(e = j) for j = first, first + 1, …; from whichever tail keeps the digits."""
    found = []
    for j in range(first, first + count):
        a, b = (mpmath.mpf(2 * j + sign) * step / 2 for sign in (-1, 1))
        found.append(tail(a) - tail(b) if j >= 0 else tail(-b) - tail(-a))
    return found


def distance(law: IntegerLaw, tail: Tail, step: mpmath.mpf) -> mpmath.mpf:
    """The total variation between what is drawn and the density's law, all digits.

    An outcome is drawn with the probability of its thresholds; inside it all integers are alike, or
    the larger (smaller) of two that are, or they follow what the density has beyond a line.
    """
    ends = [0, *map(int, law.ends), WHOLE]
    drawn: dict[int, mpmath.mpf] = {}
    for k in range(len(ends) - 1):
        mass = mpmath.mpf(ends[k + 1] - ends[k]) / WHOLE
        start, size, kind = int(law.starts[k]), 1 << int(law.widths[k]), int(law.kinds[k])
        if kind == EVEN:
            share = [mpmath.mpf(1) / size] * size
        elif kind in (RISING, FALLING):
            share = [mpmath.mpf(2 * i + 1) / size**2 for i in range(size)]
            share = share if kind == RISING else share[::-1]
        else:
            assert kind == REST
            offset = np.arange(size)
            at = (start + offset[:, None] + NODES / 2) * law.step  # as rejection sees the density
            beyond = law.law.pdf(at) @ WEIGHTS * law.step / 2
            beyond -= law.least[k] + law.tilt[k] * offset
            assert np.all((beyond >= 0) & (beyond <= law.most[k] * (1 + 1e-9)))
            share = [mpmath.mpf(float(one)) / mpmath.fsum(beyond.tolist()) for one in beyond]
        for i, one in enumerate(share):
            drawn[start + i] = drawn.get(start + i, mpmath.mpf(0)) + mass * one
    low, high = min(drawn), max(drawn)
    exact = masses(tail, step, low, high - low + 1)
    apart = mpmath.fsum(abs(drawn.get(low + i, 0) - one) for i, one in enumerate(exact))
    outside = tail(-mpmath.mpf(2 * low - 1) * step / 2) + tail(mpmath.mpf(2 * high + 1) * step / 2)
    assert mpmath.fsum(drawn.values()) == 1
    return (apart + outside) / 2


LAWS = {
    "gaussian, narrow": (noise.gaussian(sigma=0.25), "1/16", gaussian(0.25)),
    "gaussian, wide tails": (noise.gaussian(sigma=1), "1/64", gaussian(1)),
    "laplace": (noise.laplace(scale=0.5), "1/8", laplace(0.5)),
    "laplace, fine": (noise.laplace(scale=1), "1/40", laplace(1)),
    "gennorm": (noise.gennorm(beta=1.5, scale=0.3), "1/10", power(0.3, 1.5)),
}


@pytest.mark.parametrize("name", LAWS)
def test_tau_bounds_the_total_variation_to_the_density(name: str) -> None:
    law, text, tail = LAWS[name]
    lattice = Lattice.parse(text)
    with mpmath.workdps(40):
        step = mpmath.mpf(float(lattice.step))
        found = integer_law(law, float(lattice.step))
        apart = float(distance(found, tail, step))
    tau = LatticeNoise(law, lattice).tau
    assert tau == found.tau
    assert apart <= tau < 1e-12
    assert tau > 1e-17


def test_tau_pays_for_what_lies_beyond_the_farthest_integer() -> None:
    """Cauchy tails reach beyond 2^61 steps of 2^-36."""
    law, step = noise.cauchy(scale=1), 2.0**-36
    found = integer_law(law, step)
    last = float(np.max(found.starts + (np.int64(1) << found.widths.astype(np.int64)))) - 0.5
    with mpmath.workdps(40):
        outside = float(2 * cauchy(1)(mpmath.mpf(last) * mpmath.mpf(step)))
    assert outside > 1e-9
    assert found.tau >= outside * (1 - 1e-9)


def test_copies_follow_from_their_number_alone() -> None:
    """Rows 7 … 11 of a batch are the batch that starts at 7, and no two rows are alike."""
    import torch

    for law in (noise.gaussian(sigma=1), noise.gaussian(sigma=400), noise.cauchy(scale=1)):
        drawn = LatticeNoise(law, Lattice.parse("1/64"))
        base = np.arange(5, dtype=np.int64)
        whole = drawn.add(base, torch.empty(12, 5), key=b"k" * 32)
        part = drawn.add(base, torch.empty(5, 5), key=b"k" * 32, start=7)
        assert torch.equal(whole[7:], part)
        moved = drawn.add(base + 3, torch.empty(12, 5), key=b"k" * 32)
        assert torch.equal(moved, whole + 3 / 64)
        values = {value for row in (whole - whole.mean()).tolist() for value in row}
        assert len(values) > 40
