"""Forward passes: how many noisy copies each has, on which threads, and the votes counted in them.

The size of a pass and its layout belong to the one function that is certified (a label may depend
on them in its last bit), so they are chosen before the first vote, for good, and a run writes them
down. They are chosen by measurement: a pass that is too large spills the cache, one that is too
small is all overhead, and where that turns depends on the network and the machine.

Several questions are answered at once (`count_votes`), so that small ones keep all threads busy
too. On a GPU the noise, the pass and the counts stay there: what a question moves between host and
device does not depend on how many passes it has.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from unicr.classifier import Classifier, Selective
from unicr.classifier.internal import Tally
from unicr.errors import BatchError
from unicr.extras import torch
from unicr.smoothing._question import Counts, Measure, add

SIZES = (1, 2, 4, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)  # they divide usual n
# Values in one pass that are worth a try. On a CPU the layers of one pass should stay in a cache of
# a few megabytes; a GPU needs enough of them to fill all its units.
ON_CPU = (60_000, 800_000)
ON_GPU = (2_000_000, 40_000_000)
MOST_ON_CPU = 1000  # of tiny inputs, whose passes cost the same up to there
HELD = 64  # what a network holds of an input on its way, in units of the input
SHARE = 2  # the part of the free memory that the passes under way may take is 1/SHARE
USUAL = 100_000  # votes of an input
SECONDS = 1.5  # of all measurements together; the pass that is under way is finished
ROUNDS = 8  # passes of each candidate at most, in turn with the others: the quickest counts
WORTHWHILE = 0.97  # a larger pass, or another layout, must take less than this share of the time

# fills a batch with the noisy copies of an input from a number on
Draw: TypeAlias = "Callable[[torch.Tensor, int], object]"

# glibc's mallopt: keep what is freed, up to 1 GB, in place of giving it back after every layer and
# asking for it again. 32 MB is the largest block that it serves from such memory.
MMAP_THRESHOLD, TRIM_THRESHOLD, TOP_PAD = -3, -1, -2
KEPT = {MMAP_THRESHOLD: 32 << 20, TRIM_THRESHOLD: 1 << 30, TOP_PAD: 64 << 20}


@dataclass(frozen=True)
class Passes:
    """`size` noisy copies go through a model at once; `channels_last` is their order in memory."""

    size: int
    channels_last: bool = False


def list_sizes(shape: tuple[int, ...], device: torch.device, sharing: int = 1) -> list[int]:
    """The sizes of passes that are worth a try for inputs of this shape, the smallest first.

    `sharing` processes work at once; on a CPU all threads do. Those that the free memory may not
    hold are left out.
    """
    on_cpu = device.type == "cpu"
    low, high = ON_CPU if on_cpu else ON_GPU
    sizes = [size for size in SIZES if not on_cpu or size <= MOST_ON_CPU]
    tried = [size for size in sizes if low <= size * math.prod(shape) <= high]
    small = sizes[-1] * math.prod(shape) < low
    tried = tried or [sizes[-1] if small else sizes[0]]
    at_once = max(torch.get_num_threads() if on_cpu else 1, sharing)
    room = measure_free_memory(device) / SHARE
    most = room / (at_once * math.prod(shape) * 4 * HELD)  # inputs in a pass, of 4 bytes a value
    fitting = [size for size in tried if size <= most]
    below = [size for size in sizes if size <= most and size < tried[0]]
    return fitting or below[-1:] or sizes[:1]


def choose_passes(
    shape: tuple[int, ...],
    device: torch.device,
    measure: Callable[[Passes], float],
    *,
    layouts: bool,
    sharing: int = 1,
    asks: Sequence[int] = (USUAL,),
) -> Passes:
    """The passes that take least time for questions of `asks` votes, with what fills up the last.

    The smallest of those that hardly differ is taken.

    `measure` runs one pass and gives the seconds of one input. All are measured in turn, so that
    what else the machine does at a moment meets every one of them. A size that there is no memory
    for is left out, and where none is left, smaller ones are tried.
    """
    sizes = list_sizes(shape, device, sharing)
    tried = [
        Passes(size, last) for size in sizes for last in ((False, True) if layouts else (False,))
    ]
    rounds = ROUNDS if len(tried) > 1 else 1  # one pass shows whether there is memory
    end = time.perf_counter() + SECONDS
    times: dict[Passes, float] = {}
    for passes in tried * rounds:
        if times and time.perf_counter() >= end:
            break
        before = times.get(passes)
        if before == math.inf:
            continue
        seconds = _try(measure, passes, device)
        if seconds is None:
            return Passes(sizes[0])
        times[passes] = seconds if before is None else min(before, seconds)
    costs = {
        passes: seconds * sum(math.ceil(n / passes.size) * passes.size for n in asks)
        for passes, seconds in times.items()
        if math.isfinite(seconds)
    }
    if not costs:
        smaller = [size for size in SIZES if size < sizes[0]]
        while smaller and _try(measure, Passes(smaller[-1]), device) == math.inf:
            smaller.pop()
        return Passes(smaller[-1] if smaller else 1)
    best = next(iter(costs))
    for passes, cost in costs.items():
        if cost < WORTHWHILE * costs[best]:
            best = passes
    return best


def _try(measure: Callable[[Passes], float], passes: Passes, device: torch.device) -> float | None:
    """Seconds of an input; infinite without memory; None if the model fails in another way."""
    try:
        return measure(passes)
    except Exception as error:  # a stranger's model; what else is wrong is told with the votes
        if out_of_memory(error):
            if device.type == "cuda":
                torch.cuda.empty_cache()
            return math.inf
        return math.inf if passes.channels_last else None  # a `view` may not take that layout


def check_alone(classifier: Classifier, noisy: torch.Tensor, x: torch.Tensor) -> None:
    """Refuse a classifier whose label of an input depends on what else is in the pass.

    Half of a pass goes through once more, at its other end, beside copies that are shifted away.
    Where labels change and are the same when all is done again, it is no draw of its own. Members
    of a selector vote by themselves, and are looked at one by one.
    """
    if isinstance(classifier, Selective):
        for member in classifier.members:
            check_alone(member, noisy, x)
        return
    half = len(noisy) // 2
    moved = torch.cat([noisy[half:], noisy[:half] + (noisy - x).abs().max()])
    try:
        first = classifier.predict(noisy).clone()  # the next labels may take its memory
        other = classifier.predict(moved).clone()
        changed = int((first[half:] != other[: len(noisy) - half]).sum())
        same = changed and torch.equal(classifier.predict(noisy), first)
        same = same and torch.equal(classifier.predict(moved), other)
    except Exception:  # a stranger's model; what is wrong is told with the votes
        return
    if same:
        raise BatchError(
            f"the label that {classifier.name} gives to {changed} of {len(noisy) - half} noisy "
            "inputs depends on the other inputs in the batch (does it use statistics of the "
            "batch?), so it is no function of its input: pass every input by itself with --batch 1"
        )


def out_of_memory(error: BaseException) -> bool:
    """Whether it was memory that was short, here or in what the error comes from."""
    kinds = (MemoryError, torch.OutOfMemoryError)
    here = isinstance(error, kinds) or "allocate memory" in str(error)
    return here or (error.__cause__ is not None and out_of_memory(error.__cause__))


def measure_free_memory(device: torch.device) -> float:
    """Bytes of memory that are free; infinite if nothing tells."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    bytes_ = [math.inf]
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        bytes_ += [
            1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")
        ]
    with suppress(OSError, ValueError):  # a container's own limit
        home = Path("/sys/fs/cgroup")
        limit, used = (int((home / f"memory.{name}").read_text()) for name in ("max", "current"))
        bytes_.append(float(max(limit - used, 1)))
    with suppress(AttributeError, OSError, ValueError):
        bytes_.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    return min(bytes_)


@functools.cache
def keep_memory() -> None:
    """Let the C library keep what a pass frees for the next pass (glibc; nothing elsewhere)."""
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for setting, value in KEPT.items():
            mallopt(setting, value)


@functools.cache
def pool() -> ThreadPoolExecutor:
    """One thread for each core; torch has one of its own in each."""
    return ThreadPoolExecutor(os.cpu_count() or 1, "unicr-votes", torch.set_num_threads, (1,))


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=pool.cache_clear)  # threads do not live on in a child


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Torch's own threads off while ours work; put back as they were after."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


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


@dataclass(frozen=True, eq=False)
class Runner:
    """A classifier that one thread uses, with the memory for its noisy copies."""

    classifier: Classifier
    _buffers: dict[bool, torch.Tensor] = field(default_factory=dict, init=False, repr=False)

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
