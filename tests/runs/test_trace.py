"""How many functions and files one certificate goes through, and what is made more than once."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import unicr
from unicr.cli import app
from unicr.noise import Lattice, parse
from unicr.runs import Job, Spec
from unicr.smoothing import Plan, VoteCounter

# Noise that falls on a threshold of the sampler takes some more functions, by chance in every other
# run; what all runs go through is counted. All of so many do so with a probability of 1/4000.
RUNS = 12
FILES, FUNCTIONS = 45, 278
ROOT = str(Path(unicr.__file__).parent)


@contextmanager
def traced() -> Iterator[Counter[CodeType]]:
    """Calls of every named function of unicr, in all threads; bodies of classes left out."""
    calls: Counter[CodeType] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        body = code.co_name.startswith("<") or "__module__" in code.co_names
        if event == "call" and code.co_filename.startswith(ROOT) and not body:
            calls[code] += 1

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def certify(out: Path, *more: str) -> None:
    words = "certify --model builtin:mnist-mlp-0.5 --data builtin:mnist --norm 2 --n 1000 --max 1"
    noise = ["--noise", "gaussian(sigma=0.5)"]
    app([*words.split(), *noise, "--out", str(out), *more], exit_on_error=False)


def made(calls: Counter[CodeType], function: Callable[..., Any]) -> int:
    return calls[function.__code__]


def size_of(walks: Sequence[Counter[CodeType]]) -> tuple[int, int]:
    """How many files and functions every walk goes through."""
    ordinary = set.intersection(*map(set, walks))
    return len({code.co_filename for code in ordinary}), len(ordinary)


def test_one_certificate_takes_a_short_way(tmp_path: Path) -> None:
    certify(tmp_path / "first")  # modules are imported, catalogues and curves are read
    walks: list[Counter[CodeType]] = []
    for i in range(RUNS):
        with traced() as calls:
            certify(tmp_path / str(i))
        walks.append(calls)
        files, functions = size_of(walks)
        if files <= FILES and functions <= FUNCTIONS:
            break
    for kind in (Spec, Job, Plan):
        assert made(walks[0], kind.__post_init__) == 1
    assert made(walks[0], VoteCounter.__init__) == 1
    assert made(walks[0], parse) == 1
    assert made(walks[0], Lattice.parse) == 0
    assert files <= FILES
    assert functions <= FUNCTIONS


def test_one_replay_takes_a_short_way(tmp_path: Path) -> None:
    walks: list[Counter[CodeType]] = []
    for i in range(4):  # a replay draws the noise of its run again: runs of several seeds
        certify(tmp_path / str(i), "--seed", str(i), "--batch", "100")
        with traced() as calls:
            app(["verify", str(tmp_path / str(i)), "--replay", "1"], exit_on_error=False)
        walks.append(calls)
    walks = walks[1:]  # modules were imported by the first
    assert made(walks[0], Spec.from_dict) == 1
    assert made(walks[0], VoteCounter.__init__) == 1
    assert made(walks[0], parse) == 1
    files, functions = size_of(walks)
    assert files <= 46
    assert functions <= 272
