"""`unicr --help` names every command and costs next to nothing; every help has an example."""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import run
from unicr.cli import GROUPS, RENAMED, app, overview, plugin_summaries

COMMANDS = [*(name for group in GROUPS.values() for name in group), *plugin_summaries()]
WORDS: list[tuple[str, ...]] = [(name,) for name in COMMANDS]
WORDS += [("data", "fetch"), ("noise", "list"), ("noise", "show")]


def of(words: tuple[str, ...]) -> Any:
    found = app
    for word in words:
        found = found[word]
    return found


def test_the_overview_names_every_command_once() -> None:
    assert sorted(COMMANDS) == sorted(name for name in app if not name.startswith("-"))
    assert all(f"\n  {name} " in overview() for name in COMMANDS)
    assert max(map(len, overview().splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_the_overview_says_what_the_command_says(name: str) -> None:
    (words,) = [group[name] for group in (*GROUPS.values(), plugin_summaries()) if name in group]
    own = of((name,))
    said = own.help if own.default_command is None else inspect.getdoc(own.default_command)
    assert str(said).split("\n\n")[0] == words


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_every_help_has_an_example_that_parses(words: tuple[str, ...]) -> None:
    own = of(words)
    said = own.help if own.default_command is None else inspect.getdoc(own.default_command)
    text = str(said).split("Parameters\n---")[0]
    example = re.search(r"Example:\s+(unicr .*)", text.replace("\\\n", " "))
    assert example is not None
    line = shlex.split(example[1])[1:]
    called, bound, _ = app.parse_args(line, exit_on_error=False, print_error=False)
    assert own.default_command in (None, called)
    assert bound is not None


def test_help_loads_no_library(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['unicr', '--help']\n"
        "from unicr.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'cyclopts', 'rich', 'numpy'}\n"
        "print('LOADED', sorted({m.split('.')[0] for m in sys.modules} & heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("LOADED []\n")


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_no_option_has_a_stray_negative(words: tuple[str, ...]) -> None:
    said = run(*words, "--help").out
    assert not re.findall(r"--(?:empty|no)-(?!browser|images)\S+", said)
    assert not [old for old in RENAMED if f"{old} " in said]


def test_old_names_of_options_still_work(tmp_path: Path) -> None:
    noise = ("--noise", "gaussian(sigma=1)", "--norm", "2", "--dim", "4")
    assert run("curve", *noise, f"--output={tmp_path / 'a.csv'}").code == 0
    assert run("curve", *noise, "--output", tmp_path / "b.csv").code == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    few = ("--engine", "montecarlo", "--samples", "200", "--particles", "2", "--iterations", "1")
    said = run("radius", *noise, "--pa", "0.9", *few, "--failure", "0.05").out
    assert "probability 0.95" in said


def test_lists_within_groups_of_options_take_several_words() -> None:
    """The lowest cyclopts does not hand `consume_multiple` down to the fields of a dataclass."""
    line = (
        "certify --model m.onnx --data d.npz --noise n --norm 1 2 --mean 0.1 0.2 --std 1 2 --out o"
    )
    _, bound, _ = app.parse_args(line.split(), exit_on_error=False, print_error=False)
    options = bound.arguments["options"]
    assert options.norm == ["1", "2"]
    assert (options.loading.mean, options.loading.std) == ([0.1, 0.2], [1.0, 2.0])
