"""What every fuzz test uses: fixed draws, a time limit, odd numbers, bytes with faults in them.

The draws are derandomised, so that a failure on one machine is a failure on every one.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.cli.command import Done

SECONDS = 60
ODD = (
    *("0", "-0.0", "1", "-1", "2", "0.5", "1.5", "10", "1e-300", "1e-10", "1e10", "1e300", "1e400"),
    *("nan", "inf", "-inf", "1e-400", "0x10", "1_0", "1/3", "True", "None", "'1'", "1j", "()", ""),
    *("9" * 400, "--1", "1e", "²", "½"),
)


class TooLong(BaseException):
    """No `except Exception` keeps it."""


@contextmanager
def within(seconds: int = SECONDS) -> Iterator[None]:
    """An end to what takes more than so many seconds of this process, however busy the machine."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"more than {seconds} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def memory_of(megabytes: int) -> Iterator[None]:
    """No more than this beyond what the process has already."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    old = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * os.sysconf("SC_PAGE_SIZE") + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, old)


def drawn(examples: int) -> Callable[[Any], Any]:
    """A hypothesis test on so many fixed examples."""
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def at_length(examples: int) -> Callable[[Any], Any]:
    """The same with the slow tests."""
    return lambda test: pytest.mark.slow(drawn(examples)(test))


def check_answered(done: Done, *codes: int) -> bool:
    """Whether a command gave an answer; where it refused, one line says why."""
    if done.code in (0, *codes):
        return True
    done.check_refused()
    assert len(done.err.splitlines()) == 1, done.err
    return False


@st.composite
def number(draw: st.DrawFn) -> str:
    """A number as somebody may write it, odd ones often."""
    plain = st.floats(-1e3, 1e3).map(repr) | st.integers(-(10**4), 10**4).map(str)
    return draw(st.sampled_from(ODD) | plain | st.floats().map(repr) | words(5))


def words(most: int) -> st.SearchStrategy[str]:
    """Any text that a shell can pass on."""
    return st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=most)


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """A file's bytes with some changed, cut out or put in, or with the end missing."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)) | st.integers(0, 200)) % max(len(data), 1)
        match draw(st.sampled_from(("flip", "set", "cut", "put", "end"))):
            case "flip" if data:
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "set":
                new = draw(st.sampled_from((b"\0" * 4, b"\xff" * 4, b"\xff\xff\xff\x7f", b"\x80")))
                data[at : at + len(new)] = new
            case "cut":
                del data[at : at + draw(st.integers(1, 60))]
            case "put":
                data[at:at] = draw(st.binary(min_size=1, max_size=20))
            case "end":
                del data[at:]
    return bytes(data)
