"""How tight proofs are for densities off the beaten path: proved / searched against a bar.

Bounded, asymmetric, spiked and comb-like noise in every norm; each line says what its radius cost.
UNICR_BENCH_ONLY keeps the lines whose name holds that text.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import special

from unicr import noise
from unicr.noise import IID, Noise
from unicr.radius import certified_radius
from unicr.values import Array

LARGE = 150_528
ONLY = os.environ.get("UNICR_BENCH_ONLY", "")
SEED = 5


class Case(NamedTuple):
    """One line: what is asked, and what proved / searched should reach."""

    name: str
    noise: Noise
    p: float
    dim: int
    p_a: float
    bar: float


def make_bars(edges: Array, heights: Array) -> IID:
    """A histogram: a density that is constant between edges."""
    with np.errstate(divide="ignore"):
        logs = np.log(heights)

    def bars(x: Array) -> Array:
        at = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(logs) - 1)
        return np.where((x >= edges[0]) & (x < edges[-1]), logs[at], -math.inf)

    return noise.from_density(bars, points=tuple(edges), support=(edges[0], edges[-1]))


def list_cases() -> Iterator[Case]:
    """The lines, each density with the questions that were hardest for it."""
    half = noise.from_density(lambda x: -x, support=(0, math.inf))
    yield Case("exponential on a half-line", half, 1, LARGE, 0.51, 0.5)
    gamma = noise.from_density(lambda x: -0.5 * np.log(x) - x, support=(0, math.inf), points=(0,))
    yield Case("Gamma(1/2)", gamma, 2, LARGE, 0.5001, 0.5)
    spike = noise.from_density(
        lambda x: np.logaddexp(
            math.log(0.9) - x**2 / 2, math.log(0.1) - math.log(1e-3) - (x / 1e-3) ** 2 / 2
        ),
        points=(0,),
    )
    yield Case("Gaussian + 10 % spike", spike, math.inf, 3, 0.999999, 0.7)
    lopsided = noise.from_density(lambda x: -np.abs(x), support=(-1, 2), points=(0,))
    yield Case("truncated Laplace, asymmetric", lopsided, 4, LARGE, 0.51, 0.8)
    cut = noise.from_density(lambda x: -(np.abs(x) ** 0.3), support=(-5, 5), points=(0,))
    yield Case("truncated General Normal .3", cut, 4, LARGE, 0.9, 0.8)
    bowl = noise.from_density(lambda x: np.log1p(-(x**2)), support=(-1, 1))
    for p, dim, p_a in ((2, 3072, 0.9), (1.5, 784, 0.6), (4, 784, 0.99), (1.5, 10, 0.99)):
        yield Case("1 - x^2", bowl, p, dim, p_a, 0.9)
    steep = noise.parse("gennorm(beta=0.1, scale=1)")
    for dim, p_a in ((784, 0.9), (LARGE, 0.99)):
        yield Case("General Normal .1", steep, 1, dim, p_a, 0.8)
    edges = np.linspace(-2, 2, 41)
    comb = make_bars(edges, np.where(np.arange(40) % 2 == 0, 1.0, 0.4))
    hole = make_bars(np.array([-2.0, -0.5, 0.3, 1.0, 2.0]), np.array([1.0, 2.0, 0.0, 1.5]))
    for p, dim, p_a in ((1, 10, 0.9), (2, 784, 0.9), (math.inf, 3, 0.99), (2, 2, 0.7)):
        yield Case("comb of 40 bins", comb, p, dim, p_a, 0.5)
        yield Case("histogram with a hole", hole, p, dim, p_a, 0.5)
    for p_a in (0.6, 0.99):
        yield Case("comb of 40 bins", comb, 2, 1, p_a, 0.999)
        yield Case("histogram with a hole", hole, 2, 1, p_a, 0.999)
    rng = np.random.default_rng(SEED)
    places, widths = rng.uniform(-3, 3, 4), rng.uniform(0.1, 1, 4)
    modes = noise.from_density(
        lambda x: special.logsumexp(
            -(((np.asarray(x)[..., None] - places) / widths) ** 2), axis=-1
        ),
        points=tuple(sorted(places)),
    )
    yield Case("four modes", modes, 2, 1, 0.9, 0.999)


def main() -> None:
    """One line for every case."""
    print("\nproved / searched where it is hard, the bar, and seconds of one core")
    for case in list_cases():
        if ONLY not in case.name:
            continue
        start = time.process_time()
        found = certified_radius(case.noise, case.p, case.dim, p_a=case.p_a)
        ratio = math.floor(1e4 * found.proved / found.searched) / 1e4
        print(
            f"  {case.name:<30} l{case.p:<4g} d={case.dim:<7} p_A={case.p_a:<9g}"
            f" {ratio:.4f} (bar {case.bar}){'' if ratio >= case.bar else ' BELOW'}"
            f"   {time.process_time() - start:.0f} s  {found.theorem}; {found.grade}",
            flush=True,
        )


if __name__ == "__main__":
    main()
