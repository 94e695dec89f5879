"""How fast is noise drawn, beside `torch.Tensor.normal_` in the same run?

Prints draws per second and the ratio to normal_, float32, for every family and for a density that
a user wrote: real-valued, and under a key on the lattice of 8-bit images and on a fine one, in
two threads and, by processor time, in one (normal_ itself never uses more). The rounds of all
contestants alternate, and the best round of each counts. In two threads every ratio should be at
least 1; the aim is 1.5.
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
from unicr.sample import Fill, integer_law

SHAPES = ((1 << 24) // 4096, 4096), (1000, 784)
BAR, AIM = 1.0, 1.5
STEPS, KEY = ("1/255", "2^-22"), derive("bench")


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
    clock = time.perf_counter if threads > 1 else time.thread_time
    ratios: dict[tuple[str, int], float] = {}
    for n, dim in SHAPES:
        out, base = torch.empty(n, dim), torch.rand(dim)
        calls: dict[str, Callable[[], object]] = {"torch normal_": out.normal_}
        for name, one in contestants.items():
            calls[name] = partial(one.sample, n, out=out)
        zero = np.zeros(dim, np.int64)
        for step in STEPS:
            for name, one in contestants.items():
                drawn = LatticeNoise(one, noise.Lattice.parse(step))
                add = partial(drawn.add, zero, out, key=KEY, threads=threads)
                calls[f"{name} on {step}"] = add
        name, one = next(iter(contestants.items()))
        calls[f"{name} + base"] = partial(one.sample, n, out=out, base=base)
        best = dict.fromkeys(calls, float("inf"))
        for round_number in range(rounds + 1):
            for name, call in calls.items():
                begin = clock()
                call()
                if round_number:
                    best[name] = min(best[name], clock() - begin)
        print(f"{n} x {dim} float32, {threads} threads")
        for name, seconds in best.items():
            ratio = best["torch normal_"] / seconds
            ratios[name, n * dim] = ratio
            print(f"  {name:42s} {n * dim / seconds / 1e6:8.0f} M/s  {ratio:6.2f} x normal_")
    return ratios


def torch_form(n: int = 256, dim: int = 4096) -> None:
    """The same draws by torch operations, for devices without Triton, beside the compiled ones.

    Both on tensors of the processor, by the clock, with all threads.
    """
    out, zero = torch.empty(n, dim), np.zeros(dim, np.int64)
    print(f"{n} x {dim} on 2^-22: compiled, and as torch operations")
    for name, one in noises().items():
        step = 2.0**-22
        fill = Fill(integer_law(one, step), zero, key=KEY, step=step, integers=True)
        speeds = []
        for draw in (fill.fill_tensor, fill.fill_by_torch):
            best = float("inf")
            for _ in range(3):
                begin = time.perf_counter()
                draw(out, 0)
                best = min(best, time.perf_counter() - begin)
            speeds.append(n * dim / best / 1e6)
        print(f"  {name:42s} {speeds[0]:8.0f} M/s {speeds[1]:8.1f} M/s")


def main() -> None:
    ratios = run(noises())
    for size in sorted({elements for _, elements in ratios}):
        ours = {k[0]: r for k, r in ratios.items() if k[1] == size and k[0] != "torch normal_"}
        slowest = min(ours, key=lambda name: ours[name])
        few = sum(ratio < AIM for ratio in ours.values())
        verdict = "reached" if ours[slowest] >= BAR else "MISSED"
        print(
            f"{size} draws: slowest is {slowest}, {ours[slowest]:.2f} x normal_: {BAR} {verdict};"
        )
        print(f"  {len(ours) - few} of {len(ours)} reach {AIM}")
    run(noises(), threads=1)
    torch_form()


if __name__ == "__main__":
    main()
