"""Every Python block of README and docs runs, transcripts are real, and commands parse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import (
    PAGES,
    ROOT,
    Block,
    Command,
    blocks,
    commands,
    compare,
    help_of,
    run_page,
)
from unicr.cli import app

ALL = [block for page in PAGES for block in blocks(page)]
COMMANDS = [command for block in ALL for command in commands(block)]
RUNNABLE = [p for p in PAGES if any(b.language in ("python", "console") for b in blocks(p))]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_pages_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: f"{c.place} {c.line[:40]}")
def test_commands_parse(command: Command) -> None:
    if command.abbreviated:
        known = help_of(command.words[:1])
        assert all(word in known for word in command.words if word.startswith("-"))
        return
    called, bound, _ = app.parse_args(command.words, exit_on_error=False, print_error=False)
    assert callable(called)
    assert bound is not None


def test_there_is_something_to_test() -> None:
    assert len(COMMANDS) >= 40
    assert len([b for b in ALL if b.language == "python"]) >= 12
    assert {page.stem for page in RUNNABLE} >= {"README", "quickstart", "howto-audit"}


def test_every_block_says_what_it_is() -> None:
    known = {"python", "sh", "console", "text", "toml", "json", "bibtex"}
    for block in ALL:
        assert block.language in known or block.language.startswith("{"), block.place


def test_scripts_that_pages_name_exist() -> None:
    named = {
        found
        for page in PAGES
        for found in re.findall(r"examples/\w+\.py", page.read_text(encoding="utf-8"))
    }
    assert named == {
        f"examples/{name}.py" for name in ("audit", "certify_onnx", "new_noise", "serve")
    }
    assert all((ROOT / path).is_file() for path in named)


def test_a_page_that_shows_something_else_is_caught() -> None:
    compare("radius 2.7662 (l1)\n…", "radius  2.7660 (l1)\nmore\n", "here")
    compare("radius 2.7662 (l1)\n…\nlast", "radius  2.7660 (l1)\nmore\nand more\nlast\n", "here")
    with pytest.raises(AssertionError, match="here shows"):
        compare("radius 2.7662 (l1)\n…\nother", "radius  2.7660 (l1)\nmore\nlast\n", "here")
    for shown in ("radius 3.1 (l1)\n…", "radius 2.766 (l2)\n…", "radius 2.766 (l1)\n"):
        with pytest.raises(AssertionError, match="here shows"):
            compare(shown, "radius 2.7660 (l1)\nmore\n", "here")


def test_commands_of_both_kinds_of_block_are_found() -> None:
    sh = Block(Path("x.md"), 1, "sh", "unicr radius --noise 'a b' \\\n  --pa 0.9  # why\nls\n")
    console = Block(Path("x.md"), 1, "console", "$ unicr noise list\nout\nput\n$ unicr demo\n")
    assert [c.words for c in commands(sh)] == [["radius", "--noise", "a b", "--pa", "0.9"]]
    assert [(c.words, c.output) for c in commands(console)] == [
        (["noise", "list"], "out\nput\n"),
        (["demo"], ""),
    ]
