"""A command that computes for long says so on a terminal, and ends at a limit that can be moved."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from unicr.errors import RadiusError
from unicr.progress import tell

EVERY = 5.0


class Late(KeyboardInterrupt):
    """No handler of errors on the way keeps it."""


@contextmanager
def watched(what: str, limit: float) -> Iterator[None]:
    """An error after `limit` seconds of this process's own computing, and a line meanwhile."""
    if not limit > 0:
        raise RadiusError(f"--limit {limit:g} must be a number of seconds above 0")
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):  # Windows has no such alarm
        yield
        return
    begun, spent = time.monotonic(), time.process_time()

    def look(number: int, frame: FrameType | None) -> None:
        if time.process_time() - spent > limit:
            raise Late
        tell(what, time.monotonic() - begun, None, f"{what} (--limit {limit:g})")

    before = signal.signal(signal.SIGALRM, look)
    every = min(EVERY, limit)
    signal.setitimer(signal.ITIMER_REAL, every, every)
    try:
        yield
    except Late:
        why = f"{what} took more than {limit:g} s: give it more with --limit"
        raise RadiusError(why) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        elapsed = time.monotonic() - begun
        tell(what, elapsed, elapsed)
