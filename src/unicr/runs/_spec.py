"""The spec of a run: one record of all that decides its results, as values and as JSON.

Where and when the work was done decides nothing, and is a record of its own (`Execution`).
"""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

import numpy as np
import scipy

import unicr
from unicr.errors import NoiseError, RunError, UnicrError, listed
from unicr.extras import torch
from unicr.folder import refuse_changes
from unicr.noise import Lattice, Noise, from_data, parse, to_data
from unicr.norms import Norm, parse_norm
from unicr.runs._database import canonical
from unicr.smoothing import (
    CODE,
    Certificate,
    ClosedNoise,
    Curves,
    Plan,
    Steps,
    checked_nonce,
    read_noise,
    record,
)

MOST_INPUTS = 100_000_000
FORMAT = 3  # of a run folder; one of another number is refused
LOADING = {  # arguments of `load_classifier` that a run keeps, with their types
    "weights": str,
    "mean": list | float | int,
    "std": list | float | int,
    "num_classes": int,
    "precision": str,
}
# What may differ when a run goes on: where its model lies, and the size of its passes, which the
# run itself has (`Job.resume`).
FREE = frozenset({"batch", "loading"})


@dataclass(frozen=True, kw_only=True)
class Spec:
    """All that decides the results of a run, then what is needed to open model and data again.

    Noise comes from the `nonce`, or in an experiment from the `seed`, on the points of a `lattice`
    or (None) as real numbers; every `skip`-th input is certified, at most `max` of them. `batch`
    decides how many inputs a pass has, and so belongs to the function that is certified.

    `model_hash` is of the whole model, `model_digests` of it and its preprocessing apart; `classes`
    are its own names for its labels, or those of the data. `model` and `data` are how they were
    named, `loading` and `reading` arguments of `load_classifier` and `load_dataset`.
    """

    model_hash: str
    shape: tuple[int, ...]
    data_size: int
    noise: Noise
    norms: tuple[Norm, ...]
    plan: Plan
    searched: bool
    skip: int
    max: int | None
    batch: int
    lattice: Lattice | None
    seed: int | None
    nonce: str | None
    classes: tuple[str | int, ...] | None
    model: str
    data: str
    model_digests: dict[str, str]
    data_hash: str | None
    loading: dict[str, Any]
    reading: dict[str, Any]

    def __post_init__(self) -> None:
        if (self.seed is None) == (self.nonce is None):
            raise RunError("a spec has either a nonce or, for an experiment, a seed")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Spec:
        """Read and check the spec of a run. Nothing is executed: a noise that is code, of which the
        run has no numbers, stays closed.
        """
        given = dict(values)
        if given.pop("format", None) != FORMAT:
            raise RunError(
                f"the run has the format {values.get('format')!r}, this version of unicr has "
                f"{FORMAT}: use the version that wrote it"
            )
        names = {one.name for one in fields(cls)} | {"noise_data"}
        if unknown := sorted(set(given) - names):
            raise RunError(f"the spec has {listed(unknown)}, which unicr did not write")
        if missing := sorted(names - set(given)):
            raise RunError(f"the spec has no {missing[0]}: the run is damaged")
        read: dict[str, Any] = {}
        for one in fields(cls):
            value = given[one.name]
            try:
                if one.name == "noise":
                    read["noise"] = _noise(_text(value), given["noise_data"])
                else:
                    read[one.name] = READERS[one.name](value)
            except (ValueError, TypeError, UnicrError) as error:
                raise RunError(f"the spec's {one.name} is {value!r}: {error}") from None
        return cls(**read)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the inverse of `from_dict`. The noise is written as text and as numbers, so
        that nobody needs its code.
        """
        closed = isinstance(self.noise, ClosedNoise)
        return {
            "format": FORMAT,
            **{one.name: getattr(self, one.name) for one in fields(self)},
            "shape": list(self.shape),
            "noise": self.noise.text,
            "noise_data": None if closed else _as_data(self.noise),
            "norms": list(self.norm_texts),
            "plan": self.plan.to_dict(),
            "lattice": None if self.lattice is None else self.lattice.text,
            "classes": None if self.classes is None else list(self.classes),
        }

    @property
    def decides(self) -> dict[str, Any]:
        """What decides the results, without the names of files and without the draw (nonce, seed):
        plain values, none of them free text but the names of classes.
        """
        names = {"model", "data", "model_digests", "loading", "reading", "nonce", "seed"}
        values = {k: v for k, v in self.to_dict().items() if k not in names}
        # numbers are the noise where there are some; its text may be the name of a file
        return values | ({} if values["noise_data"] is None else {"noise": None})

    @property
    def digest(self) -> str:
        """SHA-256 of `decides` in canonical JSON."""
        return hashlib.sha256(canonical(self.decides)).hexdigest()

    def refuse_changes(self, new: Spec, folder: object) -> None:
        """A run goes on with the settings it has; more inputs (a larger `max`) are welcome."""
        grown = self.max is not None and (new.max is None or new.max >= self.max)
        free = FREE | ({"max"} if grown else set())
        refuse_changes(folder, self.to_dict(), new.to_dict(), free)

    @property
    def dim(self) -> int:
        """How many values an input has."""
        return math.prod(self.shape)

    @property
    def scope(self) -> str:
        """Whether one g is certified at many points, or one for each input."""
        return self.plan.procedure.scope

    @property
    def norm_texts(self) -> tuple[str, ...]:
        """The norms as they are written."""
        return tuple(norm.text for norm in self.norms)

    @property
    def drawn(self) -> int:
        """A number that the run's noise follows from, for whoever needs noise of its own."""
        return int(self.nonce or "0", 16) if self.seed is None else self.seed

    @property
    def smoothing(self) -> dict[str, Any]:
        """What a `SmoothedClassifier` takes to draw the noise of the run again.

        The key of the noise depends on model, shape, plan, lattice, nonce and on each input itself:
        on no name of a file and no other text.
        """
        settings = key_settings(self.shape, self.plan, self.lattice)
        drawn = {"seed": self.seed, "nonce": self.nonce, "settings": settings}
        return {**drawn, "lattice": self.lattice, "batch": self.batch}

    @property
    def keyed_plan(self) -> Plan:
        """The plan whose rule draws from the run's own nonce: what `plan` must be."""
        return key_plan(self.plan, self.nonce, self.seed, self.model_hash, self.noise)

    @property
    def curves(self) -> Curves:
        """The radii of any noise in the run's norms; curves are made when first asked for."""
        return Curves(self.norms, self.dim, searched=self.searched, lattice=self.lattice)

    def steps(self, curves: Curves) -> Steps[Certificate]:
        """The procedure of one input, whose curves these are, with a record of its questions."""
        return record(self.plan.procedure.steps(self.plan, self.noise, curves))

    def one_norm(self, wanted: str | None) -> str:
        """A norm that the run has radii in: the one asked for, or the only one."""
        if wanted is None and len(self.norms) > 1:
            there = ", ".join(self.norm_texts)
            raise RunError(f"the run has the norms {there}: say which with --norm")
        return self.some_norms(None if wanted is None else [wanted])[0]

    def some_norms(self, wanted: Sequence[str] | None) -> list[str]:
        """Norms that the run has radii in: those asked for, or all."""
        there = self.norm_texts
        texts = there if wanted is None else [parse_norm(one).text for one in wanted]
        for text in texts:
            if text not in there:
                raise RunError(f"the run has the norms {', '.join(there)}, not {text}")
        return list(dict.fromkeys(texts))

    def indices(self, size: int) -> list[int]:
        """The inputs that the run is about, of data with so many."""
        every = range(0, size, self.skip)
        every = every if self.max is None else every[: self.max]
        if len(every) > MOST_INPUTS:
            raise RunError(f"the run says that it has {len(every)} inputs: it is damaged")
        return list(every)


@dataclass(frozen=True)
class Execution:
    """Where and when a run was begun; none of it decides a result."""

    workers: int
    device: str
    unicr: str
    date: str
    versions: dict[str, str]

    @classmethod
    def now(cls, workers: int, device: str) -> Execution:
        """Here, with what is installed."""
        versions = {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "torch": str(torch.__version__),
        }
        date = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(workers, device, unicr.__version__, date, versions)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Execution:
        """What a run says about its making: shown, and never believed."""
        try:
            known = {one.name: values[one.name] for one in fields(cls)}
            texts = [known["device"], known["unicr"], known["date"], *known["versions"].values()]
            _whole(0)(known["workers"])
            for text in texts:
                _text(text)
            return cls(**known)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(f"the execution record of the run cannot be read: {error!r}") from None


def key_plan(plan: Plan, nonce: str | None, seed: int | None, model: str, noise: Noise) -> Plan:
    """The plan with what its rule draws taken from the nonce, in an experiment from the seed, and
    from what it is about.
    """
    return plan.keyed(nonce or f"seed {seed}", model, noise.text)


def key_settings(shape: Sequence[int], plan: Plan, lattice: Lattice | None) -> str:
    """The settings that the key of the noise depends on, in one form."""
    points = None if lattice is None else lattice.text
    values = {"shape": list(shape), "plan": plan.to_dict(), "lattice": points}
    return canonical(values).decode()


def _noise(text: str, data: Any) -> Noise:
    """The noise from its numbers where there are some, else from its text; code stays closed."""
    if data is None:
        return read_noise(text)
    found = from_data(_exactly(dict)(data))
    if found.text != text:
        raise RunError(f"the run's noise is called {text}, its numbers are {found.text}")
    if CODE not in text:  # a noise that is no file's reads as what its name says
        parse(text)
    return found


def _as_data(noise: Noise) -> dict[str, Any] | None:
    """The noise as numbers; None where it rests on functions that have no table."""
    try:
        return to_data(noise)
    except NoiseError:
        return None


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


def _norms(value: Any) -> tuple[Norm, ...]:
    norms = tuple(parse_norm(one) for one in _exactly(list)(value))
    if not norms or [one.text for one in norms] != value or len(set(norms)) < len(norms):
        raise ValueError("different norms, written as unicr writes them, are needed")
    return norms


def _lattice(value: Any) -> Lattice:
    found = Lattice.parse(_exactly(str)(value))
    if found.text != value:
        raise ValueError(f"it should be written {found.text!r}")
    return found


def _classes(value: Any) -> tuple[str | int, ...]:
    if not all(isinstance(one, str | int) for one in _exactly(list)(value)):
        raise ValueError("names of classes are texts or whole numbers")
    return tuple(value)


READERS: dict[str, Callable[[Any], Any]] = {  # of each field but the noise
    "model_hash": _text,
    "shape": _shape,
    "data_size": _whole(0),
    "norms": _norms,
    "plan": Plan.from_dict,
    "searched": _exactly(bool),
    "skip": _whole(1),
    "max": _or_none(_whole(1)),
    "batch": _whole(1, 1 << 24),
    "lattice": _or_none(_lattice),
    "seed": _or_none(_whole(-(1 << 200))),
    "nonce": _or_none(lambda value: checked_nonce(_exactly(str)(value))),
    "classes": _or_none(_classes),
    "model": _text,
    "data": _text,
    "model_digests": _exactly(dict),
    "data_hash": _or_none(_text),
    "loading": _exactly(dict),
    "reading": _exactly(dict),
}
