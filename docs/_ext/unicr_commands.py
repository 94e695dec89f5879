"""The directive `unicr-commands`: the help of every registered command, taken at build time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, ClassVar

from cyclopts import App
from docutils import nodes
from rich.console import Console
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from unicr.cli import app as program

WIDTH = 84


def commands(app: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command that does something, as the words that call it, in alphabetical order."""
    flags = {*app.help_flags, *app.version_flags}
    names = sorted(name for name in app if name not in flags)
    if not names:
        yield path
    for name in names:
        yield from commands(app[name], (*path, name))


def help_text(words: tuple[str, ...]) -> str:
    """What `unicr WORDS --help` prints, without colours."""
    page = io.StringIO()
    console = Console(file=page, width=WIDTH, color_system=None, force_terminal=False)
    program.help_print(list(words), console=console)
    return "\n".join(line.rstrip() for line in page.getvalue().strip().splitlines())


class Commands(SphinxDirective):
    """One section for each command."""

    has_content: ClassVar[bool] = False

    def run(self) -> list[nodes.Node]:
        """The sections, each with the help text as it is printed."""
        return [self._section(words) for words in commands(program)]

    def _section(self, words: tuple[str, ...]) -> nodes.section:
        title = " ".join(("unicr", *words))
        section = nodes.section(ids=[title.replace(" ", "-")], names=[title])
        text = help_text(words)
        section += nodes.title(title, "", nodes.literal(title, title))
        section += nodes.literal_block(text, text, language="text")
        self.state.document.note_explicit_target(section)
        return section


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("unicr-commands", Commands)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
