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
from unicr.folder import Lock

SEALED = "sealed"  # the table with the seal, which the seal does not cover
LONGEST_VALUE = 100_000_000  # bytes of one value


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
            with self._open as opening, self._named("open"):
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
            raise RunError(f"{error.filename} is a file: a folder is needed there") from None
        except OSError as error:
            raise RunError(f"cannot open {path}: {error}") from None

    def _connect(self, opening: ExitStack, create: bool) -> sqlite3.Connection:
        if self.path is None or create:
            if self.path is not None:
                if self.path.is_symlink():
                    raise RunError(f"{self.path} is a link: nothing is written through it")
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
            raise RunError(f"{path.parent} is not a run: it has no {path.name}")
        if not path.stat().st_size:
            raise RunError(f"{path} is empty: nothing was ever written to it")
        log = path.with_name(path.name + "-wal")
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
        stored = self.stored_seal()
        broken = stored is not None and stored != self.seal()
        self._db.execute("COMMIT")
        if broken:
            raise RunError(f"{self.path} was changed after it was sealed: nothing is added to it")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute(f"PRAGMA synchronous={self.synchronous}")
        if {*self.tables, SEALED} <= there:
            return  # an opened file keeps its seal until something is written
        with self.writing():
            for statement in self.schema.split(";"):
                self._db.execute(statement)
            self._db.execute(f"CREATE TABLE IF NOT EXISTS {SEALED} (seal TEXT NOT NULL)")

    def _check_schema(self) -> None:
        """Only our own tables, with their keys and plain columns: nothing computed, no triggers.

        Every column of ours must be there, and none that we do not know.
        """
        with closing(sqlite3.connect(":memory:")) as ours:
            ours.executescript(f"{self.schema}; CREATE TABLE {SEALED} (seal TEXT NOT NULL)")
            known = _objects(ours)
            for kind, name, sql in _objects(self._db):
                own = [(k, s) for k, n, s in known if n == name]
                if kind == "table" and own and not sql.upper().startswith("CREATE VIRTUAL"):
                    theirs, columns = _columns(self._db, name), _columns(ours, name)
                    keys = [[c for c, pk in of.items() if pk] for of in (theirs, columns)]
                    if keys[0] == keys[1] and set(theirs) == set(columns):
                        continue
                    missing = sorted(set(columns) - set(theirs))
                    if missing and keys[0] == keys[1] and set(theirs) < set(columns):
                        raise RunError(f"{self.path}: the table {name} has no column {missing[0]}")
                if (kind, sql) in own:
                    continue
                if kind == "table" and not self.schema:
                    columns = _columns(self._db, name) if name.isidentifier() else {"": 0}
                    if all(column.isidentifier() for column in columns):
                        continue
                raise RunError(f"{self.path} holds a {kind} {name!r} that unicr did not make")

    def _check_tables(self) -> None:
        tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
        there = {name for (name,) in self._db.execute(tables)}
        if missing := self.tables - there:
            raise RunError(f"{self.path} has no table {min(missing)}: it holds something else")

    def close(self) -> None:
        """Close the file."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _named(self, verb: str) -> Iterator[None]:
        """SQLite's errors, and values that are not what they should be, as one line."""
        try:
            yield
        except (sqlite3.Error, *UNREADABLE) as error:
            if isinstance(error, UnicrError):
                raise
            raise RunError(f"cannot {verb} {self.path}: {error}") from None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """BEGIN IMMEDIATE … COMMIT, all or nothing. What is read inside stays true until the end.

        The seal of what was there before goes.
        """
        if self._writer is not None:
            self._writer.take()
        with self._named("write"):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                if self._sealable:
                    self._db.execute(f"DELETE FROM {SEALED}")
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def read(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """All rows of a query."""
        with self._named("read"):
            return self._db.execute(query, values).fetchall()

    def put(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows, in place of those with the same key; inside `writing`."""
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._db.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)

    def settings(self, table: str) -> dict[str, Any]:
        """A table of names and JSON values."""
        with self._named("read"):
            return {key: json.loads(value) for key, value in self.read(f"SELECT * FROM {table}")}

    def seal(self) -> str:
        """SHA-256 over every value of every row in key order: who changes one changes the seal."""
        digest = hashlib.sha256()
        for (table,) in self.read(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
            "AND name != ? ORDER BY name",
            (SEALED,),
        ):
            name = '"' + table.replace('"', '""') + '"'
            keys = [c["name"] for c in self.read(f"PRAGMA table_info({name})") if c["pk"]]
            order = ", ".join('"' + key.replace('"', '""') + '"' for key in keys) or "rowid"
            digest.update(canonical({"table": table}))
            with self._named("read"):
                for row in self._db.execute(f"SELECT * FROM {name} ORDER BY {order}"):
                    digest.update(hashlib.sha256(canonical(dict(row))).digest())
        return digest.hexdigest()

    def set_seal(self) -> str:
        """Seal what is there, and say how."""
        with self.writing():
            seal = self.seal()
            self._db.execute(f"INSERT INTO {SEALED} VALUES (?)", (seal,))
        if self._writer is not None:
            self._writer.release()
        return seal

    @property
    def _sealable(self) -> bool:
        """Whether the file has a place for a seal: one of an older version has none."""
        return bool(self.read("SELECT 1 FROM sqlite_master WHERE name = ?", (SEALED,)))

    def stored_seal(self) -> str | None:
        """The seal that the last writer left; None where it did not finish, or is older than it."""
        if not self._sealable:
            return None
        found = self.read(f"SELECT seal FROM {SEALED}")
        return str(found[0][0]) if len(found) == 1 else None


def _objects(db: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Kind, name and text of everything in a schema, but for what SQLite itself adds."""
    found = db.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()
    return [
        (str(kind), str(name), str(sql))
        for kind, name, sql in found
        if not (str(name).startswith("sqlite_") and not sql)
    ]


def _columns(db: sqlite3.Connection, table: str) -> dict[str, int]:
    """The columns of one of our tables with their place in the key; a computed one is refused."""
    rows = db.execute(f'PRAGMA table_xinfo("{table}")').fetchall()
    return {str(row[1]) if not row[6] else f"computed {row[1]}": int(row[5]) for row in rows}


def canonical(values: Mapping[str, Any]) -> bytes:
    """One way to write plain values: sorted names, no spaces, floats in full, bytes in hex."""
    return json.dumps(
        values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_hex
    ).encode("utf-8", "surrogatepass")


def _hex(value: Any) -> dict[str, str]:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    raise TypeError(f"{type(value).__name__} cannot be sealed")
