"""One run: a folder with its settings and one row for each input, written as results are made."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unicr.errors import UNREADABLE, CertifyError, RunError, UnicrError
from unicr.files import read_stored
from unicr.metrics import Scores
from unicr.runs._database import Database
from unicr.runs._spec import Execution, Spec
from unicr.smoothing import Certificate, Certificates, NormRadius, Transcript
from unicr.tables import Tabular
from unicr.values import LARGEST

FILE = "run.sqlite"
ENVIRONMENT = "environment: "  # begins the reason of a failure that is not the input's
Status = Literal["certified", "abstained", "failed"]
# `claims` are the fields of a certificate, `transcript` its questions and answers, from which all
# claims follow again. An input without claims failed, for a `reason`.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS spec (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS execution (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
    idx INTEGER PRIMARY KEY,
    label INTEGER NOT NULL,
    input_hash TEXT NOT NULL,
    seconds REAL NOT NULL,
    reason TEXT,
    claims TEXT,
    transcript TEXT
)
"""
ELSEWHERE = {"transcript", "seed"}  # fields of a certificate with a column, or in the spec


@dataclass(frozen=True)
class Row:
    """One input of a run: its certificate, or the reason why it has none."""

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

    def refuse_failure(self) -> None:
        """Raise what a failed input failed of."""
        if self.certificate is None:
            raise CertifyError(f"input {self.idx}: {self.reason}")

    @property
    def predict(self) -> int:
        """The certified class, or −1."""
        return -1 if self.certificate is None else self.certificate.predict

    @property
    def correct(self) -> bool:
        """Whether the certified class is the label."""
        return self.certificate is not None and self.predict == self.label and self.label >= 0

    def radius(self, norm: str) -> float:
        """The certified radius in one norm, or 0."""
        return 0.0 if self.certificate is None else self.certificate.radius(norm)

    def proved(self, norm: str) -> float:
        """How much of that radius is proved."""
        bracket = None if self.certificate is None else self.certificate.in_norm(norm)
        return 0.0 if bracket is None else min(bracket.radius, bracket.proved)


class Run(Database, Tabular):
    """The run in `folder`. One writer (`create`); readers may look at any time.

    A table too: `to_frame()`, `to_csv()`, `to_latex()`, or shown by a notebook.
    """

    schema = _SCHEMA
    tables = frozenset({"spec", "execution", "results"})

    def __init__(self, folder: Path | str, *, create: bool = False) -> None:
        self.folder = Path(folder)
        self._written: dict[int, Row] = {}
        super().__init__(self.folder / FILE, create=create)

    @property
    def started(self) -> bool:
        """Whether the run has its settings."""
        return bool(self.read("SELECT 1 FROM spec LIMIT 1"))

    @cached_property
    def spec(self) -> Spec:
        """Everything that decides the results of the run."""
        values = self.settings("spec")
        if not values:
            raise RunError(f"{self.folder} has no settings, so the run was never started")
        return Spec.from_dict(values)

    @property
    def execution(self) -> Execution:
        """Where and when the run was begun."""
        return Execution.from_dict(self.settings("execution"))

    def set_spec(self, spec: Spec, execution: Execution | None = None) -> None:
        """Write the spec of a run, and where it is begun."""
        with self.write():
            self.put("spec", [(key, json.dumps(value)) for key, value in spec.to_dict().items()])
            if execution is not None:
                facts = vars(execution).items()
                self.put("execution", [(key, json.dumps(value)) for key, value in facts])
        self.__dict__["spec"] = spec

    def add(self, row: Row) -> None:
        """Write one result, in a transaction of its own: a killed process loses what is in flight,
        and `resume` never meets half a row.
        """
        claims = transcript = None
        if (c := row.certificate) is not None:
            said = {f.name: getattr(c, f.name) for f in fields(c) if f.name not in ELSEWHERE}
            claims = json.dumps(said | {"radii": [radius.to_dict() for radius in c.radii]})
            transcript = json.dumps(c.transcript.to_list())
        head = (row.idx, row.label, row.input_hash, row.seconds, row.reason)
        with self.write():
            self.put("results", [(*head, claims, transcript)])
        self._written[row.idx] = row

    def done(self, *, retry: bool = False) -> set[int]:
        """Inputs that are not to be done again: all that have a result, but failures of the
        environment (a full disk, a killed worker, no memory), and with `retry` no failure at all.
        """
        results = self.read("SELECT idx, reason FROM results")
        return {
            idx
            for idx, reason in results
            if reason is None or not (retry or str(reason).startswith(ENVIRONMENT))
        }

    def records(self) -> list[sqlite3.Row]:
        """The rows as they are stored, in the order of the inputs."""
        return self.read("SELECT * FROM results ORDER BY idx")

    def row(self, record: sqlite3.Row) -> Row:
        """What a stored row says. What could not have been written is a ValueError."""
        r = dict(record)
        if not (isinstance(r["idx"], int) and isinstance(r["label"], int) and r["label"] >= -1):
            raise ValueError(f"input {r['idx']!r} with label {r['label']!r}")
        if not (isinstance(r["seconds"], float) and 0 <= r["seconds"] < math.inf):
            raise ValueError(f"its time is {r['seconds']!r} seconds")
        if not isinstance(r["input_hash"], str):
            raise ValueError("its input has no hash")
        failed = r["claims"] is None and r["transcript"] is None
        if failed != isinstance(r["reason"], str) or not (failed or r["reason"] is None):
            raise ValueError("it must have either a certificate or a reason, not both")
        certificate = None if failed else _certificate(r, self.spec)
        return Row(r["idx"], r["label"], r["input_hash"], r["seconds"], certificate, r["reason"])

    def rows(self) -> Iterator[Row]:
        """Every result, in the order of the inputs; those that were written here as they were."""
        for record in self.records():
            try:
                yield self._written.get(record["idx"]) or self.row(record)
            except UNREADABLE as error:
                raise RunError(f"cannot read {self.path}: input {record['idx']}: {error}") from None

    def readable(self) -> list[Row]:
        """The results that make sense, where others may not."""
        rows = []
        for record in self.records():
            with suppress(*UNREADABLE):
                rows.append(self.row(record))
        return rows

    def scores(self, norm: str) -> Scores:
        """Radii, abstentions and which inputs count, in one norm: the correct ones, or, where
        there are no labels, all that are certified.
        """
        return scores_of(list(self.rows()), norm, self.folder.name, self.spec.plan.alpha)

    def table(self) -> list[dict[str, Any]]:
        """Every result with what is needed to check it again, as plain values."""
        from unicr.runs._export import table

        return table(self)

    def plain_rows(self) -> list[dict[str, Any]]:
        """One row of plain values for each input, with columns for each norm and class names."""
        from unicr.runs._export import flat

        return flat(self)

    def certificates(self, classes: Sequence[str | int] | None = None) -> Certificates:
        """The certificates as a table with scores, as `SmoothedClassifier.certify` returns it.

        A failed input is an error. `classes` are the names of the classes, by default the run's.
        """
        rows = list(self.rows())
        for row in rows:
            row.refuse_failure()
        found = [row.certificate for row in rows if row.certificate is not None]
        labels = [row.label for row in rows]
        known = labels if any(label >= 0 for label in labels) else None
        names = classes or self.spec.classes
        return Certificates(found, names, labels=known, save=self._copy_to)

    def _copy_to(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise CertifyError(f"{folder} is a file: choose a folder")
        if folder.exists() and any(folder.iterdir()):
            raise CertifyError(f"{folder} is not empty: choose another folder")
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)

    def __repr__(self) -> str:
        about = f"{self.spec.model}, {self.spec.data}" if self.started else "not started"
        return f"Run({str(self.folder)!r}: {about})"


def scores_of(rows: Sequence[Row], norm: str, name: str, alpha: float | None) -> Scores:
    """The scores of a run's rows in one norm."""
    certificates = [row.certificate for row in rows if row.certificate is not None]
    p_a = [c.p_a for c in certificates if not c.abstained]
    labelled = any(row.label >= 0 for row in rows)
    counted = [row.correct if labelled else row.status == "certified" for row in rows]
    return Scores(
        name=name,
        norm=norm,
        radius=np.array([row.radius(norm) for row in rows], dtype=np.float64),
        counted=np.array(counted, dtype=np.float64),
        abstained=np.array([row.predict == -1 for row in rows], dtype=np.float64),
        alpha=alpha,
        p_a=np.array(p_a, dtype=np.float64),
        grid=next((c.lattice for c in certificates if c.between_points), None),
        labelled=labelled,
    )


def load_run(folder: str | Path) -> Run:
    """The run in a folder, to be read: `spec`, `rows()`, `certificates()` and their scores."""
    return Run(Path(folder).expanduser())


def _certificate(r: dict[str, Any], spec: Spec) -> Certificate:
    """The certificate of a row: values of the right kind; `verify` says if they are right."""
    try:
        values = read_stored(r["claims"])
        frames = [law.frame for law in spec.noises if law.frame is not None]
        radii = tuple(NormRadius.from_dict(v, frames) for v in values.pop("radii"))
        ends = ((r.radius, r.proved, r.searched, r.reach or 0.0) for r in radii)
        if not all(_not_negative(v) for several in ends for v in several):
            raise ValueError(f"its radii {radii} are not all numbers of at least 0")
        whole = [values[name] for name in ("predict", "n0", "n")]
        real = [values[name] for name in ("p_a", "p_b", "alpha")]
        if {type(v) for v in whole} != {int} or {type(v) for v in real} != {float}:
            raise ValueError(
                f"class, n0 and n ({whole}) must be whole numbers, and p_A, p_B and alpha ({real}) "
                "floating-point numbers"
            )
        if not all(-1 <= v <= LARGEST for v in whole):
            raise ValueError("class, n0 or n is too large")
        if not all(_not_negative(v) and v <= 1 for v in real):
            raise ValueError(f"p_A, p_B and alpha ({real}) must lie between 0 and 1")
        transcript = Transcript.from_list(read_stored(r["transcript"]))
        kind = spec.plan.procedure.certificate
        return kind(**values, radii=radii, transcript=transcript, seed=spec.seed)
    except (UnicrError, *UNREADABLE) as error:
        raise ValueError(f"cannot read its certificate: {error!r}") from None


def _not_negative(value: float) -> bool:
    """Whether a number is 0 or more, and written so: -0.0 is not."""
    return math.copysign(1.0, value) > 0 and value >= 0
