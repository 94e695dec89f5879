"""Slips: one wrong line each, put into a copy of the package to see whether a test notices.

The `*.toml` files beside this one hold them. A slip has an `id`, the `file` under src/unicr, the
text to `find` there (it stands there once, or `occurrence` says which one is meant), what to `put`
in its place, and in `why` what would be unsound. `killed_by` is one test that fails with it, with
its parameters, so that a slip takes seconds (`python -m tests.mutants --only ID --find FILE` looks
for one). Where no test can see a slip, `survives` says why not, and `killed_by` names the test that
comes closest to it.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "src"
# Curves that are kept on disk may be shared with a copy whose slip is in none of these.
NUMERICS = ("noise/", "norms.py", "radius/", "sample/", "tradeoff/")
OPTIONS = ("-x", "-m", "not slow", "-p", "no:cacheprovider", "--tb=line", "-rf")
PATIENCE = 900.0  # seconds for the tests of one slip; a slip that makes them hang is noticed too
FAILED, PASSED = 1, 0  # what pytest returns; all else means that it could not run the tests
Verdict = Literal["killed", "survived"]
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["pytest", "mpmath", "numba", "scipy.stats", "torch"])


class SlipError(Exception):
    """A slip that cannot be tried: its text is not where it should be, or its tests do not run."""


@dataclass(frozen=True)
class Slip:
    """One wrong line, and the test that notices it."""

    id: str
    file: str
    find: str
    put: str
    killed_by: str
    why: str
    occurrence: int | None = None
    survives: str | None = None

    def applied(self, text: str) -> str:
        """The text of its file with the slip in it."""
        count = text.count(self.find)
        if count == 0 or (count > 1 and self.occurrence is None):
            raise SlipError(f"{self.id}: {self.file} has {count} places with {self.find!r}")
        parts = text.split(self.find)
        at = self.occurrence or 1
        if not 1 <= at <= count:
            raise SlipError(f"{self.id}: there is no occurrence {at} of {count}")
        changed = self.find.join(parts[:at]) + self.put + self.find.join(parts[at:])
        if changed == text:
            raise SlipError(f"{self.id}: it changes nothing")
        return changed


def load() -> list[Slip]:
    """Every slip, in the order of the files."""
    found = []
    for path in sorted(HERE.glob("*.toml")):
        for values in tomllib.loads(path.read_text())["slip"]:
            found.append(Slip(**values))
    return found


def every_test_of(slips: Iterable[Slip]) -> tuple[str, ...]:
    """The tests of several slips, each once."""
    return tuple(dict.fromkeys(slip.killed_by for slip in slips))


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of src/ that may be changed, with what Python and numba compiled of it."""
    with tempfile.TemporaryDirectory(prefix="slip-") as place:
        copy = Path(place) / "src"
        shutil.copytree(SOURCE, copy)  # keeps times, by which compiled files are known
        yield copy


def put_into(copy: Path, slip: Slip) -> None:
    """Write the slip into a copy."""
    path = copy / "unicr" / slip.file
    text = path.read_text()
    path.write_text(slip.applied(text))
    if "numba" in text:  # numba looks at the time of the caller's file only
        for kept in path.parent.rglob("*.nb[ic]"):
            kept.unlink()


def _test(copy: str, cache: str | None, tests: tuple[str, ...], out: str) -> None:
    """What the process of one slip does: run tests on the copy, and leave with pytest's code."""
    import pytest

    with open(out, "w") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
        os.chdir(ROOT)
        sys.path.insert(0, copy)
        os.environ["PYTHONPATH"] = copy  # for the processes that tests start
        if cache is not None:
            os.environ["UNICR_CACHE_DIR"] = cache
        code = pytest.main([*OPTIONS, *tests])
        sys.stdout.flush()
        os._exit(int(code))


def run_tests(
    copy: Path, tests: tuple[str, ...], *, shared: bool, patience: float | None = None
) -> tuple[int | None, str]:
    """Run tests on a copy, in a process of their own: pytest's code (None: it hangs), its words.

    `shared` lets them read the curves kept on disk. The process is a fork of one that has imported
    what does not change: all but unicr.
    """
    cache, out = None if shared else str(copy.parent / "cache"), copy.parent / "out.txt"
    process = PROCESSES.Process(target=_test, args=(str(copy), cache, tests, str(out)))
    process.start()
    process.join(patience)
    if process.exitcode is None:
        process.kill()
        process.join()
        return None, out.read_text()
    return process.exitcode, out.read_text()


def try_slip(slip: Slip, tests: tuple[str, ...] = ()) -> tuple[Verdict, str]:
    """Whether its test notices a slip (or one of `tests`), and the name of the test that does."""
    with copied() as copy:
        put_into(copy, slip)
        shared = not slip.file.startswith(NUMERICS)
        code, said = run_tests(copy, tests or (slip.killed_by,), shared=shared, patience=PATIENCE)
    if code not in (FAILED, PASSED, None):
        raise SlipError(f"{slip.id}: pytest ended with {code}\n{said[-2000:]}")
    name = re.search(r"^FAILED (.*?)(?: - .*)?$", said, re.MULTILINE)
    return "survived" if code == PASSED else "killed", name[1] if name else ""
