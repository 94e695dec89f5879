"""Whoever waits hears how far it is and when it may end, in a pipe too, and how to go on."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tests.cli.command import run
from unicr.cli import _go_on, _progress
from unicr.lab.report import copt, tables
from unicr.progress import Meter

DONE = re.compile(r"\((\d+\.\d) of (\d+)")


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step is told."""
    monkeypatch.setattr(tables, "EVERY", 0.0)
    monkeypatch.setattr(copt, "LOOK", 0.01)


@pytest.fixture
def blobs(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    x = rng.normal(scale=0.3, size=(200, 16)) + np.where(y[:, None] == 1, 0.4, -0.4)
    file = tmp_path / "blobs.npz"
    np.savez(file, x=x.astype(np.float32), y=y)
    return file


def told(text: str, total: int) -> list[float]:
    found = [(float(done), int(of)) for done, of in DONE.findall(text)]
    assert {of for _, of in found} == {total}, text
    return [done for done, _ in found]


def test_the_end_is_estimated_from_what_was_done_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    bar = tables.Bar("work", 50, Console(stderr=True, force_terminal=False))
    bar.update("going on", now=30)  # thirty were done before
    clock[0] += 40
    bar.update("going on", now=40)
    assert "going on (40.0 of 50, about 40 s left)" in capsys.readouterr().err


def test_lines_in_a_pipe_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    text = "a line that is longer than the terminal that nobody has [0]: " + "x " * 40
    tables.Bar("work", 1, Console(stderr=True, force_terminal=False, width=60)).say(text)
    assert capsys.readouterr().err == text + "\n"


def test_a_meter_speaks_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with Meter() as meter:
        clock[0] = 30.0
        meter.update("comparing", 0.25)
    assert capsys.readouterr().err == "comparing (25%, about 90 s left)\n"


def test_curves_tell_when_they_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    for done in (1, 2, 4):
        clock[0] += 6.0
        _progress("building a curve", done, 4)
    first, second, last = capsys.readouterr().err.splitlines()
    assert first == "building a curve: 1 of 4"
    assert second == "building a curve: 2 of 4, about 12 s left"
    assert last == "building a curve: 4 of 4"


@pytest.mark.usefixtures("talkative")
def test_training_is_told_inside_an_epoch(blobs: Path, tmp_path: Path) -> None:
    words = ("--noise", "gaussian(sigma=0.2)", "--epochs", 2, "--batch", 64)
    ended = run("train", "--data", blobs, *words, "--out", tmp_path / "model")
    assert ended.code == 0
    done = told(ended.err, 2)
    assert done[-1] == 2.0
    assert any(0 < part < 1 for part in done)


@pytest.mark.usefixtures("talkative")
def test_c_opt_is_told_inside_a_point(blobs: Path, tmp_path: Path) -> None:
    words = ("--beta", 2, "--sigma", 0.2, 0.4, "--norm", 1, "--epochs", 4, "--n", 1000, "--max", 20)
    ended = run("c-opt", "--train", blobs, "--test", blobs, *words, "--out", tmp_path / "grid")
    assert ended.code == 0, ended.err
    assert any(part % 1 for part in told(ended.err, 2))
    assert "accuracy" in ended.err


@pytest.mark.usefixtures("talkative")
def test_runs_and_attacks_are_told(blobs: Path, tmp_path: Path) -> None:
    model, folder = tmp_path / "m.py", tmp_path / "run"
    model.write_text("def f(x):\n    return (x.mean(1) > 0).long()\n")
    words = ("--noise", "gaussian(sigma=0.2)", "--norm", 2, "--n", 3000, "--seed", 1, "--max", 3)
    certify = ("certify", "--model", f"{model}:f", "--data", blobs, *words, "--out", folder)
    assert any(part % 1 for part in told(run(*certify).err, 3))
    assert min(told(run(*certify[:-3], 5, *certify[-2:], "--resume").err, 5)) >= 3
    attack = ("attack", folder, "--attack", "gaussian", "--n", 100, "--trust", model)
    ended = run(*attack)
    assert told(ended.err, 15)[-1] == 15.0, ended


@pytest.mark.parametrize("command", ["certify", "i-opt", "c-opt", "train"])
def test_an_interrupted_command_says_how_to_go_on(command: str) -> None:
    assert _go_on([command, "--out", "a b"]).endswith(f"unicr {command} --out 'a b' --resume")


@pytest.mark.parametrize("command", ["attack", "data", "demo"])
def test_what_goes_on_by_itself_is_only_called_again(command: str) -> None:
    assert _go_on([command, "x", "--fresh"]).endswith(f"unicr {command} x")


def test_a_table_that_is_too_wide_for_a_terminal_is_turned(monkeypatch: pytest.MonkeyPatch) -> None:
    head, row = ["run", *(f"accuracy at {i}" for i in range(6))], ["mine", *"012345"]
    wide = tables.format_table(head, [row])
    assert len(wide.splitlines()) == 2  # in a pipe
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    turned = tables.format_table(head, [row]).splitlines()
    assert turned[:2] == ["run            mine", "accuracy at 0     0"]
    assert len(turned) == 7
    monkeypatch.setenv("COLUMNS", "200")
    assert tables.format_table(head, [row]) == wide
    monkeypatch.setenv("COLUMNS", "12")
    assert tables.format_table(head, [row]) == wide  # no better the other way


IMPATIENT = """
import sys

class Finder:
    @staticmethod
    def find_spec(name, *_):
        if name == "cyclopts":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Finder)
sys.argv = ["unicr", "certify", "--out", "run"]
from unicr.cli import main
main()
"""


def test_whoever_interrupts_at_once_sees_no_traceback() -> None:
    """Loading the libraries takes its time as well."""
    ended = subprocess.run([sys.executable, "-c", IMPATIENT], capture_output=True, text=True)
    assert ended.returncode == 130
    assert ended.stderr.startswith("unicr: interrupted; what is done stays, go on with: unicr cert")
    assert ended.stderr.count("\n") == 1
