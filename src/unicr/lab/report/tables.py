"""What every report needs: tables in three forms, and a bar for whoever waits at a terminal."""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import Any, Literal, Self

from rich import progress
from rich.console import Console

from unicr.tables import to_csv

EVERY = 20.0  # seconds between lines where nobody sees a bar
Form = Literal["table", "markdown", "csv", "json"]


def format_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], form: Form = "table"
) -> str:
    """A table for people: Markdown, or aligned columns, of which nothing is cut off.

    One that is too wide for a terminal is turned, if it fits that way.
    """
    lines = [list(columns), *map(list, rows)]
    if form == "markdown":
        head, *body = (f"| {' | '.join(cells)} |" for cells in lines)
        return "\n".join([head, "|" + "---|" * len(columns), *body])
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else math.inf
    across, down = _aligned(lines), _aligned([*zip(*lines, strict=True)])
    width = {text: max(map(len, text.splitlines())) for text in (across, down)}
    return down if width[down] <= room < width[across] else across


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    sides = [
        (max(map(len, column)), all(cell[:1] in _NUMERIC for cell in column[1:]))
        for column in zip(*lines, strict=True)
    ]
    texts = (
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, (width, number) in zip(cells, sides, strict=True)
        )
        for cells in lines
    )
    return "\n".join(text.rstrip() for text in texts)


def title(text: str, form: Form) -> str:
    """The line above a table."""
    return f"**{text}**" if form == "markdown" else text


_NUMERIC = frozenset("0123456789-+.∞i")


def as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """One line for each record, under every key that any of them has; numbers in full."""
    return to_csv(records).rstrip("\n")


def as_json(value: Any) -> str:
    """For a program to read."""
    return json.dumps(value, indent=1)


class Bar:
    """A bar with a text on a terminal; elsewhere a line now and then, with the estimated end.

    Without a total it counts seconds.
    """

    def __init__(self, what: str, total: int | None = None, console: Console | None = None) -> None:
        self._console = console = console or Console(stderr=True)
        self._total, self._done = total, 0.0
        self._first: tuple[float, float] | None = None  # of what was done before, and when
        self._start = self._told = time.monotonic()
        columns: list[progress.ProgressColumn] = [progress.TextColumn("{task.description}")]
        if total is None:
            columns.append(progress.TimeElapsedColumn())
        else:
            columns += [progress.BarColumn(), progress.MofNCompleteColumn()]
            columns.append(progress.TimeRemainingColumn())
        self._bar = progress.Progress(*columns, console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task(what, total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def expect(self, total: int) -> None:
        """How many steps there are, where that was not known at once."""
        self._total = total
        self._bar.update(self._task, total=total)

    def say(self, text: str) -> None:
        """A line that stays."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def update(self, text: str, now: float | None = None) -> None:
        """Another step done (or `now` of them), and what to say."""
        self._done = self._done + 1 if now is None else now
        self._bar.update(self._task, description=text, completed=self._done)
        moment = time.monotonic()
        self._first = self._first or (self._done, moment)
        if not self._console.is_terminal and moment - self._told >= EVERY:
            self._told = moment
            self.say(text + self._left(moment))

    def _left(self, moment: float) -> str:
        """How much is done, and how long the rest takes at the speed seen here."""
        if self._total is None or self._first is None:
            return f" ({moment - self._start:.0f} s)"
        before, begun = self._first
        new = self._done - before
        left = (moment - begun) * (self._total - self._done) / new if new > 0 else None
        words = "" if left is None else f", about {_duration(left)} left"
        return f" ({self._done:.1f} of {self._total}{words})"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def patience(text: str, after: float = 2.0) -> Iterator[None]:
    """Say on stderr what is being done, if the block takes longer than `after` seconds."""
    timer = Timer(after, lambda: print(text, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
