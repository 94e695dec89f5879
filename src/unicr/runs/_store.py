"""Results of a run in one SQLite file: written as they are made, safe against kill −9.

Write-ahead logging and one transaction per input: what was committed survives, what was in flight
is simply not there. The settings of the run stand in the same file as its manifest.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from unicr.errors import RunError
from unicr.smoothing import Certificate, NormRadius

FILE = "run.sqlite"
EVERY_INPUT = "every input"  # scope of a run with one noise: one g, certified at many points
THIS_INPUT = "this input's noise"  # scope of a run with a noise per input
Status = Literal["certified", "abstained", "failed"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS manifest (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
    idx INTEGER PRIMARY KEY,
    label INTEGER NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    predict INTEGER NOT NULL,
    p_a REAL, p_b REAL,
    n0 INTEGER, n INTEGER, alpha REAL,
    selection TEXT, counts TEXT,
    radii TEXT NOT NULL,
    input_hash TEXT NOT NULL,
    seconds REAL NOT NULL,
    noise TEXT
);
"""


def in_todays_words(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an older version: `sound` said whether radii were proved, not `searched`."""
    values = dict(settings)
    if "sound" in values:
        values["searched"] = not values.pop("sound")
    return values


def changes(
    old: Mapping[str, Any], new: Mapping[str, Any], free: frozenset[str] = frozenset()
) -> str:
    """What differs between the settings of a folder and those given now; "" where nothing does."""
    old = in_todays_words(old)
    differing = sorted(k for k in {*old, *new} - free if old.get(k) != new.get(k))
    return "; ".join(f"{k}: {old.get(k)!r} there, {new.get(k)!r} now" for k in differing)


@dataclass(frozen=True)
class Row:
    """One input of a run: its certificate, or why there is none."""

    idx: int
    label: int
    input_hash: str
    seconds: float
    certificate: Certificate | None
    reason: str | None = None

    @property
    def status(self) -> Status:
        """certified, abstained or failed."""
        if self.certificate is None:
            return "failed"
        return "abstained" if self.certificate.abstained else "certified"

    @property
    def predict(self) -> int:
        """The certified class, −1 where there is none."""
        return -1 if self.certificate is None else self.certificate.predict

    @property
    def correct(self) -> bool:
        """Whether the certified class is the label."""
        return self.certificate is not None and self.predict == self.label and self.label >= 0

    def radius(self, norm: str) -> float:
        """The certified radius in one norm, 0 where there is none."""
        return 0.0 if self.certificate is None else self.certificate.radius(norm)


class Store:
    """The SQLite file of one run folder. One writer; readers may look at any time."""

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        self.path = folder / FILE
        if not create and not self.path.is_file():
            raise RunError(f"{folder} is not a run: it has no {FILE}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=30, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            if create:
                self._db.executescript(_SCHEMA)
                self._add_missing_columns()
        except (OSError, sqlite3.DatabaseError) as error:
            raise RunError(f"cannot open {self.path}: {error}") from None

    def _add_missing_columns(self) -> None:
        """A run of an older version is gone on with: it gets the columns that came later."""
        present = {name for (_, name, *_) in self._db.execute("PRAGMA table_info(results)")}
        if "noise" not in present:
            self._db.execute("ALTER TABLE results ADD COLUMN noise TEXT")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def manifest(self) -> dict[str, Any]:
        """The settings that the run was started with, empty for a new one."""
        try:
            rows = self._db.execute("SELECT key, value FROM manifest ORDER BY key")
            return in_todays_words({key: json.loads(value) for key, value in rows})
        except (sqlite3.DatabaseError, ValueError) as error:
            raise RunError(f"cannot read {self.path}: {error}") from None

    def set_manifest(self, values: dict[str, Any]) -> None:
        """Write the settings of a new run."""
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO manifest VALUES (?, ?)",
                [(key, json.dumps(value)) for key, value in values.items()],
            )

    def add(self, row: Row) -> None:
        """Write one result, in a transaction of its own."""
        c = row.certificate
        radii = json.dumps([r.to_dict() for r in c.radii] if c else [])
        bounds = (c.p_a, c.p_b, c.n0, c.n, c.alpha) if c else (None,) * 5
        votes = (json.dumps(c.selection), json.dumps(c.counts)) if c else (None, None)
        head = (row.idx, row.label, row.status, row.reason, row.predict)
        noise = c.noise if c else None
        values = (*head, *bounds, *votes, radii, row.input_hash, row.seconds, noise)
        with self._transaction():
            marks = ", ".join("?" * len(values))
            self._db.execute(f"INSERT OR REPLACE INTO results VALUES ({marks})", values)

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db, self.path)

    def done(self) -> set[int]:
        """The inputs that have a result, failed ones included."""
        return {idx for (idx,) in self._db.execute("SELECT idx FROM results")}

    def rows(self) -> Iterator[Row]:
        """Every result, in the order of the inputs."""
        self._db.row_factory = sqlite3.Row
        try:
            for r in self._db.execute("SELECT * FROM results ORDER BY idx"):
                yield _row(r)
        except (sqlite3.DatabaseError, ValueError, TypeError, KeyError) as error:
            raise RunError(f"cannot read {self.path}: {error}") from None
        finally:
            self._db.row_factory = None


class _Transaction:
    """BEGIN IMMEDIATE … COMMIT, rolled back on any error; a full disk is named as such."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db, self._path = db, path

    def __enter__(self) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise RunError(f"cannot write {self._path}: {error}") from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        failure: BaseException | None = error
        if kind is None:
            try:
                self._db.execute("COMMIT")
            except sqlite3.OperationalError as refused:
                failure = refused
        if failure is None:
            return
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        if isinstance(failure, sqlite3.OperationalError):
            raise RunError(f"cannot write {self._path}: {failure}") from None


def _row(r: sqlite3.Row) -> Row:
    certificate = None
    if r["status"] != "failed":
        certificate = Certificate(
            predict=r["predict"],
            p_a=r["p_a"],
            p_b=r["p_b"],
            n0=r["n0"],
            n=r["n"],
            alpha=r["alpha"],
            selection=tuple(json.loads(r["selection"])),
            counts=tuple(json.loads(r["counts"])),
            radii=tuple(NormRadius.from_dict(v) for v in json.loads(r["radii"])),
            noise=dict(r).get("noise"),
        )
    return Row(r["idx"], r["label"], r["input_hash"], r["seconds"], certificate, r["reason"])
