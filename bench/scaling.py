"""Scaling: chunks per second that one driver sustains, and what a ResNet-50 sample costs here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unicr.errors import MissingExtraError
from unicr.extras import require
from unicr.runs import Executor, Input
from unicr.runs._certify import Chunk, Scheduler
from unicr.runs._execute import executor
from unicr.smoothing import Counts, Request, Steps

MILLISECOND = 0.001
BAR = 2000  # chunks/s


@dataclass(frozen=True)
class Sleep:
    """A model that takes a millisecond for a chunk and no processor, whatever its size."""

    def open(self) -> Callable[[Chunk], tuple[Counts, float]]:
        return self.count

    def count(self, chunk: Chunk) -> tuple[Counts, float]:
        time.sleep(MILLISECOND)
        return np.array([chunk.question.n, 0], dtype=np.int64), MILLISECOND


def measure(where: Executor, count: int, per_input: int = 10) -> tuple[float, float]:
    """(chunks per second, seconds of the driver's processor time per chunk).

    Inputs have `per_input` chunks each, cut as `certify` does; the first fifth warms up.
    """
    samples = 1000

    def asks(_: Input) -> Steps[int]:
        votes = yield Request(per_input * samples, 0)
        return int(votes.sum())

    def inputs() -> Iterator[Input]:
        for index in range(count // per_input):
            yield Input(index, torch.zeros(3, 4, 4), 0, "")

    scheduler = Scheduler(where, asks, chunk=samples)
    warm = count // per_input // 5
    begin, used = time.perf_counter(), time.process_time()
    for number, (_, votes, _) in enumerate(scheduler.certify(inputs()), start=1):
        if votes != per_input * samples:
            raise RuntimeError(f"votes were lost: {votes}")
        if number == warm:
            begin, used = time.perf_counter(), time.process_time()
    chunks = (number - warm) * per_input
    return chunks / (time.perf_counter() - begin), (time.process_time() - used) / chunks


def on_ray(ray: Any, actors: int, count: int) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray.init(num_cpus=actors, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        with closing(executor(Sleep(), ray="local", workers=actors)) as where:
            rate, cost = measure(where, count)
    finally:
        ray.shutdown()
    print(
        f"  Ray, {actors:2} actors: {rate:6.0f} chunks/s of at most {actors / MILLISECOND:.0f} "
        f"(bar {BAR}), {1e6 * cost:.0f} us of the driver's processor each"
    )


def resnet50() -> None:
    """One sample of 3x224x224 on one thread: random weights cost what trained ones do."""
    try:
        transformers = require("transformers")
    except MissingExtraError as error:
        print(f"  skipped: {error}")
        return
    config = transformers.ResNetConfig(num_labels=1000)
    model = transformers.ResNetForImageClassification(config).eval()
    parameters = sum(p.numel() for p in model.parameters())
    batch, threads = torch.rand(8, 3, 224, 224), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        times = []
        with torch.inference_mode():
            for _ in range(4):
                start = time.process_time()
                model(batch)
                times.append((time.process_time() - start) / len(batch))
    finally:
        torch.set_num_threads(threads)
    print(
        f"  ResNet-50 ({parameters / 1e6:.1f} M parameters): {1000 * min(times):.0f} ms of one "
        "core per sample"
    )


def main() -> None:
    """Print the measurements behind docs/scaling.md."""
    print("\na fake model of 1 ms per chunk; the driver cuts, sends, collects and adds up")
    try:
        ray = require("ray")
    except MissingExtraError as error:
        print(f"  skipped: {error}")
    else:
        for actors, count in ((1, 4000), (4, 16_000), (8, 30_000)):
            on_ray(ray, actors, count)
    with closing(executor(Sleep(), workers=4)) as where:
        rate, cost = measure(where, 4000)
    print(f"  4 local processes: {rate:6.0f} chunks/s, {1e6 * cost:.0f} us of the driver each")
    print("\nthe cost of a sample, by processor time")
    resnet50()
