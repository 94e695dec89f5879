"""Noisy copies in, votes out: passes of one size, shared by all threads, counted where they are.

Several questions are answered at once, so that small ones keep all threads busy too. On a GPU the
noise, the pass and the counts stay there: what a question moves between host and device does not
depend on how many passes it has.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from unicr.classifier import Classifier
from unicr.classifier.internal import Tally
from unicr.extras import torch
from unicr.smoothing._batch import Passes, one_thread_each, pool
from unicr.smoothing._question import Counts, Measure, add

# fills a batch with the noisy copies of an input from a number on
Draw: TypeAlias = "Callable[[torch.Tensor, int], object]"


@dataclass(frozen=True)
class Ask:
    """Votes wanted of the noisy copies number start … start + n − 1 of an input of this shape.

    `in_threads` says that several threads may draw at once.
    """

    draw: Draw
    shape: tuple[int, ...]
    n: int
    start: int
    measure: Measure
    in_threads: bool = True


class Runner:
    """A classifier that one thread uses, with the memory for its noisy copies."""

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier
        self._buffers: dict[bool, torch.Tensor] = {}

    def buffer(self, size: int, shape: tuple[int, ...], last: bool = False) -> torch.Tensor:
        """Memory for `size` inputs, kept from call to call; `last` puts channels last."""
        whole, kept = (size, *shape), self._buffers.get(last)
        if kept is None or kept.shape != whole:
            order = torch.channels_last if last else torch.contiguous_format
            device = self.classifier.device
            kept = torch.empty(whole, dtype=torch.float32, device=device, memory_format=order)
            self._buffers[last] = kept
        return kept

    def fill(self, draw: Draw, first: int, shape: tuple[int, ...], passes: Passes) -> torch.Tensor:
        """A full pass of noisy copies, in its layout."""
        full = self.buffer(passes.size, shape)
        draw(full, first)
        if passes.channels_last:
            return self.buffer(passes.size, shape, last=True).copy_(full)
        return full

    def time_pass(self, x: torch.Tensor, passes: Passes, *, one_thread: bool) -> float:
        """Seconds of one input in a pass of copies of x, of which no label counts.

        A thread's own time leaves out what other programs take. Where the model may have other
        threads than this `one_thread`, or is on a device, only the clock on the wall tells.
        """
        clock = time.thread_time if one_thread else time.perf_counter
        begin = clock()
        batch = self.fill(lambda out, _: out.copy_(x), 0, tuple(x.shape), passes)
        self.classifier.predict(batch)
        if x.device.type == "cuda":
            torch.cuda.synchronize(x.device)
        return (clock() - begin) / passes.size


def count_votes(
    asks: Sequence[Ask], runners: Sequence[Runner], passes: Passes, classes: int | None
) -> list[Counts | Exception]:
    """The votes that each question asks for, or why there are none.

    Whoever is free takes the next pass, whatever question it belongs to.
    """
    answers: list[Counts | Exception] = [np.zeros(0, dtype=np.int64) for _ in asks]
    for ask in asks:
        prepare = getattr(ask.draw, "prepare", None)
        if prepare is not None and ask.n:
            prepare(runners[0].classifier.device, ask.start, ask.n)
    failed: set[int] = set()
    # (question, number of the first copy, how many are counted); the last pass is filled up
    todo = iter(
        [
            (i, first, min(passes.size, ask.start + ask.n - first))
            for i, ask in enumerate(asks)
            for first in range(ask.start, ask.start + ask.n, passes.size)
        ]
    )
    work = functools.partial(
        _count_passes, todo=todo, asks=asks, passes=passes, classes=classes, failed=failed
    )
    if len(runners) == 1 or not all(ask.in_threads for ask in asks):
        counted = work(runners[0])
    else:  # each in a thread of its own
        with one_thread_each():
            counted = [one for several in pool().map(work, runners) for one in several]
    for i, counts in counted:
        before = answers[i]
        if not isinstance(before, Exception):
            answers[i] = counts if isinstance(counts, Exception) else add(before, counts)
    return answers


def _count_passes(
    runner: Runner,
    todo: Iterator[tuple[int, int, int]],
    asks: Sequence[Ask],
    passes: Passes,
    classes: int | None,
    failed: set[int],
) -> list[tuple[int, Counts | Exception]]:
    """(question, its votes in these passes) of one thread; votes are read once for a question.

    `failed` holds the questions that no thread need go on with.
    """
    model, tallies = runner.classifier, dict[int, Tally]()
    counted: list[tuple[int, Counts | Exception]] = []
    for i, first, wanted in todo:
        if i in failed:
            continue
        ask = asks[i]
        try:
            batch = runner.fill(ask.draw, first, ask.shape, passes)
            labels = ask.measure.labels(model, batch)[:wanted]
            tally = tallies.setdefault(i, Tally(model.name))
            tally.add(labels, ask.measure.size(model, classes))
        except Exception as error:
            failed.add(i)
            counted.append((i, error))
    for i, tally in tallies.items():
        try:
            counted.append((i, tally.read().numpy()))
        except Exception as error:
            counted.append((i, error))
    return counted
