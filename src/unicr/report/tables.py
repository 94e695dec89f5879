"""What every report needs: tables in three forms, and a bar for whoever waits at a terminal."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from rich import progress
from rich.console import Console

Form = Literal["table", "markdown", "csv", "json"]


def lay(columns: Sequence[str], rows: Iterable[Sequence[str]], form: Form = "table") -> str:
    """A table for people: Markdown, or aligned columns, of which nothing is cut off."""
    lines = [list(columns), *map(list, rows)]
    if form == "markdown":
        head, *body = (f"| {' | '.join(cells)} |" for cells in lines)
        return "\n".join([head, "|" + "---|" * len(columns), *body])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [
        all(cell[:1] in _NUMERIC for cell in column[1:]) for column in zip(*lines, strict=True)
    ]
    sides = list(zip(widths, right, strict=True))
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
    file = io.StringIO()
    keys = list(dict.fromkeys(key for record in records for key in record))
    writer = csv.DictWriter(file, keys, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return file.getvalue().rstrip("\n")


def as_json(value: Any) -> str:
    """For a program to read."""
    return json.dumps(value, indent=1)


class Bar:
    """A bar with a text on a terminal, silent elsewhere; without a total it counts seconds."""

    def __init__(self, what: str, total: int | None = None, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
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

    def update(self, text: str, now: int | None = None) -> None:
        """Another step done (or `now` of them), and what to say."""
        self._bar.update(
            self._task, description=text, completed=now, advance=1 if now is None else None
        )
