"""Outcomes of attacks in one SQLite file beside the run: what is done is not done again.

Every attack is stored with its settings; outcomes made with other settings are never mixed in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from unicr.files import read_stored
from unicr.folder import plain, refuse_changes
from unicr.lab.attack._verdict import Verdict, agrees, verdict
from unicr.runs import Database, Row
from unicr.smoothing import NormRadius

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
) WITHOUT ROWID
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


class AttackStore(Database):
    """The attacks on one run; one writer at a time."""

    schema = _SCHEMA
    tables = frozenset({"settings", "outcomes"})

    def __init__(self, folder: Path, *, create: bool = True) -> None:
        super().__init__(folder / FILE, create=create)

    def begin(self, attack: str, settings: dict[str, Any], *, again: bool = False) -> None:
        """Take up an attack: with the settings it was begun with, or from nothing (`again`)."""
        with self.write():
            if again:
                self._db.execute("DELETE FROM outcomes WHERE attack = ?", (attack,))
                self._db.execute("DELETE FROM settings WHERE attack = ?", (attack,))
            old = self.settings("settings").get(attack, {})
            if old:
                cure = "use --fresh to delete its outcomes"
                refuse_changes(f"{attack} of {self.path}", old, plain(settings), cure=cure)
            else:
                self.put("settings", [(attack, json.dumps(settings))])

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Write the outcomes of one task, all or none."""
        with self.write():
            for outcome in outcomes:
                values = {**asdict(outcome), "counts": json.dumps(outcome.counts)}
                self.put("outcomes", [tuple(values.values())])

    def outcomes(self) -> list[Outcome]:
        """Everything stored, by attack, norm, factor and input."""
        rows = self.read("SELECT * FROM outcomes ORDER BY attack, norm, factor, idx")
        with self._name_errors("read"):
            return [_outcome(row) for row in rows]


def _outcome(row: Sequence[Any]) -> Outcome:
    values = dict(zip([field.name for field in fields(Outcome)], row, strict=True))
    counts = read_stored(values["counts"])
    if not all(type(n) is int and n >= 0 for n in counts):
        raise ValueError(f"{values['counts']!r} are not counts")
    numbers = [values[name] for name in ("factor", "bound", "length")]
    if not all(type(value) is float and math.isfinite(value) for value in numbers):
        raise ValueError(f"factor, bound and length are {numbers}")
    if not all(type(values[name]) is int for name in ("idx", "certified")):
        raise ValueError(f"input {values['idx']!r} of class {values['certified']!r}")
    if not all(str(values[name]).isprintable() for name in ("attack", "norm", "verdict")):
        raise ValueError("a name is not printable")
    return Outcome(**{**values, "counts": tuple(counts)})


def _choose_target_radius(radius: NormRadius, settings: dict[str, Any]) -> float:
    """The radius that an attack with these settings goes for."""
    return radius.searched if settings.get("searched") else radius.proved


def _settings_problem(made: Any) -> str | None:
    """What is wrong with the stored settings of an attack."""
    if not isinstance(made, dict):
        return "it has no settings"
    level, votes = made.get("alpha"), made.get("votes")
    if type(level) is not float or not 0 < level < 1:
        return f"its level is {level!r}, no probability"
    return None if type(votes) is int and votes > 0 else f"it takes {votes!r} votes"


def _list_attackable(rows: Mapping[int, Row]) -> list[int]:
    """The inputs that an attack takes: with a class, and radii that can be left and reached."""
    return [
        row.idx
        for row in rows.values()
        if row.predict >= 0
        and row.certificate is not None
        and all(r.proved > 0 and r.searched < math.inf for r in row.certificate.radii)
    ]


def _gaps(outcomes: Sequence[Outcome], rows: Mapping[int, Row]) -> Iterator[str]:
    """Certified inputs that an attack left out on its way: it takes them in order."""
    certified = _list_attackable(rows)
    groups: dict[tuple[str, str, float], set[int]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.attack, outcome.norm, outcome.factor), set()).add(outcome.idx)
    for (attack, norm, factor), there in groups.items():
        missing = [idx for idx in certified if idx < max(there) and idx not in there]
        if missing:
            yield f"{attack} at {factor!r} R in l{norm}: {len(missing)} inputs have no outcome"


def check_outcomes(store: AttackStore, rows: Mapping[int, Row]) -> Iterator[str]:
    """What does not hold among stored outcomes: each is judged again from its votes and the run."""
    settings, outcomes = store.settings("settings"), store.outcomes()
    for attack, made in settings.items():
        if (wrong := _settings_problem(made)) is not None:
            yield f"{attack}: {wrong}"
            return
    yield from _gaps(outcomes, rows)
    attacked = _list_attackable(rows)
    for outcome in outcomes:
        where = (
            f"{outcome.attack} at {outcome.factor!r} R in l{outcome.norm} on input {outcome.idx}"
        )
        row, alpha = rows.get(outcome.idx), settings.get(outcome.attack, {}).get("alpha")
        known = outcome.idx in attacked and alpha is not None
        if row is None or row.certificate is None or outcome.certified != row.predict or not known:
            yield f"{where}: the run has no such certificate, or the attack no settings"
            continue
        claimed = row.certificate.in_norm(outcome.norm)
        right = (
            _choose_target_radius(claimed, settings[outcome.attack]) * outcome.factor
            if claimed
            else -1.0
        )
        if not math.isclose(outcome.bound, right, rel_tol=1e-9):
            yield f"{where}: within {outcome.bound!r} stored, {right!r} from the run"
        elif not 0 <= outcome.length <= outcome.bound * (1 + 1e-6):
            yield f"{where}: moved by {outcome.length!r}, allowed are {outcome.bound!r}"
        elif sum(outcome.counts) != settings[outcome.attack].get("votes"):
            yield f"{where}: {sum(outcome.counts)} votes"
        elif outcome.verdict != verdict(outcome.counts, outcome.certified, alpha):
            yield f"{where}: {outcome.verdict!r} stored, the votes say otherwise"
