"""One SQLite file of results: safe against kill −9, readable where nothing may be written, sealed.

A writer commits each result in a transaction of its own, with write-ahead logging. A reader leaves
the folder as it is: also on read-only media, and where a run was killed. The seal is one digest of
everything in the file.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

from unicr.errors import UNREADABLE, RunError, UnicrError
from unicr.files import read_stored
from unicr.folder import Lock, refuse_links

SEALED = "sealed"  # the table with the seal, which the seal does not cover
LONGEST_VALUE = 100_000_000  # bytes of one value
# Kind, name and text of everything in a schema, but for what SQLite itself adds, which has no text.
OBJECTS = (
    "SELECT type, name, coalesce(sql, '') FROM sqlite_master "
    "WHERE NOT (substr(name, 1, 7) = 'sqlite_' AND coalesce(sql, '') = '')"
)


class Database:
    """`path` opened for reading, or made and written to (`create`), with the tables of a subclass.

    None is a database in memory. Anything that goes wrong is a RunError that names the file.
    """

    schema: ClassVar[str] = ""  # "": any of our files, to be sealed
    tables: ClassVar[frozenset[str]]
    synchronous: ClassVar[str] = "NORMAL"
    shared: ClassVar[bool] = False  # whether several processes may write at the same time

    def __init__(self, path: Path | None, *, create: bool = False) -> None:
        self.path = path
        self._open = ExitStack()
        # one writer, from here until the seal: a second one would draw and seal the same inputs
        self._writer = None if path is None or self.shared or not create else Lock(path)
        try:
            with self._open as opening, self._name_errors("open"):
                self._db = self._connect(opening, create)
                self._db.row_factory = sqlite3.Row
                self._db.execute("PRAGMA trusted_schema=OFF")  # the file may be a stranger's
                self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
                self._check_schema()
                if create:
                    self._begin()
                else:
                    self._check_tables()
                self._open = opening.pop_all()
        except FileExistsError as error:
            raise RunError(f"{error.filename} is a file, but a folder is needed") from None
        except OSError as error:
            raise RunError(f"cannot open {path}: {error}") from None

    def _connect(self, opening: ExitStack, create: bool) -> sqlite3.Connection:
        if self.path is None or create:
            if self.path is not None:
                refuse_links(self.path, *_list_beside(self.path))
                self.path.parent.mkdir(parents=True, exist_ok=True)
            if self._writer is not None:
                self._writer.take()
                opening.callback(self._writer.release)
            name, uri = str(self.path or ":memory:"), False
        else:
            name, uri = self._readable(self.path, opening), True
        db = sqlite3.connect(
            name, uri=uri, timeout=120, isolation_level=None, check_same_thread=False
        )
        opening.callback(db.close)
        return db

    def _readable(self, path: Path, opening: ExitStack) -> str:
        """The address of something that can be read without writing beside it.

        Without a write-ahead log the file is all there is. With one there is a writer, or there was
        one that was killed: where SQLite may not write its index beside it, a copy is read.
        """
        if not path.is_file():
            raise RunError(f"{path.parent} is not a run: it has no file {path.name}")
        if not path.stat().st_size:
            raise RunError(f"{path} is empty: no result was ever written to it")
        log, index, journal = _list_beside(path)
        refuse_links(log, index, journal)  # SQLite writes to them, even where it only reads
        if journal.is_file() and journal.stat().st_size:
            raise RunError(
                f"{journal} exists, so the last write to this run did not end, and other programs "
                "would see other results. If you made the run, continue it with --resume; "
                "otherwise delete that file"
            )
        address = f"{path.absolute().as_uri()}?mode=ro"
        if not log.is_file() or not log.stat().st_size:
            return f"{address}&immutable=1"
        try:
            with closing(sqlite3.connect(address, uri=True)) as attempt:
                attempt.execute("SELECT 1 FROM sqlite_master").fetchall()
            return address
        except sqlite3.OperationalError:
            copy = Path(opening.enter_context(tempfile.TemporaryDirectory())) / path.name
            shutil.copyfile(path, copy)
            shutil.copyfile(log, copy.with_name(log.name))
            return copy.as_uri()

    def _begin(self) -> None:
        self._db.execute("BEGIN")  # one moment: another process may write meanwhile
        there = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master")}
        stored = self.stored_seal() if SEALED in there else None
        broken = stored is not None and stored != self.seal()
        self._db.execute("COMMIT")
        if broken:
            raise RunError(
                f"{self.path} was changed after it was sealed, so nothing can be added to it"
            )
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute(f"PRAGMA synchronous={self.synchronous}")
        if not {*self.tables, SEALED} <= there:  # all tables at once, or none
            seal = f"CREATE TABLE IF NOT EXISTS {SEALED} (seal TEXT NOT NULL)"
            self._db.executescript(f"BEGIN IMMEDIATE; {self.schema}; {seal}; COMMIT")

    def _check_schema(self) -> None:
        """Only our own tables, word for word as we make them: nothing computed, no triggers.

        Columns in another order, of another type or collation would say other things to other
        readers under the same seal.
        """
        with closing(sqlite3.connect(":memory:")) as ours:
            ours.executescript(f"{self.schema}; CREATE TABLE {SEALED} (seal TEXT NOT NULL)")
            known = {(kind, name): sql for kind, name, sql in ours.execute(OBJECTS)}
            for kind, name, sql in self._db.execute(OBJECTS).fetchall():
                if known.get((kind, name)) == sql:
                    continue
                if kind == "table" and (kind, name) in known:
                    columns = _list_columns(ours, name)
                    missing = [
                        column for column in columns if column not in _list_columns(self._db, name)
                    ]
                    if missing and set(_list_columns(self._db, name)) < set(columns):
                        raise RunError(f"{self.path}: the table {name} has no column {missing[0]}")
                any_of_ours = kind == "table" and not self.schema and name.isidentifier()
                if any_of_ours and all(
                    column.isidentifier() for column in _list_columns(self._db, name)
                ):
                    continue
                raise RunError(f"{self.path} contains a {kind} {name!r} that unicr did not make")

    def _check_tables(self) -> None:
        tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
        there = {name for (name,) in self._db.execute(tables)}
        if missing := {*self.tables, SEALED} - there:
            raise RunError(f"{self.path} has no table {min(missing)}, so it is not a run")

    def close(self) -> None:
        """Close the file."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _name_errors(self, verb: str) -> Iterator[None]:
        """SQLite's errors, and values that are not what they should be, as one line."""
        try:
            yield
        except (sqlite3.Error, *UNREADABLE) as error:
            if isinstance(error, UnicrError):
                raise
            raise RunError(f"cannot {verb} {self.path}: {error}") from None

    @contextmanager
    def write(self) -> Iterator[None]:
        """BEGIN IMMEDIATE … COMMIT, all or nothing. What is read inside stays true until the end.

        The seal of what was there before goes.
        """
        if self._writer is not None:
            self._writer.take()
        with self._name_errors("write"):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                # In the same transaction as the change: no moment has new rows under an old seal.
                self._db.execute(f"DELETE FROM {SEALED}")
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def read(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """All rows of a query."""
        with self._name_errors("read"):
            return self._db.execute(query, values).fetchall()

    def put(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows, in place of those with the same key; inside `write`."""
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._db.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)

    def settings(self, table: str) -> dict[str, Any]:
        """A table of names and JSON values."""
        with self._name_errors("read"):
            return {key: read_stored(value) for key, value in self.read(f"SELECT * FROM {table}")}

    def seal(self) -> str:
        """SHA-256 over every value of every row in key order: who changes one changes the seal.

        A file whose tables are out of order is refused: a key that stands there twice has one value
        for who reads all rows, and another for who looks it up.
        """
        ((found,),) = self.read("PRAGMA integrity_check(1)")
        if found != "ok":
            raise RunError(f"{self.path} is damaged: {found}")
        digest = hashlib.sha256()
        for (table,) in self.read(
            "SELECT name FROM sqlite_master WHERE type = 'table' "
            r"AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name != ? ORDER BY name",
            (SEALED,),
        ):
            name = '"' + table.replace('"', '""') + '"'
            keys = [c["name"] for c in self.read(f"PRAGMA table_info({name})") if c["pk"]]
            order = ", ".join('"' + key.replace('"', '""') + '"' for key in keys) or "rowid"
            digest.update(canonical({"table": table}))
            with self._name_errors("read"):
                for row in self._db.execute(f"SELECT * FROM {name} ORDER BY {order}"):
                    digest.update(hashlib.sha256(canonical(dict(row))).digest())
        return digest.hexdigest()

    def set_seal(self) -> str:
        """Seal what is there, and say how."""
        with self.write():
            seal = self.seal()
            self._db.execute(f"INSERT INTO {SEALED} VALUES (?)", (seal,))
        if self._writer is not None:
            self._writer.release()
        return seal

    def stored_seal(self) -> str | None:
        """The seal that the last writer left; None if it did not finish."""
        seals = self.read(f"SELECT seal FROM {SEALED}")
        return str(seals[0][0]) if len(seals) == 1 else None


def _list_columns(db: sqlite3.Connection, table: str) -> list[str]:
    """The columns of a table."""
    return [str(row[1]) for row in db.execute(f'PRAGMA table_xinfo("{table}")').fetchall()]


def _list_beside(path: Path) -> list[Path]:
    """The files that SQLite keeps beside its own: write-ahead log, its index, rollback journal."""
    return [path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal")]


def canonical(values: Mapping[str, Any]) -> bytes:
    """One way to write plain values: sorted names, no spaces, floats in full, bytes in hex."""
    return json.dumps(
        values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_hex
    ).encode("utf-8", "surrogatepass")


def _hex(value: Any) -> dict[str, str]:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    raise TypeError(f"{type(value).__name__} cannot be sealed")
