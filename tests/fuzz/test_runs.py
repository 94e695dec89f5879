"""Run folders with one thing changed: read, or refused in one line, and never a number that passes.

The tables are taken as they are found in the file, so that every field of every version is hit.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.command import Done, run
from tests.fuzz.work import at_length, damaged, drawn, number, within, words

FILE = "run.sqlite"


@pytest.fixture(scope="session")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run with certificates, an abstention or two and a failed input."""
    folder = tmp_path_factory.mktemp("fuzz")
    rows = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    rows[2, 1] = np.nan
    np.savez(folder / "data.npz", x=rows, y=np.arange(6) % 2)
    model = folder / "model.py"
    model.write_text("def rule(batch):\n    return (batch[:, 0] > 0.1).long()\n")
    done = run(
        *("certify", "--model", f"{model}:rule", "--data", folder / "data.npz", "--norm", 1, 2),
        *("--noise", "gaussian(sigma=0.5)", "--n", 200, "--n0", 20, "--out", folder / "run"),
    )
    assert done.code == 3, done.err
    assert run("verify", folder / "run").code == 0
    return folder / "run"


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values inside a JSON value."""
    if not isinstance(value, dict | list):
        return [path]
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(leaf for key, one in inside for leaf in leaves(one, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(copy[path[0]], path[1:], new)
    return copy


ANYTHING = (
    st.none()
    | st.booleans()
    | st.sampled_from((0, 1, -1, 2, 10**6, 2**63 - 1, -(2**63), 0.5, 1e300, -1.0))
    | st.floats()
    | number()
    | words(8)
    | st.sampled_from(("[]", "{}", "[1]", "[[", "null", '"x"', "NaN", "1e999"))
)


def edit(data: st.DataObject, file: Path) -> None:
    """Change one thing in the file: a value, a part of a JSON value, a row, or its bytes."""
    if data.draw(st.integers(0, 4)) == 0:
        file.write_bytes(data.draw(damaged(file.read_bytes())))
        return
    with closing(sqlite3.connect(file)) as db, db:
        names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        table = data.draw(st.sampled_from([name for (name,) in db.execute(names)]))
        about = db.execute(f'PRAGMA table_info("{table}")').fetchall()
        columns, key = [row[1] for row in about], [row[1] for row in about if row[5]]
        named = ", ".join(f'"{name}"' for name in key or columns[:1])
        rows = db.execute(f'SELECT {named} FROM "{table}"').fetchall()
        if not rows:
            return
        row, column = data.draw(st.sampled_from(rows)), data.draw(st.sampled_from(columns))
        where = f'"{table}" WHERE ({named}) = ({", ".join("?" * len(row))})'
        if data.draw(st.integers(0, 9)) == 0:
            db.execute(f"DELETE FROM {where}", row)
            return
        (old,) = db.execute(f'SELECT "{column}" FROM {where}', row).fetchone()
        new = data.draw(ANYTHING)
        try:
            value = json.loads(old)
        except (TypeError, ValueError):
            value = None
        if isinstance(value, dict | list):
            new = json.dumps(replaced(value, data.draw(st.sampled_from(leaves(value))), new))
        try:
            begin, _, rest = where.partition(" ")
            db.execute(f'UPDATE {begin} SET "{column}" = ? {rest}', (new, *row))
        except (sqlite3.IntegrityError, OverflowError, UnicodeEncodeError):
            db.rollback()


def told(done: Done) -> None:
    """An answer, a verdict, or a refusal in one line; never a traceback."""
    if done.code == 2:
        done.check_refused()
    assert done.code in (0, 1, 2, 3), (done.code, done.err)
    assert "Traceback" not in done.out + done.err


def shown(folder: Path) -> list[tuple[object, str]]:
    """What a reader would see of a run."""
    seen = []
    for arguments in (("score", folder), ("export", folder, "-o", folder.parent / "rows.jsonl")):
        done = run(*arguments)
        told(done)
        seen.append((done.code, done.out if arguments[0] == "score" else ""))
    rows = folder.parent / "rows.jsonl"
    if rows.exists():
        seen.append((0, rows.read_text()))
        rows.unlink()
    return seen


@cache
def untouched(folder: Path) -> list[tuple[object, str]]:
    return shown(folder)


def check_run(certified: Path, data: st.DataObject, tmp_path: Path) -> None:
    """Every command takes the edited run or refuses it, and `verify` passes no changed number."""
    folder = tmp_path / "run"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(certified, folder)
    edit(data, folder / FILE)
    with within():
        verdict = run("verify", folder)
        told(verdict)
        after = shown(folder)
        assert verdict.code != 0 or after == untouched(certified), verdict.out


def with_data(check: Callable[..., None]) -> Any:
    return given(data=st.data())(check)


test_run = drawn(40)(with_data(check_run))
test_run_at_length = at_length(1000)(with_data(check_run))
