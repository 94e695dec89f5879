"""Outcomes of attacks in one SQLite file beside the run: what is done is not done again.

Every attack is stored with its settings; outcomes made with other settings are never mixed in.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from unicr.attack._verdict import Verdict, agrees
from unicr.errors import RunError
from unicr.runs import changes

FILE = "attacks.sqlite"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (attack TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outcomes (
    attack TEXT NOT NULL,
    norm TEXT NOT NULL,
    factor REAL NOT NULL,
    idx INTEGER NOT NULL,
    class INTEGER NOT NULL,
    bound REAL NOT NULL,
    length REAL NOT NULL,
    counts TEXT NOT NULL,
    verdict TEXT NOT NULL,
    PRIMARY KEY (attack, norm, factor, idx)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Outcome:
    """One perturbed input: how long δ may be and is, and the votes at x + δ."""

    attack: str
    norm: str
    factor: float
    idx: int
    certified: int
    bound: float
    length: float
    counts: tuple[int, ...]
    verdict: Verdict

    @property
    def held(self) -> bool:
        """Whether the certified class still has the most votes."""
        return agrees(self.counts, self.certified)


class AttackStore:
    """The attacks on one run; one writer at a time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        try:
            self._db = sqlite3.connect(self.path, timeout=30, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise RunError(f"cannot open {self.path}: {error}") from None

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> AttackStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, attack: str, settings: dict[str, Any], *, again: bool = False) -> None:
        """Take up an attack: with the settings it was begun with, or from nothing (`again`)."""
        if again:
            self._db.execute("DELETE FROM outcomes WHERE attack = ?", (attack,))
            self._db.execute("DELETE FROM settings WHERE attack = ?", (attack,))
        found = self._db.execute("SELECT value FROM settings WHERE attack = ?", (attack,))
        row = found.fetchone()
        if row is None:
            self._db.execute("INSERT INTO settings VALUES (?, ?)", (attack, json.dumps(settings)))
            return
        old, new = json.loads(row[0]), json.loads(json.dumps(settings))
        if differing := changes(old, new):
            raise RunError(
                f"{self.path} has {attack} with other settings ({differing}): "
                "use --again to throw those outcomes away"
            )

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Write the outcomes of one task, all or none."""
        rows = []
        for one in outcomes:
            rows.append(tuple({**asdict(one), "counts": json.dumps(one.counts)}.values()))
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(f"INSERT OR REPLACE INTO outcomes VALUES ({_MARKS})", rows)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise RunError(f"cannot write {self.path}: {error}") from None

    def outcomes(self) -> list[Outcome]:
        """Everything stored, by attack, norm, factor and input."""
        try:
            rows = self._db.execute("SELECT * FROM outcomes ORDER BY attack, norm, factor, idx")
            return [_outcome(row) for row in rows]
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise RunError(f"cannot read {self.path}: {error}") from None


def _outcome(row: Sequence[Any]) -> Outcome:
    values = dict(zip([one.name for one in fields(Outcome)], row, strict=True))
    return Outcome(**{**values, "counts": tuple(json.loads(values["counts"]))})


_MARKS = ", ".join("?" * len(fields(Outcome)))
