"""Files that a forger prepared: a schema that is not ours is refused before anything is read."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runs.forging import reseal
from unicr.classifier import load_classifier
from unicr.cli import app
from unicr.data import load_dataset
from unicr.errors import RunError, UnicrError
from unicr.lab.attack import AttackStore, Outcome
from unicr.noise import from_density, gaussian, to_data
from unicr.runs import Job, Run, certify_run, compute_seals, verify
from unicr.runs._commit import digest_of_inputs
from unicr.smoothing import Plan, read_norms

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
        compute_seals(tmp_path)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.sqlite").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="link"):
        Run(tmp_path / "run", create=True)
    assert not (tmp_path / "elsewhere").exists()


def small(folder: Path) -> Path:
    """A real run of a few inputs."""
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    job = Job(
        load_classifier(lambda batch: (batch[:, 0] > 0).long(), num_classes=2),
        load_dataset((x, (x[:, 0] > 0).astype(np.int64))),
        gaussian(sigma=0.5),
        norms=read_norms([2]),
        plan=Plan(n=100),
    )
    certify_run(job, folder).close()
    return folder / "run.sqlite"


def unicr(*words: object) -> object:
    return app([str(word) for word in words], exit_on_error=False, print_error=False)


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("column", ["claims", "transcript"])
def test_one_row_nested_deeply_is_one_bad_row(tmp_path: Path, column: str, capsys: Any) -> None:
    file = small(tmp_path)
    execute(file, f"UPDATE results SET {column} = '{DEEP}' WHERE idx = 1")
    reseal(tmp_path)
    with Run(tmp_path) as run:
        assert [problem.idx for problem in verify(run)] == [1]
    assert unicr("verify", tmp_path) == 1
    assert "3 certificates recomputed from their votes: 1 does not hold" in capsys.readouterr().out
    with pytest.raises(RunError, match="input 1"):
        unicr("score", tmp_path)


@pytest.mark.parametrize("key", ["plan", "noise_data", "classes", "loading", "reading"])
def test_settings_nested_deeply_are_refused(tmp_path: Path, key: str) -> None:
    file = small(tmp_path)
    execute(file, f"INSERT OR REPLACE INTO spec VALUES ('{key}', '{DEEP}')")
    for words in (["verify"], ["score"], ["export", "-o", tmp_path / "x.jsonl"]):
        with pytest.raises(RunError, match="recursion"):
            unicr(words[0], tmp_path, *words[1:])


def test_a_value_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = small(tmp_path)
    monkeypatch.setattr("unicr.runs._database.LONGEST_VALUE", 5000)
    execute(file, "UPDATE results SET reason = hex(zeroblob(4000)) WHERE idx = 0")
    with pytest.raises(RunError, match="too big"):
        unicr("verify", tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("data_size", 10**15),
        ("batch", 10**12),
        ("batch", 0),
        ("shape", [2**30, 2**30]),
    ],
)
def test_numbers_beyond_sense_are_refused_at_once(tmp_path: Path, key: str, value: Any) -> None:
    file = small(tmp_path)
    text = json.dumps(value)
    execute(file, "DELETE FROM sealed", f"UPDATE spec SET value = '{text}' WHERE key = '{key}'")
    with pytest.raises(RunError) as caught:
        unicr("verify", tmp_path)
    assert "\n" not in str(caught.value)


NOISES = [
    "gаussian(sigma=0.5)",  # the second letter is Cyrillic
    "GAUSSIAN(sigma=0.5)",
    "gaussian(sigma=0.5)\x1b[2K",
    "gaussian(sigma\u202e=0.5)",
    "gaussian\u00a0(sigma=0.5)",
    "my gaussian(sigma=0.5)",
    "my GAUSSIAN(sigma=0.5)",
    "normal(sigma=0.5)",
]


@pytest.mark.parametrize("name", NOISES)
def test_a_table_cannot_be_called_something_it_is_not(tmp_path: Path, name: str) -> None:
    """A wide density under a name that a reader takes for another one."""
    file = small(tmp_path)
    body = to_data(from_density(lambda x: -x * x / 800, name="mine"))["noise"]
    body["density"] = name
    digest = hashlib.sha256(
        json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
    values = {"noise": name, "noise_data": {"format": 1, "noise": body, "sha256": digest}}
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("DELETE FROM sealed")
    for key, value in values.items():
        db.execute("UPDATE spec SET value = ? WHERE key = ?", (json.dumps(value), key))
    db.close()
    with pytest.raises(UnicrError) as caught:
        unicr("verify", tmp_path)
    assert "\n" not in str(caught.value)


def test_a_run_cannot_write_on_the_terminal(tmp_path: Path, capsys: Any) -> None:
    """What a row says is shown, and moves no cursor."""
    file = small(tmp_path)
    clear = "x\x1b[2J\x1b[H\n3 certificates recomputed from their votes: all hold"
    db = sqlite3.connect(file, isolation_level=None)
    change = "UPDATE results SET claims = json_set(claims, '$.noise', ?) WHERE idx = 1"
    db.execute(change, (clear,))
    db.close()
    reseal(tmp_path)
    assert unicr("verify", tmp_path) == 1
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert said.splitlines()[0].startswith("input 1: noise 'x")
    execute(file, "UPDATE spec SET value = '\"a\\u001b[2J\"' WHERE key = 'model'")
    with pytest.raises(RunError, match="printable"):
        unicr("score", tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE outcomes SET bound = 'far'",
        "UPDATE outcomes SET idx = 'one'",
        "UPDATE outcomes SET length = 9e999",
        "UPDATE outcomes SET counts = 'many'",
        f"UPDATE outcomes SET counts = '{DEEP}'",
        "UPDATE settings SET value = '[]'",
        'UPDATE settings SET value = \'{"alpha": "high"}\'',
        "UPDATE settings SET value = 'x'",
        f"UPDATE settings SET value = '{DEEP}'",
    ],
    ids=lambda change: change[:40],
)
def test_attacks_of_no_sense_are_told_in_a_line(tmp_path: Path, change: str, capsys: Any) -> None:
    small(tmp_path)
    with AttackStore(tmp_path) as store:
        store.begin("pgd", {"alpha": 0.001, "votes": 10})
        store.add([Outcome("pgd", "2", 1.0, 0, 1, 0.1, 0.1, (1, 9), "kept")])
    execute(tmp_path / "attacks.sqlite", change)
    assert unicr("verify", tmp_path) == 1
    assert "attacks.sqlite checked: 1 problem" in capsys.readouterr().out


def test_labels_that_a_run_brings_are_no_labels_of_yours(tmp_path: Path) -> None:
    """With your own inputs the labels are yours too, or the run would be its own witness."""
    file = small(tmp_path / "run")
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "true.npy", (x[:, 0] > 0).astype(np.int64))
    np.save(tmp_path / "forged.npy", (x[:, 0] <= 0).astype(np.int64))
    reading = json.dumps({"labels": str(tmp_path / "forged.npy")})
    execute(
        file,
        "UPDATE results SET label = 1 - label",
        f"INSERT OR REPLACE INTO spec VALUES ('reading', '{reading}')",
    )
    with Run(tmp_path / "run") as run:
        inputs = digest_of_inputs((row.idx, row.label, row.input_hash) for row in run.rows())
    execute(file, f"UPDATE spec SET value = '\"{inputs}\"' WHERE key = 'inputs'")
    reseal(tmp_path / "run")
    own = ("verify", tmp_path / "run", "--data", tmp_path / "x.npy")
    with pytest.raises(RunError, match="give --labels yourself"):
        unicr(*own)
    assert unicr(*own, "--labels", tmp_path / "forged.npy") == 0
    assert unicr(*own, "--labels", tmp_path / "true.npy") == 1
