"""The settings of a run, typed: what decides its results, what opens model and data again, and
where and when the work was done.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from unicr.errors import RunError, UnicrError, listed
from unicr.noise import Lattice
from unicr.norms import Norm, parse_norm
from unicr.smoothing import Curves, Plan, checked_nonce

MOST_INPUTS = 100_000_000
FORMAT = 2  # of a run folder; one of another number is refused
LOADING = {  # arguments of `load_classifier` that a run keeps, with their types
    "weights": str,
    "mean": list | float | int,
    "std": list | float | int,
    "num_classes": int,
    "precision": str,
}
PLACE = frozenset({"batch", "workers", "device", "unicr", "versions", "date", "loading"})


@dataclass(frozen=True)
class Manifest:
    """`loading` and `reading` are arguments of `load_classifier` and `load_dataset`.

    `model_hash` is of the whole model, `model_digests` of it and its preprocessing apart; `classes`
    are its own names for its labels, or those of the data.
    `noise_data` is the noise as numbers, so that nobody needs its code.
    Noise comes from the `nonce`, or in an experiment from the `seed`, on a `lattice` or (None) as
    real numbers.
    """

    model: str
    model_hash: str
    data: str
    shape: tuple[int, ...]
    dim: int
    noise: str
    norms: tuple[str, ...]
    plan: Plan
    seed: int | None
    searched: bool
    skip: int
    max: int | None
    batch: int
    workers: int
    device: str
    unicr: str
    data_size: int
    noise_data: dict[str, Any] | None = None
    loading: dict[str, Any] | None = None
    reading: dict[str, Any] | None = None
    model_digests: dict[str, str] | None = None
    classes: list[str | int] | None = None
    data_hash: str | None = None
    versions: dict[str, str] | None = None
    date: str | None = None
    nonce: str | None = None
    lattice: str | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Manifest:
        """Read and check the settings of a run."""
        given = dict(values)
        if given.pop("format", None) != FORMAT:
            raise RunError(
                f"the run has the format {values.get('format')!r}, this version of unicr has "
                f"{FORMAT}: use the version that wrote it"
            )
        if unknown := sorted(set(given) - {one.name for one in fields(cls)}):
            raise RunError(f"the manifest has {listed(unknown)}, which unicr did not write")
        read: dict[str, Any] = {}
        for one in fields(cls):
            if one.name not in given:
                if one.default is one.default_factory:
                    raise RunError(f"the manifest has no {one.name}: the run is damaged")
                continue
            try:
                read[one.name] = READERS.get(one.name, READERS[str(one.type)])(given[one.name])
            except (ValueError, TypeError, UnicrError) as error:
                raise RunError(
                    f"the manifest's {one.name} is {given[one.name]!r}: {error}"
                ) from None
        return cls(**read)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the inverse of `from_dict`."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        plain = {k: v for k, v in values.items() if v is not None or k in ("max", "seed")}
        lists = {"shape": list(self.shape), "norms": list(self.norms), "plan": self.plan.to_dict()}
        return {"format": FORMAT, **plain, **lists}

    def refuse_changes(self, new: Manifest, folder: object) -> None:
        """A run goes on with the settings it has; more inputs (a larger `max`) are welcome."""
        mine, theirs = self.to_dict(), new.to_dict()
        grown = self.max is not None and (new.max is None or new.max >= self.max)
        free = PLACE | ({"max"} if grown else set())
        if differing := changes(mine, theirs, frozenset(free)):
            raise RunError(f"cannot resume {folder} with other settings ({differing})")

    @property
    def scope(self) -> str:
        """Whether one g is certified at many points, or one for each input."""
        return self.plan.procedure.scope

    @property
    def points(self) -> Lattice | None:
        """The lattice as a value."""
        return None if self.lattice is None else Lattice.parse(self.lattice)

    @property
    def drawn(self) -> int:
        """A number that the run's noise follows from, for whoever needs noise of its own."""
        return int(self.nonce or "0", 16) if self.seed is None else self.seed

    @property
    def smoothing(self) -> dict[str, Any]:
        """What a `SmoothedClassifier` takes to draw the noise of the run again."""
        if self.seed is None and self.nonce is None:
            raise RunError("the manifest has neither a seed nor a nonce: the run is damaged")
        settings = "" if self.nonce is None else self.key_settings
        drawn = {"seed": self.seed, "nonce": self.nonce, "settings": settings}
        return {**drawn, "lattice": self.points, "batch": self.batch}

    @property
    def keyed_plan(self) -> Plan:
        """The plan whose rule draws from the run's own nonce: what `plan` must be."""
        return self.plan.keyed(*key_words(self.nonce, self.seed, self.model_hash, self.noise))

    @property
    def key_settings(self) -> str:
        """The settings that the key of the noise depends on, beside model, input and nonce."""
        values = (self.data_hash or self.data, self.shape, self.plan.to_dict(), self.lattice)
        return json.dumps(values, sort_keys=True)

    @property
    def curves(self) -> Curves:
        """The radii of any noise in the run's norms; curves are made when first asked for."""
        dim, lattice = math.prod(self.shape), self.points
        return Curves(self.parsed_norms, dim, searched=self.searched, lattice=lattice)

    @property
    def parsed_norms(self) -> tuple[Norm, ...]:
        """The norms as values."""
        return tuple(parse_norm(text) for text in self.norms)

    def one_norm(self, wanted: str | None) -> str:
        """A norm that the run has radii in: the one asked for, or the only one."""
        if wanted is None and len(self.norms) > 1:
            raise RunError(f"the run has the norms {', '.join(self.norms)}: say which with --norm")
        return self.some_norms(None if wanted is None else [wanted])[0]

    def some_norms(self, wanted: Sequence[str] | None) -> list[str]:
        """Norms that the run has radii in: those asked for, or all."""
        texts = self.norms if wanted is None else [parse_norm(one).text for one in wanted]
        for text in texts:
            if text not in self.norms:
                raise RunError(f"the run has the norms {', '.join(self.norms)}, not {text}")
        return list(dict.fromkeys(texts))

    def indices(self, size: int) -> list[int]:
        """The inputs that the run is about, of data with so many."""
        every = range(0, size, self.skip)
        every = every if self.max is None else every[: self.max]
        if len(every) > MOST_INPUTS:
            raise RunError(f"the run says that it has {len(every)} inputs: it is damaged")
        return list(every)


def changes(
    old: Mapping[str, Any], new: Mapping[str, Any], free: frozenset[str] = frozenset()
) -> str:
    """What differs between the settings of a folder and those given now; "" where nothing does."""
    differing = sorted(k for k in {*old, *new} - free if old.get(k) != new.get(k))
    return "; ".join(f"{k}: {old.get(k)!r} there, {new.get(k)!r} now" for k in differing)


def _whole(least: int, most: int = 1 << 200) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            end = f" and at most {most}" if most < 1 << 63 else ""
            raise ValueError(f"a whole number, at least {least}{end}, is needed")
        return value

    return read


def _text(value: Any) -> str:
    """A text that is shown as it is: nothing in it moves a cursor or turns the line round."""
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError("a text of printable characters is needed")
    return value


def _exactly(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, kind):
            raise ValueError(f"a {kind.__name__} is needed")
        return value

    return read


def _or_none(reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else reader(value)


def _shape(value: Any) -> tuple[int, ...]:
    found = tuple(_whole(1)(one) for one in _exactly(list)(value))
    if math.prod(found) > 1 << 40:
        raise ValueError("more values than any input has")
    return found


def _norms(value: Any) -> tuple[str, ...]:
    texts = tuple(parse_norm(one).text for one in _exactly(list)(value))
    if not texts or list(texts) != value or len(set(texts)) < len(texts):
        raise ValueError("different norms, written as unicr writes them, are needed")
    return texts


def key_words(nonce: str | None, seed: int | None, model: str, noise: str) -> tuple[str, ...]:
    """What the rule of a run draws from: the nonce, in an experiment the seed, and its subject."""
    return (nonce or f"seed {seed}", model, noise)


READERS: dict[str, Callable[[Any], Any]] = {  # by the name of a field, or by its type
    "seed": lambda value: None if value is None else _whole(-(1 << 200))(value),
    "nonce": lambda value: None if value is None else checked_nonce(_exactly(str)(value)),
    "lattice": lambda value: None if value is None else Lattice.parse(_exactly(str)(value)).text,
    "skip": _whole(1),
    "batch": _whole(1, 1 << 24),
    "str": _text,
    "bool": _exactly(bool),
    "int": _whole(0),
    "int | None": _or_none(_whole(1)),
    "str | None": _or_none(_text),
    "tuple[int, ...]": _shape,
    "tuple[str, ...]": _norms,
    "Plan": Plan.from_dict,
    "dict[str, Any] | None": _or_none(_exactly(dict)),
    "list[str | int] | None": _or_none(_exactly(list)),
    "dict[str, str] | None": _or_none(_exactly(dict)),
}
