"""A command that computes for long says so on a terminal, and ends at a limit that can be moved."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from unicr.errors import RadiusError
from unicr.progress import OutOfTime, tell

EVERY = 5.0


@contextmanager
def watched(what: str, limit: float) -> Iterator[None]:
    """An end after `limit` seconds of this process's own computing, and a line meanwhile.

    It is an error, unless what runs has something to hand out by then (`OutOfTime`).
    """
    if not limit > 0:
        raise RadiusError(f"--limit {limit:g} must be a number of seconds above 0")
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):  # Windows has no such alarm
        yield
        return
    begun, spent = time.monotonic(), time.process_time()

    def look(number: int, frame: FrameType | None) -> None:
        if time.process_time() - spent > limit:
            raise OutOfTime
        tell(what, time.monotonic() - begun, None, f"{what} (--limit {limit:g})")

    before = signal.signal(signal.SIGALRM, look)
    # after the first one EVERY seconds apart: who catches it has that long to end
    signal.setitimer(signal.ITIMER_REAL, min(EVERY, limit), EVERY)
    try:
        yield
    except OutOfTime:
        why = f"{what} took more than {limit:g} s: give it more with --limit"
        raise RadiusError(why) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        elapsed = time.monotonic() - begun
        tell(what, elapsed, elapsed)
