"""Docstrings are plain text with `code` in backticks; here they become what Sphinx can read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from sphinx.application import Sphinx

FIELD = re.compile(r"(\w+(?:, \w+)*): (.*)")


def convert(lines: list[str]) -> Iterator[str]:
    """The lines as reStructuredText: nothing but `code`, examples and indented formulas is markup.

    A paragraph of `name: text` lines becomes a list of fields.
    """
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        paragraph = list(group)
        if blank:
            continue
        yield ""
        starts = [line for line in paragraph if not line.startswith(" ")]
        fields = [FIELD.fullmatch(line) for line in starts]
        if paragraph[0].startswith(">>>"):
            yield from paragraph
        elif not starts:
            yield from ("::", "", *paragraph)
        elif len(starts) > 1 and all(fields):
            yield from _fields(paragraph)
        else:
            yield from (escape(line.strip()) for line in paragraph)
    yield ""


def _fields(paragraph: list[str]) -> Iterator[str]:
    for line in paragraph:
        found = FIELD.fullmatch(line)
        yield f":{found[1]}: {escape(found[2])}" if found else "    " + escape(line.strip())


def escape(line: str) -> str:
    """One line of text: `code` as literal, every other special character as itself."""
    parts = re.split(r"`([^`]+)`", line)
    plain = [re.sub(r"([\\*|_`<>:])", r"\\\1", part) for part in parts[::2]]
    plain[0] = re.sub(r"^([-+#]|\w+[.)]|\([^)]*\))(?=\s|$)", r"\\\1", plain[0])
    coded = [f"\\ ``{part}``\\ " for part in parts[1::2]]
    merged = plain + coded
    merged[::2], merged[1::2] = plain, coded
    return "".join(merged)


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Replace a docstring by its converted form."""
    lines[:] = convert(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    """Convert every docstring that autodoc reads."""
    app.connect("autodoc-process-docstring", process)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
