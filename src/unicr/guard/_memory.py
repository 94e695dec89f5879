"""The memory of certified regions: a point, a class and a reach each, never changed, never lost.

Two regions of different classes have no point in common. One SQLite file holds them; what is
checked for a new region and its insertion are one transaction, so threads and processes may share a
file, and a commit is on the disk before an answer is given.

Look-up is a linear scan: a lower bound of the distance from 64 coordinates for every region, the
distance itself for the few that are left. It misses nothing, in any norm. With 20,000 digits in
d = 784, on a busy machine, a look-up took 15 ms in l2, 26 in l1 and 17 in linf, where distances to
all take 163, 130 and 145; with 10,000 CIFAR-10 images in d = 3072, 6 to 10 ms where all take 310 to
340. Distances to 16 pivots and the triangle inequality were tried in place of the coordinates: 1.6
times faster in l2, 2.8 times in l1, and in linf, where all digits are equally far apart, slower
than no filter. They were left out.
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
from unicr.guard._metric import Floats, Metric
from unicr.norms import Norm
from unicr.runs import changes
from unicr.smoothing import Certificate, NormRadius

FORMAT = 1
SEED = "guard_seed"
FIRST_STREAM = 1 << 32  # streams below are the inputs of the run that was planted
HEAD = 64
SMALLEST = 64

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
);
"""


@dataclass(frozen=True)
class Answer:
    """One answer. Every point nearer than `radius` has it or will get it.

    `label` is −1 for "abstained". `region` is the number of the region it comes from, `noise` the
    noise that was chosen for its centre (None: the one of the run). `shrunk_from` is the certified
    radius of a new region that had to be made smaller; `guarantee` is "proved" where the region
    lies in the proved radius, else that of the searched one ("exact", "approximate").
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
        """Of which smoothed classifier the certificate behind this answer speaks."""
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


class _Table:
    """The regions in arrays that grow; rows that are there never change."""

    def __init__(self, dim: int) -> None:
        some = np.random.default_rng(dim).permutation(dim)[:HEAD]
        self.head = np.sort(some) if dim > 2 * HEAD else None
        self.size = 0
        self.points = np.empty((SMALLEST, dim), np.float32)
        self.heads = np.empty((SMALLEST, HEAD if self.head is not None else 0))
        self.reach = np.empty(SMALLEST)
        self.label = np.empty(SMALLEST, np.int64)

    def append(self, point: NDArray[np.float32], reach: float, label: int) -> None:
        if self.size == len(self.points):
            for name in ("points", "heads", "reach", "label"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.empty_like(old)]))
        self.points[self.size] = point
        if self.head is not None:
            self.heads[self.size] = point[self.head]
        self.reach[self.size], self.label[self.size] = reach, label
        self.size += 1

    def snapshot(self) -> _Regions:
        n = self.size
        return _Regions(self.head, self.points[:n], self.heads[:n], self.reach[:n], self.label[:n])


@dataclass(frozen=True)
class _Regions:
    """The regions at one moment. Positions count from 0, region numbers from 1."""

    head: NDArray[np.int64] | None
    points: NDArray[np.float32]
    heads: Floats
    reach: Floats
    label: NDArray[np.int64]

    def near(self, metric: Metric, x: Floats, within: float = 0.0) -> NDArray[np.intp]:
        """Positions of all regions whose distance from x may be at most reach + within."""
        if self.head is None:
            return np.arange(len(self.reach))
        return np.flatnonzero(metric.below(x[self.head], self.heads) <= self.reach + within)

    def holding(self, metric: Metric, x: Floats) -> list[tuple[int, float]]:
        """(position, distance from above) of every region that x is in, the deepest first.

        A region is its centre and all points with ρ < reach.
        """
        some = self.near(metric, x)
        some = some[metric.below(x, self.points[some]) <= self.reach[some]]
        found = []
        for at in some.tolist():
            away = metric.above(x, self.points[at].astype(np.float64))
            if away == 0 or away < self.reach[at]:
                found.append((at, away))
        return sorted(found, key=lambda one: (one[1] - float(self.reach[one[0]]), one[0]))

    def room(self, metric: Metric, x: Floats, label: int, reach: float) -> float:
        """The largest reach, at most this one, that stays clear of every other class's region.

        Open balls are disjoint where ρ ≥ reach + reach′, and r ≤ ρ keeps a lone centre out.
        """
        some = self.near(metric, x, reach)
        some = some[self.label[some] != label]
        if not len(some):
            return reach
        free = np.nextafter(metric.below(x, self.points[some]) - self.reach[some], -np.inf)
        return max(0.0, min(reach, float(free.min())))


class Memory:
    """The regions of one model, norm and input shape, in `path` (None: in this process only).

    `made_for` says what the regions hold for (a model's hash, a run's settings): a file that was
    made for something else is refused. `seed` is that of the noise for new points. Without one a
    new memory draws its own: who can foresee the noise can choose inputs on which it misleads. Use
    a memory from any number of threads; other processes open the file themselves.
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
        self.path, self.norm, self.shape = path, norm, tuple(shape)
        self._metric = Metric(norm)
        self._table = _Table(math.prod(self.shape))
        self._lock = threading.RLock()
        about = {**(made_for or {}), "norm": norm.text, "shape": list(self.shape)}
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                path or ":memory:", timeout=120, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise RunError(f"cannot open the memory {path}: {error}") from None
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self.seed = self._open(about, seed)
        except sqlite3.Error as error:
            self._db.close()
            raise RunError(f"cannot open the memory {path}: {error}") from None
        except BaseException:
            self._db.close()
            raise

    def _open(self, about: dict[str, Any], seed: int | None) -> int:
        """Write what a new file is for, or check an old one; its seed."""
        wanted = json.loads(json.dumps({**about, "format": FORMAT}))
        with self._writing():
            for statement in _SCHEMA.split(";"):
                self._db.execute(statement)
            rows = self._db.execute("SELECT key, value FROM about")
            old = {key: json.loads(value) for key, value in rows}
            if not old:
                new = {**wanted, SEED: secrets.randbits(63) if seed is None else seed}
                values = [(key, json.dumps(value)) for key, value in new.items()]
                self._db.executemany("INSERT INTO about VALUES (?, ?)", values)
                old = new
        kept = old.pop(SEED, None)
        if seed is not None and seed != kept:
            raise RunError(f"the memory {self.path} has another seed than {seed}: leave it out")
        if says := changes(old, wanted):
            raise RunError(f"the memory {self.path} is for something else ({says}): use another")
        return int(kept)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._regions().reach)

    @property
    def spent(self) -> float:
        """Σα over every certificate that was begun, abstentions and discarded ones included.

        The probability that any stored region claims too much is at most this.
        """
        with self._reading():
            groups = self._db.execute("SELECT alpha, COUNT(*) FROM draws GROUP BY alpha").fetchall()
        return float(sum(Decimal(repr(alpha)) * count for alpha, count in groups))

    def point(self, x: Any) -> NDArray[np.float32]:
        """x as the float32 values that are stored and asked for; refused where not finite."""
        values = np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)
        if values.shape != self.shape:
            raise CertifyError(f"the input has shape {values.shape}, the memory {self.shape}")
        with np.errstate(over="ignore"):
            flat = np.ascontiguousarray(values, dtype=np.float32).ravel()
        if not np.isfinite(flat).all():
            raise CertifyError("the input is not finite (NaN or infinity): it gets no answer")
        return flat

    def look_up(self, x: Any) -> Answer | None:
        """The answer of the deepest region that x is in, None where it is in none."""
        return self._from(self._regions(), self.point(x))

    def reserve(self, alpha: float) -> int:
        """The number of a noise stream that nobody had before; its α counts as spent from now."""
        with self._writing():
            (last,) = self._db.execute("SELECT MAX(stream) FROM draws").fetchone()
            stream = max(FIRST_STREAM, (last or 0) + 1)
            self._db.execute("INSERT INTO draws VALUES (?, ?)", (stream, alpha))
        return stream

    def settle(self, x: Any, certificate: Certificate, stream: int) -> Answer:
        """Answer x by its certificate and store its region, shrunk where another class is near.

        Where x lies by now in a region of another class, that one answers and nothing is stored.
        """
        point = self.point(x)
        with self._writing():
            return self._settle(point, certificate, stream)

    def plant(self, x: Any, certificate: Certificate, index: int) -> Answer | None:
        """`settle` for input number `index` of a run; None where that input was planted before."""
        point = self.point(x)
        if not 0 <= index < FIRST_STREAM:
            raise RunError(f"input number {index}: it must be from 0 to {FIRST_STREAM - 1}")
        with self._writing():
            known = self._db.execute("SELECT 1 FROM draws WHERE stream = ?", (index,)).fetchone()
            if known:
                return None
            self._db.execute("INSERT INTO draws VALUES (?, ?)", (index, certificate.alpha))
            return self._settle(point, certificate, index)

    def _settle(self, point: NDArray[np.float32], certificate: Certificate, stream: int) -> Answer:
        regions = self._regions()
        there = self._from(regions, point)
        if there is not None and there.label != certificate.predict:
            return there
        claimed = self._claimed(certificate)
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
            radius=self._metric.promised(reach),
            source="fresh",
            region=number,
            guarantee=guarantee,
            noise=certificate.noise,
            shrunk_from=claimed.radius if reach < wanted else None,
        )

    def _claimed(self, certificate: Certificate) -> NormRadius:
        for one in certificate.radii:
            if one.norm == self.norm.text:
                if not (one.radius >= 0 and one.proved >= 0):
                    raise CertifyError(f"the certificate has the radius {one.radius!r}")
                return one
        norms = [one.norm for one in certificate.radii]
        raise CertifyError(f"the certificate has no radius in {self.norm}; it has norms {norms}")

    def _from(self, regions: _Regions, point: NDArray[np.float32]) -> Answer | None:
        holding = regions.holding(self._metric, point.astype(np.float64))
        if not holding:
            return None
        labels = {int(regions.label[at]) for at, _ in holding}
        if len(labels) > 1:
            raise RunError(
                f"the memory {self.path} is damaged: a point lies in regions of the classes "
                f"{sorted(labels)}"
            )
        at, away = holding[0]
        with self._reading():
            guarantee, noise = self._db.execute(
                "SELECT guarantee, noise FROM regions WHERE number = ?", (at + 1,)
            ).fetchone()
        radius = self._metric.promised(float(regions.reach[at]), away)
        return Answer(labels.pop(), radius, "memory", at + 1, guarantee, noise)

    def _regions(self) -> _Regions:
        """All regions that are in the file now."""
        with self._reading():
            rows = self._db.execute(
                "SELECT number, class, reach, point FROM regions WHERE number > ? ORDER BY number",
                (self._table.size,),
            )
            for number, label, reach, blob in rows:
                if number != self._table.size + 1 or len(blob) != 4 * math.prod(self.shape):
                    raise RunError(f"the memory {self.path} is damaged at region {number}")
                self._table.append(np.frombuffer(blob, "<f4"), reach, label)
            return self._table.snapshot()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise RunError(f"cannot read the memory {self.path}: {error}") from None

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """BEGIN IMMEDIATE … COMMIT: what is read inside stays true until the end."""
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield
                self._db.execute("COMMIT")
            except BaseException as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise RunError(f"cannot write the memory {self.path}: {error}") from None
                raise
