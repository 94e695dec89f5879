"""How many functions and files one certificate goes through, and what is made more than once."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import unicr
from unicr.cli import app
from unicr.noise import Lattice, parse
from unicr.runs import Job, Spec
from unicr.smoothing import Plan, VoteCounter

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


def certify(out: Path) -> None:
    words = "certify --model builtin:mnist-mlp-0.5 --data builtin:mnist --norm 2 --n 1000 --max 1"
    app([*words.split(), "--noise", "gaussian(sigma=0.5)", "--out", str(out)], exit_on_error=False)


def made(calls: Counter[CodeType], function: Callable[..., Any]) -> int:
    return calls[function.__code__]


def test_one_certificate_takes_a_short_way(tmp_path: Path) -> None:
    certify(tmp_path / "first")  # modules are imported, catalogues and curves are read
    with traced() as calls:
        certify(tmp_path / "second")
    assert made(calls, Spec.__post_init__) == 1
    assert made(calls, Job.__post_init__) == 1
    assert made(calls, VoteCounter.__init__) == 1
    assert made(calls, Lattice.parse) <= 1
    assert made(calls, parse) <= 2  # read, and written as a text that reads back as the same noise
    assert made(calls, Plan.__post_init__) == 1
    assert len(calls) <= 330
    assert len({code.co_filename for code in calls}) <= 67
