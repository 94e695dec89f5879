"""How fast is noise drawn, beside `torch.Tensor.normal_` in the same run?

Prints draws per second and the ratio to normal_, float32, for every family and for a density that
a user wrote, real-valued and on the lattice of 8-bit images under a key; the rounds of all
contestants alternate, and the best round of each counts. The goal is a ratio of at least 1.5 at the
large size.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from unicr import noise
from unicr.noise.internal import LatticeNoise, derive

SHAPES = ((1 << 24) // 4096, 4096), (1000, 784)
GOAL = 1.5
BYTES, KEY = noise.Lattice.parse("1/255"), derive("bench")


def bimodal(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """A user's own log-density: two modes, one of them a kink."""
    return np.asarray(np.logaddexp(-((x + 2) ** 2), -3 * np.abs(x - 2)))


def noises() -> dict[str, noise.IID]:
    specs = (
        "gaussian(sigma=0.5)",
        "laplace(sigma=0.5)",
        "sech(sigma=1)",
        "gennorm(beta=0.25, sigma=1)",
        "gennorm(beta=0.75, sigma=1)",
        "gennorm(beta=1.5, sigma=1)",
        "gennorm(beta=3, sigma=1)",
        "cauchy(scale=0.3)",
        "pareto(beta=3, scale=0.5)",
        "lapgauss(beta=0.5, sigma=1)",
        "expmix(beta=0.5, sigma=1)",
        "uniform(sigma=1)",
        "cauchy(scale=0.3).truncated(5)",
    )
    result: dict[str, noise.IID] = {}
    for spec in specs:
        one = noise.parse(spec)
        assert isinstance(one, noise.IID)
        result[spec] = one
    result["a user's bimodal density"] = noise.from_density(bimodal)
    return result


def run(
    contestants: dict[str, noise.IID], *, threads: int = 2, rounds: int = 7
) -> dict[tuple[str, int], float]:
    """Print the throughput of every noise; return the ratios to normal_ by (name, elements)."""
    torch.set_num_threads(threads)
    ratios: dict[tuple[str, int], float] = {}
    for n, dim in SHAPES:
        out, base = torch.empty(n, dim), torch.rand(dim)
        calls: dict[str, Callable[[], object]] = {"torch normal_": out.normal_}
        for name, one in contestants.items():
            calls[name] = partial(one.sample, n, out=out)
        zero = np.zeros(dim, np.int64)
        for name, one in contestants.items():
            calls[f"{name} on 1/255"] = partial(LatticeNoise(one, BYTES).add, zero, out, key=KEY)
        name, one = next(iter(contestants.items()))
        calls[f"{name} + base"] = partial(one.sample, n, out=out, base=base)
        best = dict.fromkeys(calls, float("inf"))
        for round_number in range(rounds + 1):
            for name, call in calls.items():
                begin = time.perf_counter()
                call()
                if round_number:
                    best[name] = min(best[name], time.perf_counter() - begin)
        print(f"{n} x {dim} float32, {threads} threads")
        for name, seconds in best.items():
            ratio = best["torch normal_"] / seconds
            ratios[name, n * dim] = ratio
            print(f"  {name:42s} {n * dim / seconds / 1e6:8.0f} M/s  {ratio:6.2f} x normal_")
    return ratios


def main() -> None:
    ratios = run(noises())
    size = max(elements for _, elements in ratios)
    noise_ratios = {k[0]: r for k, r in ratios.items() if k[1] == size and k[0] != "torch normal_"}
    slowest = min(noise_ratios, key=lambda name: noise_ratios[name])
    verdict = "reached" if noise_ratios[slowest] >= GOAL else "MISSED"
    print(f"slowest: {slowest}, {noise_ratios[slowest]:.2f} x normal_: goal of {GOAL} {verdict}")


if __name__ == "__main__":
    main()
