"""What every report needs: tables in three forms."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from unicr.tables import to_csv

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
    across, down = _align(lines), _align([*zip(*lines, strict=True)])
    width = {text: max(map(len, text.splitlines())) for text in (across, down)}
    return down if width[down] <= room < width[across] else across


def _align(lines: Sequence[Sequence[str]]) -> str:
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
