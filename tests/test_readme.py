"""The README's Python runs as printed, and its commands are ones that the program knows."""

import re
import shlex
from pathlib import Path

import pytest

from unicr.cli import app

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run(code: str) -> None:
    exec(compile(code, "README.md", "exec"), {})


def commands() -> list[str]:
    lines = "".join(blocks("sh")).replace("\\\n", " ").splitlines()
    return [line.split("#")[0].strip() for line in lines if line.startswith("unicr ")]


@pytest.mark.parametrize("line", commands())
def test_commands_parse(line: str) -> None:
    words = shlex.split(line)[1:]
    command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    assert callable(command)
    assert bound is not None


def test_there_is_something_to_test() -> None:
    assert len(commands()) >= 8
    assert len(blocks("python")) >= 3
