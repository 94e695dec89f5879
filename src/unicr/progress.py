"""How far long work has come: engines tell it, and one kind of bar shows it.

An engine calls `tell("building a curve", 3, 8)` and knows nothing of who listens; without a
listener nothing happens. The command line listens for the length of a command (`show`). A command
that knows more about its work than an engine does draws a `Bar` of its own. On a terminal a bar
moves; elsewhere it is a line now and then, with the estimated end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn

PATIENCE = 2.0  # seconds that somebody waits without a word
EVERY = 20.0  # seconds between lines where nobody sees a bar
Listener = Callable[[str, float, float | None, str], None]
_listeners: list[Listener] = []


class OutOfTime(KeyboardInterrupt):
    """The time that somebody gave is over: no handler of errors on the way keeps it.

    Who holds something that is worth handing out without the rest catches it.
    """


def tell(task: str, done: float, of: float | None, text: str = "") -> None:
    """Say that `done` of `of` parts (None: nobody knows how many) of a task are finished.

    `text` describes the task now, if its name is not enough.
    """
    for listener in _listeners:
        listener(task, done, of, text or task)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Have `listener(task, done, of, text)` called while the block runs."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def silence() -> Iterator[None]:
    """Nobody hears what is told while the block runs: its caller tells of the whole."""
    before = _listeners[:]
    _listeners.clear()
    try:
        yield
    finally:
        _listeners[:] = before


@contextmanager
def show() -> Iterator[None]:
    """Show what engines tell while the block runs: a bar for each task that takes PATIENCE."""
    begun: dict[str, tuple[float, float]] = {}
    bars: dict[str, Bar] = {}

    def show_task(task: str, done: float, of: float | None, text: str) -> None:
        first, since = begun.setdefault(task, (done, time.monotonic()))
        finished = of is not None and done >= of
        if task not in bars and time.monotonic() - since >= PATIENCE and not finished:
            bars[task] = Bar(task, of, begun=(first, since)).__enter__()
        if task in bars:
            bars[task].update(text, done=done)
        if finished:
            del begun[task]
            if task in bars:
                bars.pop(task).__exit__()

    try:
        with listen(show_task):
            yield
    finally:
        for bar in bars.values():
            bar.__exit__()


@contextmanager
def announce(text: str, after: float = PATIENCE) -> Iterator[None]:
    """Say on stderr what is being done, if the block takes longer than `after` seconds."""
    timer = Timer(after, lambda: print(text, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Bar:
    """A bar with a text on a terminal; elsewhere a line now and then, with the estimated end.

    Without a total it counts seconds. `begun` says how much was done before, and when this process
    began. A terminal has one moving bar at a time: a bar inside another one says lines.
    """

    _moving: ClassVar[Bar | None] = None

    def __init__(
        self,
        what: str,
        total: float | None = None,
        console: Console | None = None,
        begun: tuple[float, float] | None = None,
    ) -> None:
        from rich import progress
        from rich.console import Console

        self._console = console = console or Console(stderr=True)
        self._total, self._done = total, 0.0
        self._first = begun
        self._start = self._told = time.monotonic()
        columns: list[ProgressColumn] = [progress.TextColumn("{task.description}")]
        if total is None:
            columns.append(progress.TimeElapsedColumn())
        else:
            columns += [progress.BarColumn(), progress.MofNCompleteColumn()]
            columns.append(progress.TimeRemainingColumn())
        self._bar = progress.Progress(*columns, console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task(what, total=total)

    def __enter__(self) -> Self:
        if self._console.is_terminal and Bar._moving is None:
            Bar._moving = self
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if Bar._moving is self:
            Bar._moving = None
            self._bar.stop()

    def expect(self, total: float) -> None:
        """How many steps there are, where that was not known at once."""
        self._total = total
        self._bar.update(self._task, total=total)

    def say(self, text: str) -> None:
        """A line that stays."""
        # above the bar that moves, whose console alone knows where it stands
        console = self._console if Bar._moving is None else Bar._moving._console
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    def update(self, text: str, done: float | None = None) -> None:
        """Another step done (or `done` of them), and what to say."""
        self._done = self._done + 1 if done is None else done
        self._bar.update(self._task, description=text, completed=self._done)
        moment = time.monotonic()
        self._first = self._first or (self._done, moment)
        if Bar._moving is not self and moment - self._told >= EVERY:
            self._told = moment
            self.say(text + self._describe_rest(moment))

    def _describe_rest(self, moment: float) -> str:
        """How much is done, and how long the rest takes at the speed seen here."""
        if self._total is None or self._first is None:
            return f" ({moment - self._start:.0f} s)"
        before, begun = self._first
        new = self._done - before
        rest = (moment - begun) * (self._total - self._done) / new if new > 0 else None
        words = "" if rest is None else f", about {_duration(rest)} left"
        return f" ({self._done:.1f} of {self._total:g}{words})"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
