"""Files that a forger prepared: a schema that is not ours is refused before anything is read."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from unicr.errors import RunError
from unicr.runs import Run
from unicr.runs._sign import seals

KEY = 'x" LIMIT 0 --'
FORGERIES = {
    "trigger": "CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM results; END",
    "view": "CREATE VIEW more AS SELECT * FROM results",
    "index over an expression": "CREATE INDEX i ON results (idx + 1)",
    "another table": "CREATE TABLE more (a)",
    "computed column": "ALTER TABLE results ADD COLUMN c AS (hex(zeroblob(450000000)))",
    "virtual table": "CREATE VIRTUAL TABLE v USING fts5(a)",
}


def empty(folder: Path) -> Path:
    with Run(folder, create=True) as run:
        run.set_seal()
    return folder / "run.sqlite"


def execute(file: Path, *statements: str) -> None:
    db = sqlite3.connect(file, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


@pytest.mark.parametrize("name", FORGERIES)
@pytest.mark.parametrize("create", [False, True])
def test_what_we_did_not_make_is_refused(tmp_path: Path, name: str, create: bool) -> None:
    execute(empty(tmp_path), FORGERIES[name])
    with pytest.raises(RunError, match="did not make"):
        Run(tmp_path, create=create)


def test_results_without_a_key_are_refused(tmp_path: Path) -> None:
    """Without one an input could be counted many times."""
    file = empty(tmp_path)
    db = sqlite3.connect(file, isolation_level=None)
    (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'results'").fetchone()
    db.execute("DROP TABLE results")
    db.execute(sql.replace("PRIMARY KEY", ""))
    db.close()
    with pytest.raises(RunError, match="did not make"):
        Run(tmp_path)


def test_a_column_cannot_speak_sql_to_the_seal(tmp_path: Path) -> None:
    quoted = KEY.replace('"', '""')
    file = empty(tmp_path)
    execute(
        file,
        "DROP TABLE results",
        f'CREATE TABLE results (idx INTEGER, "{quoted}", PRIMARY KEY (idx, "{quoted}"))',
    )
    with pytest.raises(RunError, match="did not make"):
        Run(tmp_path)
    with pytest.raises(RunError, match="did not make"):
        seals(tmp_path)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.sqlite").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="link"):
        Run(tmp_path / "run", create=True)
    assert not (tmp_path / "elsewhere").exists()
