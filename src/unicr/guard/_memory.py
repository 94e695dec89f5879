"""The memory of certified regions: a point, a class and a reach each, never changed, never lost.

Two regions of different classes have no point in common. One SQLite file holds them; what is
checked for a new region and its insertion are one transaction, so threads and processes may share a
file, and a commit is on the disk before an answer is given.
"""

from __future__ import annotations

import json
import math
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unicr.errors import CertifyError, RunError
from unicr.folder import plain, refuse_changes
from unicr.guard._metric import Metric
from unicr.guard._table import Snapshot, Table
from unicr.norms import Norm
from unicr.runs import Database
from unicr.smoothing import Certificate, NormRadius

FORMAT = 2  # of a memory; one of another number is refused
SEED = "guard_seed"
FIRST_STREAM = 1 << 32  # streams below are the inputs of the run that was planted

_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS draws (stream INTEGER PRIMARY KEY, alpha REAL NOT NULL);
CREATE TABLE IF NOT EXISTS regions (
    number INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL,
    class INTEGER NOT NULL,
    reach REAL NOT NULL,
    certified REAL NOT NULL,
    guarantee TEXT NOT NULL,
    noise TEXT,
    point BLOB NOT NULL
)
"""


@dataclass(frozen=True)
class Answer:
    """One answer. Every point nearer than `radius` has it or will get it.

    `label` is −1 for "abstained". `region` is the number of the region it comes from, `noise` the
    noise that was chosen for its centre (None: the one of the run). `shrunk_from` is the certified
    radius of a new region that had to be made smaller; `guarantee` is "proved" where the region
    lies in the proved radius, else that of the searched one ("exact", "approximate").

    See docs/theory.md#the-guard.
    """

    label: int
    radius: float
    source: Literal["fresh", "memory"]
    region: int
    guarantee: str
    noise: str | None = None
    shrunk_from: float | None = None

    @property
    def scope(self) -> str:
        """Which smoothed classifier the certificate behind this answer speaks of."""
        if self.noise is None:
            return "the run's noise"
        return "this input's noise" if self.source == "fresh" else f"region {self.region}'s noise"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; an infinite radius is the text "inf"."""
        return {
            "class": self.label,
            "radius": _plain(self.radius),
            "source": self.source,
            "region": self.region,
            "scope": self.scope,
            "noise": self.noise,
            "guarantee": self.guarantee,
            "shrunk_from": None if self.shrunk_from is None else _plain(self.shrunk_from),
        }


def _plain(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


class Regions(Database):
    """The file of a memory: what it is for, which certificates were begun, and the regions."""

    schema = _SCHEMA
    tables = frozenset({"about", "draws", "regions"})
    synchronous = "FULL"
    shared = True


class Memory(Regions):
    """The regions of one model, norm and input shape, in `path` (None: in this process only).

    `made_for` says what the regions hold for (a model's hash, a run's settings): a file that was
    made for something else is refused, and one that was changed after it was closed. `seed` is that
    of the noise for new points. Without one a new memory draws its own: who can foresee the noise
    can choose inputs on which it misleads. Use a memory from any number of threads; other processes
    open the file themselves. See docs/theory.md#the-guard.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        norm: Norm,
        shape: Sequence[int],
        made_for: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        self.norm, self.shape = norm, tuple(shape)
        self._metric = Metric(norm)
        self._table = Table(math.prod(self.shape))
        self._lock = threading.RLock()
        self._changed = False
        about = {**(made_for or {}), "norm": norm.text, "shape": list(self.shape)}
        super().__init__(path, create=True)
        try:
            if self.read("SELECT 1 FROM regions WHERE stream NOT IN (SELECT stream FROM draws)"):
                raise RunError(f"the memory {path} is damaged: it does not count its certificates")
            self.seed = self._agree_on_settings(about, seed)
        except BaseException:
            super().close()
            raise

    def _agree_on_settings(self, about: dict[str, Any], seed: int | None) -> int:
        """Write what a new file is for, or check an old one; its seed."""
        wanted = plain({**about, "format": FORMAT})
        old = self.settings("about")
        if not old:
            with self.write():
                old = self.settings("about")  # another process may have been first
                if not old:
                    old = {**wanted, SEED: secrets.randbits(63) if seed is None else seed}
                    self.put("about", [(key, json.dumps(value)) for key, value in old.items()])
        kept = old.pop(SEED, None)
        if seed is not None and seed != kept:
            raise RunError(
                f"the memory {self.path} has another seed than {seed}: leave the seed out"
            )
        refuse_changes(f"the memory {self.path}", old, wanted, cure="use another memory")
        if not isinstance(kept, int):
            raise RunError(f"the memory {self.path} has no seed: it is damaged")
        return kept

    def close(self) -> None:
        """Seal what is there, and close the file."""
        with self._lock:
            if self._changed and self.path is not None:
                self.set_seal()
            super().close()

    @contextmanager
    def write(self) -> Iterator[None]:
        """A transaction, by one thread at a time."""
        with self._lock, super().write():
            self._changed = True
            yield

    def read(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """All rows of a query, by one thread at a time."""
        with self._lock:
            return super().read(query, values)

    def __len__(self) -> int:
        return len(self._regions().reach)

    @property
    def spent(self) -> float:
        """Σα over every certificate that was begun, abstentions and discarded ones included.

        The probability that any stored region claims too much is at most this.
        """
        groups = self.read("SELECT alpha, COUNT(*) FROM draws GROUP BY alpha")
        return float(sum(Decimal(repr(alpha)) * count for alpha, count in groups))

    def point(self, x: Any) -> NDArray[np.float32]:
        """x as the float32 values that are stored and asked for; refused where not finite."""
        values = np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)
        if values.shape != self.shape:
            raise CertifyError(
                f"the input has shape {values.shape}, but the memory holds inputs of shape "
                f"{self.shape}"
            )
        with np.errstate(over="ignore"):
            flat = np.ascontiguousarray(values, dtype=np.float32).ravel()
        if not np.isfinite(flat).all():
            raise CertifyError(
                "the input has a value that is not finite (NaN or infinity), so it gets no answer"
            )
        return flat

    def look_up(self, x: Any) -> Answer | None:
        """The answer of the deepest region that x is in, None if it is in none."""
        return self._answer_from(self._regions(), self.point(x))

    def reserve(self, alpha: float) -> int:
        """Reserve a noise stream and return its number. From now on its α counts as spent."""
        with self.write():
            (last,) = self._db.execute("SELECT MAX(stream) FROM draws").fetchone()
            stream = max(FIRST_STREAM, (last or 0) + 1)
            self._db.execute("INSERT INTO draws VALUES (?, ?)", (stream, alpha))
        return stream

    def settle(self, x: Any, certificate: Certificate, stream: int) -> Answer:
        """Store the region of x by its certificate, shrunk where another class is near, and return
        the answer.

        Where x lies by now in a region of another class, that one answers and nothing is stored.

        See docs/theory.md#the-guard.
        """
        point = self.point(x)
        with self.write():
            return self._settle(point, certificate, stream)

    def plant(self, x: Any, certificate: Certificate, index: int) -> Answer | None:
        """`settle` for input number `index` of a run; None if that input was planted before."""
        point = self.point(x)
        if not 0 <= index < FIRST_STREAM:
            raise RunError(f"input number {index}: it must be from 0 to {FIRST_STREAM - 1}")
        with self.write():
            known = self._db.execute("SELECT 1 FROM draws WHERE stream = ?", (index,)).fetchone()
            if known:
                return None
            self._db.execute("INSERT INTO draws VALUES (?, ?)", (index, certificate.alpha))
            return self._settle(point, certificate, index)

    def _settle(self, point: NDArray[np.float32], certificate: Certificate, stream: int) -> Answer:
        regions = self._regions()
        there = self._answer_from(regions, point)
        if there is not None and there.label != certificate.predict:
            return there
        claimed = self._read_radius(certificate)
        wanted = 0.0 if certificate.abstained else self._metric.reach(claimed.radius)
        x = point.astype(np.float64)
        reach = regions.room(self._metric, x, certificate.predict, wanted)
        proved = reach <= self._metric.reach(claimed.proved)
        guarantee = "proved" if proved and not certificate.abstained else claimed.guarantee
        number = len(regions.reach) + 1
        head = (number, stream, certificate.predict, reach, claimed.radius, guarantee)
        self._db.execute(
            "INSERT INTO regions VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*head, certificate.noise, point.astype("<f4").tobytes()),
        )
        return Answer(
            label=certificate.predict,
            radius=self._metric.shrink_radius(reach),
            source="fresh",
            region=number,
            guarantee=guarantee,
            noise=certificate.noise,
            shrunk_from=claimed.radius if reach < wanted else None,
        )

    def _read_radius(self, certificate: Certificate) -> NormRadius:
        radius = certificate.in_norm(self.norm.text)
        if radius is None:
            norms = [radius.norm for radius in certificate.radii]
            raise CertifyError(
                f"the certificate has no radius in {self.norm}; it has norms {norms}"
            )
        if not (radius.radius >= 0 and radius.proved >= 0):
            raise CertifyError(
                f"the certificate has the radius {radius.radius!r}, which is not a finite number "
                "of at least 0"
            )
        return radius

    def _answer_from(self, regions: Snapshot, point: NDArray[np.float32]) -> Answer | None:
        holding = regions.list_holding(self._metric, point.astype(np.float64))
        if not holding:
            return None
        labels = {int(regions.label[at]) for at, _ in holding}
        if len(labels) > 1:
            raise RunError(
                f"the memory {self.path} is damaged: one point lies in regions of several classes "
                f"({sorted(labels)})"
            )
        at, away = holding[0]
        ((guarantee, noise),) = self.read(
            "SELECT guarantee, noise FROM regions WHERE number = ?", (at + 1,)
        )
        radius = self._metric.shrink_radius(float(regions.reach[at]), away)
        return Answer(labels.pop(), radius, "memory", at + 1, guarantee, noise)

    def _regions(self) -> Snapshot:
        """All regions that are in the file now."""
        with self._lock:
            for number, label, reach, blob in self.read(
                "SELECT number, class, reach, point FROM regions WHERE number > ? ORDER BY number",
                (self._table.size,),
            ):
                if number != self._table.size + 1 or len(blob) != 4 * math.prod(self.shape):
                    raise RunError(f"the memory {self.path} is damaged at region {number}")
                self._table.append(np.frombuffer(blob, "<f4"), reach, label)
            return self._table.snapshot()
