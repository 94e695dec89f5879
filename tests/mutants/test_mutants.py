"""Slips in soundness-critical lines: each still fits its line, and the tests notice it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LONG
from tests.mutants.slips import (
    PASSED,
    ROOT,
    SOURCE,
    Slip,
    SlipError,
    copied,
    every_test_of,
    load,
    run_tests,
    try_slip,
)

SLIPS = load()
BY_ID = {slip.id: slip for slip in SLIPS}


def test_there_are_enough_slips_and_few_go_unseen() -> None:
    assert len(BY_ID) == len(SLIPS) >= 100
    assert sum(slip.survives is not None for slip in SLIPS) <= 0.03 * len(SLIPS)


def test_slips_are_noticed_by_tests_that_run_every_time() -> None:
    """`make test` leaves the long ones out."""
    long = LONG.read_text().splitlines()
    assert [slip.id for slip in SLIPS if slip.killed_by in long] == []


@pytest.mark.parametrize("slip", SLIPS, ids=BY_ID)
def test_every_slip_fits_the_source(slip: Slip) -> None:
    """Whoever changes such a line renews its slip: the same mistake in the new words."""
    changed = slip.applied((SOURCE / "unicr" / slip.file).read_text())
    ast.parse(changed)
    assert slip.why.endswith(".")
    path, name = slip.killed_by.split("::")
    text = (ROOT / path).read_text()
    assert f"def {name.split('[')[0]}(" in text, f"there is no {slip.killed_by}"


def test_no_slip_names_what_is_not_there(tmp_path: Path) -> None:
    """Any test that comes by such a line fails, whatever it looks at."""
    for slip in SLIPS:
        source = (SOURCE / "unicr" / slip.file).read_text()
        (tmp_path / f"{slip.id}.py").write_text(slip.applied(source))
    check = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "F821"]
    found = subprocess.run(
        [*check, "--output-format", "concise", str(tmp_path)], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_a_slip_that_fits_nowhere_or_in_two_places_is_refused() -> None:
    slip = Slip("x", "x.py", "a", "b", "", "x.")
    assert slip.applied("a c") == "b c"
    for text in ("c", "a a"):
        with pytest.raises(SlipError, match="places with 'a'"):
            slip.applied(text)


@pytest.mark.slow
def test_the_copy_is_what_is_tested() -> None:
    """A copy without a slip passes, and a broken copy is noticed: so it is the copy that runs."""
    test = ("tests/test_norms.py",)
    with copied() as copy:
        assert run_tests(copy, test, shared=True)[0] == PASSED
        (copy / "unicr" / "norms.py").write_text("raise ImportError('the copy')\n")
        assert "the copy" in run_tests(copy, test, shared=True)[1]


@pytest.mark.slow
def test_without_a_slip_all_of_these_tests_pass() -> None:
    with copied() as copy:
        code, said = run_tests(copy, every_test_of(SLIPS), shared=True)
    assert code == PASSED, said


@pytest.mark.slow
@pytest.mark.parametrize("slip", SLIPS, ids=BY_ID)
def test_every_slip_is_noticed(slip: Slip) -> None:
    assert try_slip(slip)[0] == ("killed" if slip.survives is None else "survived"), slip.why
