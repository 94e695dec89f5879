"""How many noisy copies go through a model at once, on which threads: from input size and memory.

The size of a pass is part of the one function that is certified (a label may depend on it in its
last bit), so it is chosen before the first vote, for good, and a run writes it down.
"""

from __future__ import annotations

import copy
import functools
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from unicr.classifier import Classifier, Selective
from unicr.errors import BatchError
from unicr.extras import torch

MOST = 1000
VALUES = 10_000_000  # in one batch: larger ones are no faster
HELD = 64  # what a network holds of an input on its way, in units of the input
SHARE = 2  # the part of the free memory that a batch may take is 1/SHARE
SURE = 16  # nothing is tried where a batch takes less than 1/SURE of the free memory
PASSES = 4  # forward passes that a batch is cut into on a CPU, so that threads share small asks


def pass_size(batch: int, device: torch.device) -> int:
    """The inputs of one forward pass."""
    return batch if device.type != "cpu" else -(-batch // PASSES)


def guess_batch_size(shape: tuple[int, ...], device: torch.device, sharing: int = 1) -> int:
    """1000, or a half, a quarter, … of it: the most that suits inputs of this shape and the memory.

    `sharing` processes work at once; on a CPU all threads do.
    """
    batch = MOST
    while batch > 1 and (
        batch * math.prod(shape) > VALUES or _need(batch, shape, device, sharing) * SHARE > 1
    ):
        batch //= 2
    return batch


def select_batch_size(
    shape: tuple[int, ...],
    device: torch.device,
    rehearse: Callable[[int], object],
    sharing: int = 1,
) -> int:
    """`guess_batch_size`, halved until `rehearse`, one round of passes, has memory enough."""
    batch = guess_batch_size(shape, device, sharing)
    while batch > 1 and _need(batch, shape, device, sharing) * SURE > 1:
        try:
            rehearse(batch)
        except Exception as error:  # a stranger's model; what else is wrong is told with the votes
            if not out_of_memory(error):
                break
            if device.type == "cuda":
                torch.cuda.empty_cache()
            batch //= 2
        else:
            break
    return batch


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
        first, other = classifier.predict(noisy), classifier.predict(moved)
        changed = int((first[half:] != other[: len(noisy) - half]).sum())
        same = changed and torch.equal(classifier.predict(noisy), first)
        same = same and torch.equal(classifier.predict(moved), other)
    except Exception:  # a stranger's model; what is wrong is told with the votes
        return
    if same:
        alone = PASSES if noisy.device.type == "cpu" else 1
        raise BatchError(
            f"{classifier.name} gives {changed} of {len(noisy) - half} noisy inputs another label "
            "when other inputs are beside them (statistics of the batch?), so it is no function of "
            f"its input: --batch {alone} passes every input by itself"
        )


def out_of_memory(error: BaseException) -> bool:
    """Whether it was memory that was short, here or in what the error comes from."""
    kinds = (MemoryError, torch.OutOfMemoryError)
    here = isinstance(error, kinds) or "allocate memory" in str(error)
    return here or (error.__cause__ is not None and out_of_memory(error.__cause__))


def _need(batch: int, shape: tuple[int, ...], device: torch.device, sharing: int) -> float:
    """The share of the free memory that the passes under way take, as far as can be told."""
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    together = pass_size(batch, device) * max(threads, sharing)
    return together * math.prod(shape) * 4 * HELD / _free(device)


def _free(device: torch.device) -> float:
    """Bytes of memory that are free; infinite where nothing tells."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    found = [math.inf]
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [1024.0 * int(one.split()[1]) for one in lines if one.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):  # a container's own limit
        home = Path("/sys/fs/cgroup")
        limit, used = (int((home / f"memory.{name}").read_text()) for name in ("max", "current"))
        found.append(float(max(limit - used, 1)))
    with suppress(AttributeError, OSError, ValueError):
        found.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    return min(found)


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


def cut(classifier: Classifier, full: torch.Tensor) -> Classifier:
    """Gives the first rows of a full batch their labels: no part of it is passed by itself."""
    twin: Any = copy.copy(classifier)
    if isinstance(classifier, Selective):
        twin.members = tuple(cut(one, full) for one in classifier.members)
    twin.predict = lambda batch: classifier.predict(full)[: len(batch)]
    return cast(Classifier, twin)
