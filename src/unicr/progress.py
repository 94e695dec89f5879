"""How far a long computation has come: engines tell it, an interface listens, or nobody does.

`Meter` draws a bar on a terminal after two seconds; elsewhere it is a line now and then.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE, EVERY = 2.0, 20.0
Listener = Callable[[str, int, int], None]
_listeners: list[Listener] = []


def tell(text: str, done: int, of: int) -> None:
    """Say that `done` of `of` parts of what `text` names are finished."""
    for listener in _listeners:
        listener(text, done, of)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have `listener(text, done, of)` called while the block runs."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


class Meter:
    """`update(text, share)` says what is done and, in a pipe, how long the rest may take."""

    def __init__(self, *, enabled: bool = True) -> None:
        self._enabled = enabled
        self._started = self._told = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def update(self, text: str, share: float) -> None:
        """Say what is being done and which share of it is finished."""
        now = time.monotonic()
        if not self._enabled or now - self._started < PATIENCE:
            return
        if not sys.stderr.isatty():
            if now - self._told >= EVERY and share > 0:
                self._told = now
                left = (now - self._started) * (1 / share - 1)
                words = f"{text} ({share:.0%}, about {left:.0f} s left)"
                print(words, file=sys.stderr, flush=True)
            return
        if self._bar is None or self._task is None:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(text, total=1.0)
        self._bar.update(self._task, description=text, completed=share)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
