"""Certification beside the best bare forward passes, in one run: `python -m bench passes`.

The bare passes are float32, one thread on each core, in the fastest of several sizes and layouts,
which are looked for here, without unicr's own choice; memory is kept between passes for both. The
rounds of all contestants alternate and the best round of each counts. On a busy machine look at the
ratio of processor time, which leaves out what other programs take.
"""

from __future__ import annotations

import copy
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat

import numpy as np
import torch

from unicr import SmoothedClassifier, noise
from unicr.classifier import MLP, ResNet, load_classifier
from unicr.norms import l2
from unicr.smoothing import Curves, Plan
from unicr.smoothing._batch import keep_memory

SIZES = {784: (100, 200, 500, 1000), 3072: (20, 50, 100, 200), 150_528: (1, 2, 4, 8)}
ROUNDS = 5
LAW = noise.gaussian(sigma=0.25)
Times = tuple[float, float]  # on the wall, of all processors


def timed(job: Callable[[], object]) -> Times:
    wall, processors = time.perf_counter(), time.process_time()
    job()
    return time.perf_counter() - wall, time.process_time() - processors


def alternate(jobs: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, Times]:
    """The best times of each job, after one round that does not count."""
    every = [{name: timed(job) for name, job in jobs.items()} for _ in range(rounds + 1)][1:]
    return {
        name: (min(one[name][0] for one in every), min(one[name][1] for one in every))
        for name in jobs
    }


class Bare:
    """Forward passes on ready-made inputs, one thread on each core."""

    def __init__(self, module: torch.nn.Module, shape: tuple[int, ...]) -> None:
        self.shape, self.threads = shape, torch.get_num_threads()
        self._modules = [copy.deepcopy(module).eval() for _ in range(self.threads)]
        self._pool = ThreadPoolExecutor(self.threads, "bare", torch.set_num_threads, (1,))

    def job(self, n: int, size: int, last: bool) -> Callable[[], object]:
        order = torch.channels_last if last else torch.contiguous_format
        batch = torch.rand(size, *self.shape).contiguous(memory_format=order)

        def work(module: torch.nn.Module, todo: Iterator[int]) -> None:
            with torch.inference_mode():
                for _ in todo:  # whoever is free takes the next
                    module(batch)

        def run() -> None:
            todo = iter(range(-(-n // size)))
            list(self._pool.map(work, self._modules, repeat(todo)))

        return run

    def find_best(self, n: int) -> tuple[int, bool]:
        """The size and the layout with least processor time for n inputs."""
        layouts = (False, True) if len(self.shape) == 3 and self.shape[0] == 3 else (False,)
        jobs = {
            f"{size} {last:d}": self.job(max(n, 2 * size), size, last)
            for size in SIZES[int(np.prod(self.shape))]
            for last in layouts
        }
        times = alternate(jobs, 2)
        size, last = min(times, key=lambda name: times[name][1]).split()
        return int(size), last == "1"


def cohen_loop(
    module: torch.nn.Module, x: torch.Tensor, n: int, batch: int
) -> Callable[[], object]:
    """Votes as the usual script counts them: one batch after the other on all threads."""

    def run() -> np.ndarray:
        counts = np.zeros(1000, dtype=int)
        with torch.no_grad():
            for first in range(0, n, batch):
                copies = x.repeat((min(batch, n - first), *[1] * x.ndim))
                labels = module(copies + torch.randn_like(copies) * LAW.sigma).argmax(1)
                for label in labels.numpy():
                    counts[label] += 1
        return counts

    return run


def art_loop(module: torch.nn.Module, x: torch.Tensor, n: int) -> Callable[[], object] | None:
    """adversarial-robustness-toolbox at its default batch, where it is installed."""
    try:
        import statsmodels.stats.proportion  # noqa: F401  (ART imports it when it certifies)
        from art.estimators.certification.randomized_smoothing import PyTorchRandomizedSmoothing
    except ImportError:
        return None
    with torch.inference_mode():
        classes = module(x[None]).shape[1]
    art = PyTorchRandomizedSmoothing(
        model=module, loss=torch.nn.CrossEntropyLoss(), input_shape=tuple(x.shape),
        nb_classes=classes, sample_size=100, scale=LAW.sigma, alpha=0.001,
    )  # fmt: skip
    return lambda: art.certify(x[None].numpy(), n=n - 100)


def compare(
    name: str, module: torch.nn.Module, shape: tuple[int, ...], n: int, bar: float, loops: bool
) -> None:
    """Print every ratio of one network."""
    module.eval()
    x = torch.rand(shape)
    smoothed = SmoothedClassifier(module, LAW, seed=0)
    begin = time.perf_counter()
    passes = smoothed.choose_passes(x)
    choice = time.perf_counter() - begin
    curves, plan = Curves((l2,), x.numel(), lattice=smoothed.lattice_of(x)), Plan(n0=100, n=n - 100)
    small = SmoothedClassifier(module, LAW, seed=0)  # its first question is a small one
    bare = Bare(module, shape)
    size, last = bare.find_best(min(n, 400))
    jobs: dict[str, Callable[[], object]] = {
        "unicr": lambda: smoothed.certify_with(x, plan, curves, 0),
        "bare": bare.job(n, size, last),
        "predict": lambda: small.predict(x, n=100),
        "bare 100": bare.job(100, size, last),
    }
    if loops:
        jobs["Cohen's loop, batch 1000"] = cohen_loop(module, x, n, min(1000, n))
        if (art := art_loop(module, x, n)) is not None:
            jobs["ART"] = art
    found = alternate(jobs)
    layout = ", channels last" if last else ""
    ours = f"{passes.size}{', channels last' if passes.channels_last else ''}"
    print(f"{name}: best bare passes of {size}{layout}; unicr chose {ours} in {choice:.1f} s")
    for ours, theirs, limit in (("unicr", "bare", bar), ("predict", "bare 100", 1.5)):
        wall, processors = (found[ours][i] / found[theirs][i] for i in range(2))
        what = "certify" if ours == "unicr" else "predict(n=100)"
        print(
            f"  {what:<16} {wall:5.2f} x bare on the wall, {processors:5.2f} x in processor time "
            f"(bar {limit:g})"
        )
    for other in jobs.keys() - {"unicr", "bare", "predict", "bare 100"}:
        wall, processors = (found[other][i] / found["unicr"][i] for i in range(2))
        print(f"  {other} takes {wall:.2f} x our time, {processors:.2f} x our processor time")


def many_inputs(inputs: int = 1000, n: int = 100) -> None:
    """How many cores small questions keep busy."""
    smoothed = SmoothedClassifier(MLP(), LAW, seed=0)
    xs = torch.rand(inputs, 1, 28, 28)
    smoothed.predict(xs[:20], n=n)
    wall, processors = timed(lambda: smoothed.predict(xs, n=n))
    print(
        f"{inputs} inputs at n = {n}: {1e3 * wall / inputs:.2f} ms an input, "
        f"{processors / wall:.2f} cores busy of {torch.get_num_threads()}"
    )


def fewer_bits(module: torch.nn.Module, shape: tuple[int, ...], n: int) -> None:
    """What --precision bf16 gains here."""
    x = torch.rand(shape)
    votes: dict[str, Callable[[], object]] = {}
    for bits in ("fp32", "bf16"):
        precision = None if bits == "fp32" else bits
        smoothed = SmoothedClassifier(load_classifier(module, precision=precision), LAW, seed=0)
        smoothed.choose_passes(x)
        votes[bits] = partial(smoothed.votes, x, n, start=0)
    found = alternate(votes, 3)
    wall, processors = (found["fp32"][i] / found["bf16"][i] for i in range(2))
    print(f"  bf16 is {wall:.2f} x as fast on the wall, {processors:.2f} x in processor time")


def efficientnet() -> torch.nn.Module | None:
    """EfficientNet-lite0, where its package can be imported (UNICR_BENCH_PATH adds a folder)."""
    sys.path += [p for p in os.environ.get("UNICR_BENCH_PATH", "").split(":") if p]
    try:
        package = importlib.import_module("efficientnet_lite_pytorch")
    except ImportError:
        return None
    net: torch.nn.Module = package.EfficientNet.from_name("efficientnet-lite0")
    return net


def main() -> None:
    """Print the ratios of three networks, of small questions, and of fewer bits."""
    torch.manual_seed(0)
    keep_memory()
    print(f"{torch.get_num_threads()} threads")
    compare("MNIST MLP", MLP(), (1, 28, 28), 20_000, 1.1, loops=True)
    many_inputs()
    compare("ResNet-20", ResNet(20), (3, 32, 32), 2000, 1.05, loops=True)
    fewer_bits(ResNet(20), (3, 32, 32), 1000)
    if (large := efficientnet()) is None:
        print("EfficientNet-lite0: not installed, skipped")
    else:
        compare("EfficientNet-lite0", large, (3, 224, 224), 200, 1.05, loops=False)
        fewer_bits(large, (3, 224, 224), 100)
