"""Forgeries and hostile folders that nobody listed: each was tried by somebody who wanted in.

The one who opens a folder here got it from a stranger. Nothing outside of it may be written, no
command may hang or fill memory, two readers may not see different things, and what is shown is what
was checked.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from tests.fuzz.work import memory_of
from tests.runs.forging import reseal
from tests.runs.test_forger import data, job, model
from unicr.cli import app
from unicr.data import load_dataset
from unicr.errors import RunError, UnicrError
from unicr.folder import Lock
from unicr.noise import parse
from unicr.norms import l2
from unicr.runs import (
    Row,
    Run,
    certify_run,
    compute_seals,
    evidence,
    replay,
    verify,
    write_commitment,
)
from unicr.smoothing import Plan

VICTIM = "a file of the one who opens the folder\n"


def unicr(*words: object) -> object:
    return app([str(word) for word in words], exit_on_error=False, print_error=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("red") / "run"
    certify_run(job(), folder).close()
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """Must be as it was when the test ends."""
    file = tmp_path / "victim"
    file.write_text(VICTIM)
    yield file
    assert file.read_text() == VICTIM


def change(folder: Path, statement: str, *values: Any, name: str = "run.sqlite") -> None:
    with closing(sqlite3.connect(folder / name)) as db, db:
        assert db.execute(statement, values).rowcount
    reseal(folder)


def complaints(folder: Path) -> list[str]:
    """What `verify` says, with model and data; a refusal is a complaint too."""
    try:
        with Run(folder) as run:
            return [one.text for one in verify(run, data=data(), model=model())]
    except UnicrError as error:
        return [str(error)]


class TooLong(BaseException):
    """No `except Exception` keeps it."""


@contextmanager
def within(seconds: int = 60) -> Iterator[None]:
    """An end to what takes longer by the clock: who waits for a pipe takes no time of his own."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# What a folder may do to files outside of it


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_lock_is_not_written_through_a_link(
    folder: Path, victim: Path, link: Callable[[Path, Path], None]
) -> None:
    """A lock file empties itself and holds a process's number."""
    link(victim, folder / ".run.sqlite.lock")
    with pytest.raises(RunError, match="link"):
        Lock(folder / "run.sqlite").take()
    with pytest.raises(RunError, match="link"):
        Run(folder, create=True)


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("side", ["-wal", "-shm", "-journal"])
def test_sqlite_writes_nothing_through_a_link_beside_its_file(
    folder: Path, victim: Path, side: str, link: Callable[[Path, Path], None]
) -> None:
    link(victim, folder / f"run.sqlite{side}")
    with pytest.raises(RunError, match="link"):
        Run(folder, create=True)


def test_a_results_file_with_two_names_is_not_written_to(folder: Path, tmp_path: Path) -> None:
    """A hard link: the same results in a folder that nobody meant to change."""
    os.link(folder / "run.sqlite", tmp_path / "other.sqlite")
    with pytest.raises(RunError, match="link"):
        Run(folder, create=True)
    with Run(folder) as run:  # reading does no harm
        assert list(verify(run)) == []


# What a statement covers


@pytest.mark.parametrize(
    "name", ["statement.json.exe", "statement.jsonl", "model.onnx-wal", "sub/statement.json"]
)
def test_files_that_are_called_like_others_are_stated(folder: Path, name: str) -> None:
    from unicr.runs import statement_problems
    from unicr.runs._sign import state

    state(folder)
    assert list(statement_problems(folder)) == []
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("added later")
    assert [name in text for text in statement_problems(folder)] == [True]


def test_a_folder_inside_itself_is_no_plain_file(folder: Path) -> None:
    from unicr.runs._sign import state

    (folder / "again").symlink_to(".", target_is_directory=True)
    with within(), pytest.raises(RunError, match="is not an ordinary file"):
        state(folder)


@pytest.mark.parametrize("kind", ["fifo", "endless"])
@pytest.mark.parametrize(
    "name", ["statement.json", "statement.json.sig", "statement.json.tsr", "commitment.json",
             "commitment.json.tsr", "commitment.json.sig"]
)  # fmt: skip
def test_files_without_an_end_are_not_read(
    folder: Path, tmp_path: Path, name: str, kind: str
) -> None:
    key = tmp_path / "key.pub"
    key.write_text("ssh-ed25519 AAAA")
    for usual in ("statement.json", "commitment.json"):
        (folder / usual).write_text("{}")
    (folder / name).unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to("/dev/zero")
    with within(), memory_of(900), suppress(RunError):
        assert unicr("verify", folder, "--key", key, "--timestamp-ca", key) == 1


# What a folder may cost


def test_a_run_of_a_hundred_million_inputs_costs_nothing(folder: Path) -> None:
    for key, value in (("data_size", 99_999_999), ("skip", 1), ("max", None)):
        change(folder, "UPDATE spec SET value = ? WHERE key = ?", json.dumps(value), key)
    with within(), memory_of(400), Run(folder) as run:
        assert any("99999994 of 99999999" in one.text for one in verify(run))
        with pytest.raises(RunError, match="99999999"):
            evidence(run)


def test_a_pass_of_millions_is_not_begun(tmp_path: Path) -> None:
    wide = load_dataset((np.zeros((1, 1 << 16), dtype=np.float32), np.zeros(1, dtype=np.int64)))
    plan = Plan(n0=2, n=20, alpha=0.05)
    certify_run(job(plan, data=wide, limit=None, lattice=None, norms=(l2,)), tmp_path).close()
    change(tmp_path, "UPDATE spec SET value = ? WHERE key = 'batch'", str(1 << 24))
    with within(), Run(tmp_path) as run, pytest.raises(RunError, match="bytes of memory"):
        list(replay(run, model(), wide, 1))


@pytest.mark.parametrize("rule", ["fixed", "target(radius=0.1)", "pilot(beyond=0.01)", "three"])
@pytest.mark.parametrize("n", [10**9, 10**15])
def test_numbers_of_samples_beyond_all_bounds_are_quick(folder: Path, rule: str, n: int) -> None:
    with Run(folder) as run:
        plan = run.settings("spec")["plan"]
    plan |= {"n": n, "rule": rule}
    change(folder, "UPDATE spec SET value = ? WHERE key = 'plan'", json.dumps(plan))
    with within(), memory_of(900):
        assert complaints(folder)


# Two readers of one folder


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("claims", '"predict": 2, "predict": '),
        ("claims", '"alpha": 0.5, "alpha": '),
        ("transcript", '"n": 7, "n": '),
    ],
)
def test_a_name_that_is_given_twice_is_refused(folder: Path, field: str, text: str) -> None:
    """Python takes the last one, others (SQLite's json_extract) the first."""
    name = text.partition(":")[0]
    change(folder, f"UPDATE results SET {field} = replace({field}, ?, ?)", f"{name}: ", text)
    assert any("twice" in one for one in complaints(folder))


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999", "-0.0"])
@pytest.mark.parametrize("place", ["radius", "p_a", "setting"])
def test_numbers_that_are_none_are_refused(folder: Path, place: str, constant: str) -> None:
    if place == "setting":
        change(folder, "UPDATE spec SET value = ? WHERE key = 'max'", constant)
    elif place == "p_a":
        change(folder, "UPDATE results SET claims = json_set(claims, '$.p_a', 'HERE')")
    else:
        change(folder, "UPDATE results SET claims = json_set(claims, '$.radii[0].radius', 'HERE')")
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("UPDATE results SET claims = replace(claims, '\"HERE\"', ?)", (constant,))
    reseal(folder)
    assert complaints(folder)
    if constant == "-0.0":
        return
    for words in (["score", folder], ["report", folder, "--format", "evidence", "-o", "x.json"],
                  ["export", folder, "-o", "x.csv"]):  # fmt: skip
        with pytest.raises(UnicrError) as caught:
            unicr(*words)
        assert "\n" not in str(caught.value)


def test_a_number_of_four_thousand_digits_is_refused_in_a_line(folder: Path) -> None:
    change(folder, "UPDATE results SET transcript = replace(transcript, '\"counts\": [', ?)",
           '"counts": [' + "9" * 4000 + ", ")  # fmt: skip
    with within():
        assert all("\n" not in one for one in complaints(folder))
        assert complaints(folder)


def test_columns_in_another_order_are_refused(folder: Path) -> None:
    """The seal reads values by name; whoever reads by place would see others."""
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.executescript(
            "CREATE TABLE new (value TEXT NOT NULL, key TEXT PRIMARY KEY) WITHOUT ROWID;"
            "INSERT INTO new SELECT value, key FROM spec; DROP TABLE spec;"
            "ALTER TABLE new RENAME TO spec"
        )
    with pytest.raises(RunError, match="did not make"):
        Run(folder)


@pytest.mark.parametrize(
    "column",
    [
        "idx INTEGER PRIMARY KEY",
        "idx TEXT PRIMARY KEY COLLATE NOCASE",
    ],
)
def test_columns_of_another_kind_are_refused(folder: Path, column: str) -> None:
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'results'").fetchone()
        text = sql.replace("idx INTEGER PRIMARY KEY", column).replace(
            "label INTEGER NOT NULL", "label INTEGER NOT NULL DEFAULT 1"
        )
        db.execute("ALTER TABLE results RENAME TO old")
        db.execute(text)
        db.execute("INSERT INTO results SELECT * FROM old")
        db.execute("DROP TABLE old")
    with pytest.raises(RunError, match="did not make"):
        Run(folder)


def test_a_journal_beside_a_run_is_told(folder: Path) -> None:
    """Other programs would undo what it says before they read; this one would not."""
    (folder / "run.sqlite-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(2040))
    with pytest.raises(RunError, match="journal"):
        Run(folder)


def test_a_write_ahead_log_of_a_stranger_is_in_the_seal(folder: Path) -> None:
    """What stands in it is read, and so sealed: it hides nothing."""
    before = compute_seals(folder)["run.sqlite"]
    db = sqlite3.connect(folder / "run.sqlite")
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("UPDATE results SET label = 0")
    db.commit()
    copy = Path(shutil.copytree(folder, folder.parent / "copy"))
    db.close()
    assert (copy / "run.sqlite-wal").stat().st_size
    assert compute_seals(copy)["run.sqlite"] != before
    assert any("changed after it was sealed" in one for one in complaints(copy))


def test_a_setting_that_stands_there_twice_is_refused(folder: Path) -> None:
    """Who reads all rows gets the last value, who looks the name up another: one seal for both."""
    with closing(sqlite3.connect(folder / "run.sqlite", isolation_level=None)) as db:
        (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'spec'").fetchone()
        rows = db.execute("SELECT * FROM spec").fetchall()
        db.execute("DROP TABLE spec")
        db.execute("CREATE TABLE spec (key TEXT, value TEXT, PRIMARY KEY (key, value)) "
                   "WITHOUT ROWID")  # fmt: skip
        db.executemany("INSERT INTO spec VALUES (?, ?)", [*rows, ("classes", '["a", "b", "c"]')])
        db.execute("PRAGMA writable_schema=ON")
        db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'spec'", (sql,))
        db.execute("PRAGMA writable_schema=RESET")
        for query in ("SELECT value FROM spec WHERE key = 'classes'", "SELECT value FROM spec"):
            assert db.execute(query).fetchone()
    with pytest.raises(RunError, match="is damaged: row not in PRIMARY KEY order for spec"):
        reseal(folder)
    for words in (["verify", folder], ["score", folder], ["seal", folder]):
        with pytest.raises(RunError, match="is damaged"):
            unicr(*words)


@pytest.mark.parametrize("code", ["utf-8", "utf-16"])
@pytest.mark.parametrize("field", ["claims", "transcript", "setting"])
def test_bytes_in_place_of_texts_are_refused(folder: Path, field: str, code: str) -> None:
    """Python reads JSON from bytes of several encodings, SQLite its own binary JSON."""
    table, column = ("spec", "value") if field == "setting" else ("results", field)
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        for (text,) in db.execute(f"SELECT {column} FROM {table} LIMIT 1").fetchall():
            change = f"UPDATE {table} SET {column} = ? WHERE {column} = ?"
            db.execute(change, (text.encode(code), text))
    reseal(folder)
    assert any("is not a JSON text" in one for one in complaints(folder))


FAR = str(10**4000)
ODD: dict[str, tuple[Any, ...]] = {
    "counts": (
        "UPDATE results SET transcript = replace(transcript, ?, ?)",
        '"counts": [',
        f'"counts": [{FAR}, ',
    ),
    "n": ("UPDATE results SET claims = replace(claims, ?, ?)", '"n": ', f'"n": {FAR}'),
    "class": (
        "UPDATE results SET claims = replace(claims, ?, ?)",
        '"predict": ',
        f'"predict": {10**19}',
    ),
    "an incomplete character": (
        "UPDATE spec SET value = ? WHERE key = 'classes'",
        '["\\ud800", "right", "far"]',
    ),
    "version": ("UPDATE execution SET value = ? WHERE key = 'unicr'", str(10**30)),
    "": ("UPDATE spec SET value = ? WHERE key = 'classes'", json.dumps(["😀", "é", "far"])),
}


@pytest.mark.parametrize("kind", ODD)
def test_no_value_ends_in_a_traceback(folder: Path, tmp_path: Path, kind: str) -> None:
    """Numbers that no column holds and texts that no file holds, through all that writes files."""
    change(folder, *ODD[kind])
    refused = 0
    for words in (
        *(["export", folder, "-o", tmp_path / f"x.{end}"] for end in ("csv", "tex", "parquet")),
        ["report", folder, "-o", tmp_path / "x.html"],
        ["report", folder, "--format", "evidence", "-o", tmp_path / "y.html"],
    ):
        with suppress(UnicrError):
            unicr(*words)
            refused -= 1
        refused += 1
    assert (refused > 0) == bool(kind)


@pytest.mark.parametrize("name", ["caf\udce9.npz", "a\u202eb.npz"])
def test_a_file_name_that_no_run_can_hold_is_told_before_the_run(tmp_path: Path, name: str) -> None:
    """The first is Latin-1 on the disk: the run was made, and then nobody could read it."""
    np.savez(tmp_path / name, x=np.zeros((3, 4), np.float32), y=np.zeros(3, np.int64))
    asked = job(data=load_dataset(tmp_path / name), data_spec=str(tmp_path / name))
    with pytest.raises(RunError, match="rename the file"):
        certify_run(asked, tmp_path / "run")
    assert not (tmp_path / "run").exists()


# Files that change while they are used


def test_an_input_that_changes_while_a_run_is_made_ends_it(tmp_path: Path) -> None:
    """It was certified, sealed and told as a success; only who verified it was told."""
    rng, file = np.random.default_rng(1), tmp_path / "x.npy"
    np.save(file, rng.normal(size=(40, 4)).astype(np.float32))
    np.save(tmp_path / "x_labels.npy", np.zeros(40, np.int64))
    honest = file.read_bytes()

    def change_the_last(row: Row) -> None:
        with file.open("r+b") as handle:  # in place, as an editor or a copy may do
            handle.seek(-16, os.SEEK_END)
            handle.write(np.ones(4, np.float32).tobytes())

    asked = job(data=load_dataset(file), skip=1, limit=None, seed=1)
    with pytest.raises(RunError, match=r"input 39 of x\.npy is not the one that the run"):
        certify_run(asked, tmp_path / "run", on_result=change_the_last)
    with Run(tmp_path / "run") as run:
        assert run.stored_seal() is None
    file.write_bytes(honest)
    certify_run(
        job(data=load_dataset(file), skip=1, limit=None, seed=1), tmp_path / "run", resume=True
    ).close()
    with Run(tmp_path / "run") as run:
        assert list(verify(run, data=load_dataset(file))) == []


def test_a_dataset_that_gives_other_values_every_time_is_told_at_once(tmp_path: Path) -> None:
    class Jittered(list[Any]):
        def __getitem__(self, index: Any) -> Any:
            return np.random.default_rng().normal(size=4).astype(np.float32), 0

    with pytest.raises(RunError, match="gives different values each time"):
        certify_run(job(data=load_dataset(Jittered(range(8)))), tmp_path / "run")


# What is shown


def test_an_attack_on_an_input_without_a_class_is_none(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Outcomes that cannot fail, to make the share of failures small."""
    from unicr.lab.attack import AttackStore

    change(
        folder,
        "UPDATE results SET claims = json_set(claims, '$.predict', -1, '$.radii[0].radius', 0.0, "
        "'$.radii[0].proved', 0.0) WHERE idx = 0",
    )
    with AttackStore(folder) as store:
        store.begin("gaussian", {"alpha": 0.01, "votes": 50})
        with store.write():
            for idx in (0, 2):
                store.put(
                    "outcomes", [("gaussian", "2", 1.0, idx, -1, 0.0, 0.0, "[0, 50]", "kept")]
                )
        store.set_seal()
    capsys.readouterr()
    unicr("verify", folder)
    said = capsys.readouterr().out
    assert "attacks.sqlite: gaussian at 1.0 R in l2 on input 0" in said


def test_attacks_that_were_changed_after_their_seal_are_not_shown(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`report` showed them as it found them."""
    from unicr.lab.attack import AttackStore

    with AttackStore(folder) as store:
        store.begin("gaussian", {"alpha": 0.01, "votes": 50})
        with store.write():
            store.put("outcomes", [("gaussian", "2", 1.0, 0, 0, 0.1, 0.1, "[0, 50]", "changed")])
        store.set_seal()
    unicr("report", folder, "-o", tmp_path / "page.html")
    assert '"changed":1' in (tmp_path / "page.html").read_text()
    with closing(sqlite3.connect(folder / "attacks.sqlite")) as db, db:
        db.execute("UPDATE outcomes SET counts = '[50, 0]', verdict = 'kept'")
    capsys.readouterr()
    unicr("report", folder, "-o", tmp_path / "page.html")
    assert '"attacks":[]' in (tmp_path / "page.html").read_text()
    assert "changed after they were sealed" in capsys.readouterr().err


@pytest.mark.parametrize("level", ["NaN", "1e-400", "0", "1.5", "true", '"0.01"', "[0.01]"])
def test_the_level_of_an_attack_is_a_probability(
    folder: Path, level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from unicr.lab.attack import AttackStore

    with AttackStore(folder) as store:
        store.begin("gaussian", {"alpha": 0.01, "votes": 50})
        store.set_seal()
    text = '{"alpha": ' + level + ', "votes": 50}'
    change(folder, "UPDATE settings SET value = ?", text, name="attacks.sqlite")
    capsys.readouterr()
    assert unicr("verify", folder) == 1
    assert "attacks.sqlite: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["\x1b[2J\x1b[H", "\u202egnp.exe", "a\nb", "<img src=x onerror=alert(1)>"]
)
def test_the_name_of_a_folder_commands_no_terminal_and_no_browser(
    folder: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Folders come in archives, and are named by whoever packed them."""
    hostile = folder.rename(tmp_path / name)
    page = tmp_path / "page.html"
    capsys.readouterr()
    unicr("score", hostile)
    unicr("score", hostile, "--format", "latex")
    unicr("verify", hostile)
    unicr("seal", hostile)
    unicr("report", hostile, "-o", page)
    said = capsys.readouterr()
    assert all(c == "\n" or c.isprintable() for c in said.out + said.err)
    assert "<img src=x" not in page.read_text()


def test_names_of_classes_command_nothing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["</script><script>boom()</script>", "=cmd|' /C calc'!A0", "\x1b[2J\u202e"]
    change(folder, "UPDATE spec SET value = ? WHERE key = 'classes'", json.dumps(names))
    page, plain = tmp_path / "page.html", tmp_path / "evidence.html"
    capsys.readouterr()
    unicr("report", folder, "-o", page)
    unicr("report", folder, "--format", "evidence", "-o", plain)
    for ending in ("csv", "tex", "jsonl", "tsv"):
        unicr("export", folder, "-o", tmp_path / f"x.{ending}", "--norm", "2")
    unicr("score", folder)
    unicr("verify", folder)
    said = capsys.readouterr()
    assert all(c == "\n" or c.isprintable() for c in said.out + said.err)
    for text in (page.read_text(), plain.read_text()):
        assert "boom()</script>" not in text
    for ending in ("csv", "tex"):
        text = (tmp_path / f"x.{ending}").read_text()
        assert all(c == "\n" or c.isprintable() for c in text)
    table = (tmp_path / "x.csv").read_text()
    assert ",=cmd" not in table
    assert '"=cmd' not in table


def test_a_path_beyond_all_lengths_is_a_line(tmp_path: Path) -> None:
    for words in (["verify"], ["score"], ["seal"], ["export", "-o", "x.csv"]):
        with pytest.raises((UnicrError, OSError)):
            unicr(words[0], tmp_path / ("a" * 300), *words[1:])
        with pytest.raises((UnicrError, OSError)):
            unicr(words[0], Path("/".join(["a" * 200] * 30)), *words[1:])


# Dates


def test_a_nonce_said_to_be_given_needs_a_dated_commitment(folder: Path, tmp_path: Path) -> None:
    """Who is asked for a date must have been given one of the commitment, not of the run alone."""
    from unicr.cli.verify import check_seals
    from unicr.runs._sign import state

    change(folder, "UPDATE spec SET value = '\"given\"' WHERE key = 'nonce_origin'")
    state(folder)
    roots = tmp_path / "roots.pem"
    roots.write_text("")
    with Run(folder) as run:
        assert any("commitment" in text for text in check_seals(run, None, None, roots))


def test_a_noise_that_is_code_alone_cannot_be_committed_to(tmp_path: Path) -> None:
    """Two laws that agree at every length that a commitment could write down, and nowhere else:
    whoever knows the nonce would choose between them.
    """
    made = "noise.from_radial_density(lambda r: -r * {slope}, dim=4)"
    code = f"from unicr import noise\n{{name}} = {made}\n"
    (tmp_path / "law.py").write_text(code.format(name="law", slope=1))
    law = parse(f"{tmp_path / 'law.py'}:law")
    with pytest.raises(RunError, match="could be changed after the nonce is known"):
        write_commitment(job(noise=law, norms=(l2,), nonce="3e" * 32), tmp_path / "out")
    assert not (tmp_path / "out").exists()
