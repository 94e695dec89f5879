"""What README and docs show as code: blocks in order, commands in them, and how they are run.

`python` blocks of a page run one after the other in one namespace. In `console` blocks the lines
after `$ ` are run, and what follows must be what they print. In `sh` blocks commands are only read.
Everything runs in an empty folder, so that a later block finds what an earlier one wrote.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from unicr.cli import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
NEAR = 0.05  # numbers that rest on votes: on another processor single votes may fall differently
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        """Where a reader finds it."""
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command as a page shows it, with the output that follows it (console blocks only)."""

    place: str
    line: str
    output: str

    @property
    def words(self) -> list[str]:
        """The words that a shell would pass on, the first one left out."""
        return shlex.split(self.line, comments=True)[1:]

    @property
    def abbreviated(self) -> bool:
        """Whether `…` stands for what the page has said before."""
        return "…" in self.words


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\S+)[^\n]*\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [Block(page, text.count("\n", 0, m.start()) + 2, m[1], m[2]) for m in found]


def commands(block: Block) -> Iterator[Command]:
    """The `unicr` commands of a sh or console block."""
    text = block.text.replace("\\\n", " ")
    if block.language == "sh":
        for line in text.splitlines():
            if line.startswith("unicr"):
                yield Command(block.place, line, "")
    elif block.language == "console":
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            yield Command(block.place, line, output)


def run_page(page: Path) -> None:
    """Run the Python and console blocks of a page, here and in order."""
    namespace: dict[str, Any] = {"__name__": page.stem}
    for block in blocks(page):
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, page.name, "exec"), namespace)
        for command in commands(block) if block.language == "console" else ():
            assert command.line.startswith("unicr "), f"{command.place}: {command.line}"
            compare(command.output, printed(command.words), command.place)


def printed(words: list[str]) -> str:
    """What a command prints to stdout; it must end well."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        result = app(words, exit_on_error=False, print_error=False)
    assert result in (None, 0), f"unicr {shlex.join(words)} ended with {result}"
    return out.getvalue()


def help_of(words: list[str]) -> str:
    """The help of the command that the words call."""
    page = io.StringIO()
    app.help_print(words, console=Console(file=page, width=200, color_system=None))
    return page.getvalue()


def compare(shown: str, real: str, place: str) -> None:
    """Equal texts, up to spaces and numbers that are near; `…` alone stands for any lines."""
    actual = [" ".join(line.split()) for line in real.strip().splitlines()]
    anywhere = False
    for line in shown.strip().splitlines():
        want = " ".join(line.split())
        if want == "…":
            anywhere = True
            continue
        while anywhere and actual and not looks_like(want, actual[0]):
            actual.pop(0)
        got = actual.pop(0) if actual else "(no line)"
        if not looks_like(want, got):
            raise AssertionError(f"{place} shows\n  {want}\nbut it is\n  {got}")
        anywhere = False
    if actual and not anywhere:
        raise AssertionError(f"{place} shows\n  (no line)\nbut it is\n  {actual[0]}")


def looks_like(want: str, got: str) -> bool:
    """Whether two lines are equal but for numbers, which are near."""
    same = NUMBER.sub("#", want) == NUMBER.sub("#", got)
    numbers = zip(NUMBER.findall(want), NUMBER.findall(got), strict=False)
    return same and all(math.isclose(float(a), float(b), rel_tol=NEAR) for a, b in numbers)
