"""Work on an array, cut into pieces that threads do side by side."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from unicr.errors import NoiseError

PIECE = 1 << 14  # draws; fewer are not worth a thread


def in_pieces(work: Callable[[int, int], None], size: int, threads: int | None) -> None:
    """Call work(low, high) for pieces of 0 … size, side by side in as many threads (None: all)."""
    if threads is None:
        threads = _default_threads()
    elif threads < 1:
        raise NoiseError(f"threads must be at least 1 (or None for all), got {threads!r}")
    pieces = max(1, min(threads, size // PIECE))
    cuts = [size * i // pieces for i in range(pieces + 1)]
    pending = [_pool().submit(work, cuts[i], cuts[i + 1]) for i in range(1, pieces)]
    try:
        work(cuts[0], cuts[1])
    finally:
        for future in pending:
            future.result()


def _default_threads() -> int:
    torch = sys.modules.get("torch")
    return int(torch.get_num_threads()) if torch is not None else os.cpu_count() or 1


_pool_lock = threading.Lock()
_pools: list[ThreadPoolExecutor] = []


def _pool() -> ThreadPoolExecutor:
    with _pool_lock:
        if not _pools:
            _pools.append(ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="unicr-fill"))
        return _pools[0]


def _after_fork() -> None:
    """Threads do not survive a fork: a child (a data loader's worker) starts its own pool."""
    global _pool_lock
    _pool_lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
