"""One run: a folder with its settings and one row for each input, written as results are made."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from unicr.errors import UNREADABLE, RunError, UnicrError
from unicr.runs._database import Database
from unicr.runs._manifest import Manifest
from unicr.smoothing import Certificate, NormRadius
from unicr.tables import Tabular

if TYPE_CHECKING:
    from unicr.metrics import Scores
    from unicr.runs._reopen import Own
    from unicr.runs._verify import Choice, Problem

FILE = "run.sqlite"
ENVIRONMENT = "environment: "  # begins the reason of a failure that is not the input's
OLDER = ("not stored: ", ENVIRONMENT)
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
    noise TEXT,
    more TEXT
)
"""
CERTIFICATE = ("p_a", "p_b", "n0", "n", "alpha", "selection", "counts")
OWN = {"predict", "radii", "noise", "seed", *CERTIFICATE}  # in columns, or the manifest's


_OLDER = {"lattice": None, "moved": False, "charge": None}  # of real-valued noise


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

    def proved(self, norm: str) -> float:
        """How much of that radius is proved."""
        one = None if self.certificate is None else self.certificate.in_norm(norm)
        return 0.0 if one is None else min(one.radius, one.proved)


class Run(Database, Tabular):
    """The run in `folder`. One writer (`create`); readers may look at any time.

    A table too: `to_frame()`, `to_csv()`, `to_latex()`, or shown by a notebook.
    """

    schema = _SCHEMA
    tables = frozenset({"manifest", "results"})

    def __init__(self, folder: Path | str, *, create: bool = False) -> None:
        self.folder = Path(folder)
        super().__init__(self.folder / FILE, create=create)

    def _begin(self) -> None:
        super()._begin()
        present = {name for (_, name, *_) in self._db.execute("PRAGMA table_info(results)")}
        for later in ("noise", "more"):
            if later not in present:
                self._db.execute(f"ALTER TABLE results ADD COLUMN {later} TEXT")

    @property
    def started(self) -> bool:
        """Whether the run has its settings."""
        return bool(self.settings("manifest"))

    @cached_property
    def manifest(self) -> Manifest:
        """The settings that the run was started with."""
        values = self.settings("manifest")
        if not values:
            raise RunError(f"{self.folder} has no manifest: it was never started")
        return Manifest.from_dict(values)

    def set_manifest(self, manifest: Manifest) -> None:
        """Write the settings of a run."""
        values = [(key, json.dumps(value)) for key, value in manifest.to_dict().items()]
        with self.writing():
            self.put("manifest", values)
        vars(self).pop("manifest", None)

    def add(self, row: Row) -> None:
        """Write one result, in a transaction of its own."""
        c = row.certificate
        radii = json.dumps([r.to_dict() for r in c.radii] if c else [])
        bounds = (c.p_a, c.p_b, c.n0, c.n, c.alpha) if c else (None,) * 5
        votes = (json.dumps(c.selection), json.dumps(c.counts)) if c else (None, None)
        more = {f.name: getattr(c, f.name) for f in fields(c) if f.name not in OWN} if c else {}
        more = {} if not more or more == _OLDER else more
        head = (row.idx, row.label, row.status, row.reason, row.predict)
        tail = (c.noise if c else None, json.dumps(more) if more else None)
        with self.writing():
            self.put(
                "results", [(*head, *bounds, *votes, radii, row.input_hash, row.seconds, *tail)]
            )

    def done(self, *, retry: bool = False) -> set[int]:
        """Inputs that are not to be done again: all that have a result, but failures of the
        environment (a full disk, a killed worker, no memory), and with `retry` no failure at all.
        """
        found = self.read("SELECT idx, status, reason FROM results")
        again = {
            idx
            for idx, status, reason in found
            if status == "failed" and (retry or str(reason).startswith(OLDER))
        }
        return {idx for idx, _, _ in found} - again

    def records(self) -> list[sqlite3.Row]:
        """The rows as they are stored, in the order of the inputs."""
        return self.read("SELECT * FROM results ORDER BY idx")

    def row(self, record: sqlite3.Row) -> Row:
        """What a stored row says; ValueError where it says nothing that makes sense."""
        row = read_row(dict(record), self.manifest.plan.measure.certificate)
        if row.certificate is None:
            return row
        return replace(row, certificate=replace(row.certificate, seed=self.manifest.seed))

    def rows(self) -> Iterator[Row]:
        """Every result, in the order of the inputs."""
        for record in self.records():
            try:
                yield self.row(record)
            except UNREADABLE as error:
                raise RunError(f"cannot read {self.path}: input {record['idx']}: {error}") from None

    def readable(self) -> list[Row]:
        """The results that make sense, where others may not."""
        found = []
        for record in self.records():
            with suppress(*UNREADABLE):
                found.append(self.row(record))
        return found

    def scores(self, norm: str) -> Scores:
        """Radii, hits and abstentions in one norm."""
        from unicr.runs._scores import scores_of

        return scores_of(list(self.rows()), norm, self.folder.name, self.manifest.plan.alpha)

    def table(self) -> list[dict[str, Any]]:
        """Every result with what is needed to check it again, as plain values."""
        from unicr.runs._export import table

        return table(self)

    def plain_rows(self) -> list[dict[str, Any]]:
        """One row of plain values for each input, with columns for each norm and class names."""
        from unicr.runs._export import flat

        return [flat(row, self.manifest) for row in self.rows()]

    def __repr__(self) -> str:
        about = f"{self.manifest.model}, {self.manifest.data}" if self.started else "not started"
        return f"Run({str(self.folder)!r}: {about})"

    def replay(self, count: int, own: Own, search: Choice | None = None) -> list[Problem]:
        """Do `count` inputs again with the model and data that `own` leads to: what differs."""
        from unicr.runs._verify import Problem, replay

        model = own.open_model(self.manifest)
        data = own.open_data(self.manifest, model)
        again = replay(self, model, data, count, own=own, search=search)
        return [Problem(idx, text) for idx, text in again if text is not None]


def load_run(folder: str | Path) -> Run:
    """The run in a folder, to be read: its settings, rows, scores, and a table of all of it."""
    return Run(Path(folder).expanduser())


def read_row(r: dict[str, Any], kind: type[Certificate] = Certificate) -> Row:
    """A row from its stored values. What could not have been written is a ValueError."""
    if not (isinstance(r["idx"], int) and isinstance(r["label"], int) and r["label"] >= -1):
        raise ValueError(f"input {r['idx']!r} with label {r['label']!r}")
    if not (isinstance(r["seconds"], float) and 0 <= r["seconds"] < math.inf):
        raise ValueError(f"it took {r['seconds']!r} seconds")
    if not isinstance(r["input_hash"], str):
        raise ValueError("its input has no hash")
    certificate = None
    if r["status"] != "failed":
        certificate = _certificate(r, kind)
    elif not isinstance(r["reason"], str) or any(r[name] is not None for name in CERTIFICATE):
        raise ValueError("it is marked as failed, without a reason or with a certificate")
    row = Row(r["idx"], r["label"], r["input_hash"], r["seconds"], certificate, r["reason"])
    if (row.status, row.predict) != (r["status"], r["predict"]):
        raise ValueError(f"status {r['status']!r} with class {r['predict']!r}")
    return row


def _certificate(r: dict[str, Any], kind: type[Certificate]) -> Certificate:
    if r["reason"] is not None:
        raise ValueError(f"it has a certificate, and failed: {r['reason']!r}")
    if not all(isinstance(r[name], int) for name in ("predict", "n0", "n")):
        raise ValueError(f"class {r['predict']!r}, n0 {r['n0']!r}, n {r['n']!r}")
    if not all(isinstance(r[name], float) for name in ("p_a", "p_b", "alpha")):
        raise ValueError(f"p_A {r['p_a']!r}, p_B {r['p_b']!r}, alpha {r['alpha']!r}")
    try:
        radii = tuple(NormRadius.from_dict(v) for v in json.loads(r["radii"]))
        if not all(v >= 0 for one in radii for v in (one.radius, one.proved, one.searched)):
            raise ValueError(f"its radii are {r['radii']}")
        more = json.loads(r.get("more") or "{}")
        return kind(
            **{name: r[name] for name in ("predict", "p_a", "p_b", "n0", "n", "alpha")},
            selection=_counts(r["selection"]),
            counts=_counts(r["counts"]),
            radii=radii,
            noise=r.get("noise"),
            **more,
        )
    except (UnicrError, *UNREADABLE) as error:
        raise ValueError(f"its certificate cannot be read: {error!r}") from None


def _counts(text: Any) -> tuple[int, ...]:
    values = json.loads(text)
    if not isinstance(values, list) or not all(type(v) is int and v >= 0 for v in values):
        raise ValueError(f"{text!r} are no counts")
    return tuple(values)
