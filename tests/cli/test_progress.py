"""Whoever waits hears how far it is and when it may end, in a pipe too, and how to go on."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tests.cli.command import run
from unicr import progress
from unicr.cli import _how_to_resume
from unicr.lab.report import copt, tables

DONE = re.compile(r"\((\d+\.\d) of (\d+)")


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step is told."""
    monkeypatch.setattr(progress, "EVERY", 0.0)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
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
    bar = progress.Bar("work", 50, Console(stderr=True, force_terminal=False))
    bar.update("going on", done=30)  # thirty were done before
    clock[0] += 40
    bar.update("going on", done=40)
    assert "going on (40.0 of 50, about 40 s left)" in capsys.readouterr().err


def test_lines_in_a_pipe_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    text = "a line that is longer than the terminal that nobody has [0]: " + "x " * 40
    progress.Bar("work", 1, Console(stderr=True, force_terminal=False, width=60)).say(text)
    assert capsys.readouterr().err == text + "\n"


def test_what_engines_tell_is_shown_once_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing for two seconds, then a line now and then; a task that ends is forgotten."""
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    progress.tell("nobody listens", 1, 2)
    with progress.show():
        for done in range(1, 9):
            progress.tell("building a curve", done, 8)
            clock[0] += 6.0
        progress.tell("building a curve", 1, 8)
    assert capsys.readouterr().err.splitlines() == [
        "building a curve (6.0 of 8, about 12 s left)",
    ]


def test_a_text_beside_the_task_and_work_of_unknown_length(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with progress.show():
        for share in (0.0, 0.1, 0.5):
            progress.tell("searching", share, 1.0, "particle swarm")
            progress.tell("a file", share, None)
            clock[0] += 30.0
        with progress.silence():
            progress.tell("searching", 0.9, 1.0, "measuring")
    swarm, file = capsys.readouterr().err.splitlines()
    assert swarm == "particle swarm (0.5 of 1, about 60 s left)"
    assert file == "a file (30 s)"


def test_what_takes_long_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.announce("building", after=0.0):
        deadline = time.monotonic() + 60
        while not (said := capsys.readouterr().err) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert said == "building\n"


def test_one_bar_moves_at_a_time() -> None:
    """The inner one says lines above the outer one, on the console that knows where it stands."""
    screen = io.StringIO()
    outer = progress.Bar("outer", 2, Console(file=screen, force_terminal=True, width=60))
    with outer, progress.Bar("inner", 2, Console(force_terminal=True)) as inner:
        inner.say("a line of the inner one")
        inner.update("half")
    assert "a line of the inner one" in screen.getvalue()


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
    attack = ("attack", folder, "--attack", "gaussian", "--votes", 100, "--trust", model)
    ended = run(*attack)
    assert told(ended.err, 15)[-1] == 15.0, ended


@pytest.mark.parametrize("command", ["certify", "i-opt", "c-opt", "train"])
def test_an_interrupted_command_says_how_to_how_to_resume(command: str) -> None:
    assert _how_to_resume([command, "--out", "a b"]).endswith(
        f"unicr {command} --out 'a b' --resume"
    )


@pytest.mark.parametrize("command", ["attack", "data", "demo"])
def test_what_goes_on_by_itself_is_only_called_again(command: str) -> None:
    assert _how_to_resume([command, "x", "--fresh"]).endswith(f"unicr {command} x")


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
    assert ended.stderr.startswith(
        "unicr: interrupted; what is done stays, continue with: unicr cert"
    )
    assert ended.stderr.count("\n") == 1
