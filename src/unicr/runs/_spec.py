"""The spec of a run: one record of all that decides its results, as values and as JSON.

Where and when the work was done decides nothing, and is a record of its own (`Execution`).
"""

from __future__ import annotations

import hashlib
import math
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy

import unicr
from unicr.errors import NoiseError, RunError, UnicrError, listed
from unicr.extras import torch
from unicr.folder import refuse_changes
from unicr.noise import FAMILIES, Lattice, Noise, from_data, parse, to_data
from unicr.noise.internal import check_parses
from unicr.norms import Norm, parse_norm
from unicr.runs._database import canonical
from unicr.runs._require import Requirement
from unicr.smoothing import (
    CODE,
    ClosedNoise,
    Curves,
    Plan,
    check_nonce,
    read_noise,
)

MOST_INPUTS = 100_000_000
FORMAT = 5  # of a run folder; one of another number is refused
# What names a family, here or elsewhere: no table of another density is called so.
_FAMILY_NAME = re.compile(
    rf"\b({'|'.join(word for f in FAMILIES.values() for word in (f.name, *f.elsewhere))})\b",
    re.IGNORECASE,
)
GIVEN, DRAWN = "given", "drawn"  # a nonce from outside, or one that the run drew by itself
LOADING = {  # arguments of `load_classifier` that a run keeps, with their types
    "weights": str,
    "mean": list | float | int,
    "std": list | float | int,
    "num_classes": int,
    "precision": str,
    "compile": bool,
}
# What may differ when a run goes on: where its model lies, and the size and layout of its passes,
# which the run itself has (`Job.resume`).
FREE = frozenset({"batch", "channels_last", "loading"})


@dataclass(frozen=True, kw_only=True)
class Spec:
    """All that decides the results of a run, then what is needed to open model and data again.

    Noise comes from the `nonce`, or in an experiment from the `seed`, on the points of a `lattice`
    or (None) as real numbers; every `skip`-th input is certified, at most `max` of them. `batch`
    is how many inputs a pass has and `channels_last` their order in memory: scores may depend on
    both in their last bit, so they belong to the function that is certified.

    `model_hash` is of the whole model, `model_digests` of it and its preprocessing apart; `classes`
    are its own names for its labels, or those of the data. `inputs` is a digest of the number, hash
    and label of every input that is certified, `split` the part of the data that they are from.
    `all_norms` are the norms that the same votes serve: those of the run, or where a search writes
    one run for each norm, those of all of them. `nonce_origin` says who draws the nonce, and
    `require` what the run is to show; both are fixed before a number is drawn.

    `model` and `data` are how they were named, `loading` and `reading` arguments of
    `load_classifier` and `load_dataset`.
    """

    model_hash: str
    model_digests: dict[str, str]
    shape: tuple[int, ...]
    data_size: int
    inputs: str
    split: str | None
    noise: Noise
    norms: tuple[Norm, ...]
    all_norms: tuple[Norm, ...]
    plan: Plan
    searched: bool
    skip: int
    max: int | None
    batch: int
    channels_last: bool
    lattice: Lattice | None
    seed: int | None
    nonce: str | None
    nonce_origin: str | None
    require: tuple[str, ...]
    classes: tuple[str | int, ...] | None
    model: str
    data: str
    loading: dict[str, Any]
    reading: dict[str, Any]

    def __post_init__(self) -> None:
        if (self.seed is None) == (self.nonce is None):
            raise RunError(
                "the settings of a run must have either a nonce or, for an experiment, a seed"
            )
        if (self.nonce is None) != (self.nonce_origin is None):
            raise RunError(
                "the settings of a run must say where the nonce is from, if there is one"
            )
        for text in (self.model, self.data):  # before hours are spent on what nobody could read
            if not text.isprintable():
                raise RunError(
                    f"the name {text!a} has characters that cannot be printed: rename the file or "
                    "folder"
                )
        for name in self.classes or ():
            if not _can_be_written(str(name)):
                raise RunError(
                    f"the class name {name!a:.60} has an incomplete character, which no file can "
                    "store"
                )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Spec:
        """Read and check the spec of a run. Nothing is executed: a noise that is code, of which the
        run has no numbers, stays closed.
        """
        given = dict(values)
        if given.pop("format", None) != FORMAT:
            raise RunError(
                f"the run has the format {values.get('format')!r}, but this version of unicr reads "
                f"{FORMAT}: use the version that wrote the run"
            )
        names = {field.name for field in fields(cls)} | {"noise_data"}
        if unknown := sorted(set(given) - names):
            raise RunError(
                f"the settings of the run have {listed(unknown)}, which unicr did not write"
            )
        if missing := sorted(names - set(given)):
            raise RunError(f"the run is damaged: its settings have no {missing[0]}")
        read: dict[str, Any] = {}
        for field in fields(cls):
            value = given[field.name]
            try:
                if field.name == "noise":
                    read["noise"] = _read_noise(_read_text(value), given["noise_data"])
                else:
                    read[field.name] = READERS[field.name](value)
            except (ValueError, TypeError, UnicrError) as error:
                raise RunError(
                    f"the setting {field.name} of the run is {value!r}, but {error}"
                ) from None
        return cls(**read)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the inverse of `from_dict`. A noise whose text does not say all is written
        as numbers too, so that nobody needs its code.
        """
        return {
            "format": FORMAT,
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "shape": list(self.shape),
            "noise": self.noise.text,
            "noise_data": None if self.noise_is_text else write_noise(self.noise),
            "norms": [norm.text for norm in self.norms],
            "all_norms": [norm.text for norm in self.all_norms],
            "require": list(self.require),
            "plan": self.plan.to_dict(),
            "lattice": None if self.lattice is None else self.lattice.text,
            "classes": None if self.classes is None else list(self.classes),
        }

    @property
    def decides(self) -> dict[str, Any]:
        """What decides the run before a number is drawn, as plain values: no name of a file, no
        text that anybody may choose but the names of classes, and not the draw (nonce, seed).

        The noise stands there as numbers, and what its rule draws from the nonce is left out. The
        norms are those that the votes serve together (`all_norms`).
        """
        values = self.to_dict()
        data = values.pop("noise_data")
        noise = self.noise.text if self.noise_is_text else _list_numbers(self.noise, data)
        left_out = {"format", "model", "data", "loading", "reading", "nonce", "seed", "norms"}
        values = {k: v for k, v in values.items() if k not in left_out}
        plan = self.plan.to_dict() | {"rule": self.plan.rule.with_key().to_dict()}
        return {"commitment": FORMAT, **values, "noise": noise, "plan": plan}

    @property
    def has_numbers(self) -> bool:
        """Whether the commitment holds all of the noise, and not only some values of its code."""
        return self.noise_is_text or write_noise(self.noise) is not None

    @property
    def noise_is_text(self) -> bool:
        """Whether its text says all of the noise: a family with its numbers, in no file."""
        return self.noise.made_by is not None and CODE not in self.noise.text

    @cached_property
    def commitment(self) -> str:
        """SHA-256 of `decides` in canonical JSON: one number that fixes all of the run but chance.

        Noise follows from SHA-256(commitment ‖ nonce) alone (`smoothing`): whoever fixes the nonce
        after the commitment is known leaves nothing to choose.
        """
        return hashlib.sha256(canonical(self.decides)).hexdigest()

    def refuse_changes(self, new: Spec, folder: object) -> None:
        """A run goes on with the settings it has. An experiment, whose noise follows from a seed,
        may have more inputs (a larger `max`); the noise of any other follows from its commitment,
        which has their number.
        """
        grown = self.max is not None and (new.max is None or new.max >= self.max)
        free = FREE | ({"max"} if grown and self.seed is not None else set())
        cure = "use another folder"
        if self.max != new.max:
            free = free | {"inputs"}  # follows from it
            cure += ": the commitment has the number of inputs" if grown else ""
        refuse_changes(folder, self.to_dict(), new.to_dict(), free, cure)

    @property
    def noises(self) -> tuple[Noise, ...]:
        """The run's noise, and those that its procedure names beside it."""
        return (self.noise, *self.plan.procedure.choices)

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
        """What a `VoteCounter` takes to draw the noise of the run again.

        The key of the noise is of the commitment and the nonce, and of each input, which the
        commitment has: of no name of a file and no other text.
        """
        drawn = {"seed": self.seed, "nonce": self.nonce, "commitment": self.commitment}
        passes = {"batch": self.batch, "channels_last": self.channels_last}
        return {**drawn, **passes, "lattice": self.lattice}

    @property
    def keyed_plan(self) -> Plan:
        """The plan whose rule draws from the commitment and the nonce, in an experiment from the
        seed: what `plan` must be.
        """
        own = (f"seed {self.seed}",) if self.nonce is None else (self.commitment, self.nonce)
        rule = self.plan.rule.with_key(*own)
        return self.plan if rule is self.plan.rule else replace(self.plan, rule=rule)

    @cached_property
    def curves(self) -> Curves:
        """The radii of any noise in the run's norms; curves are made when first asked for."""
        return Curves(self.norms, self.dim, searched=self.searched, lattice=self.lattice)

    @property
    def inputs_text(self) -> str:
        """Which inputs the run is about, in words."""
        every = "all" if self.skip == 1 else f"one in {self.skip} of"
        if self.max is not None and self.max < -(-self.data_size // self.skip):
            every = f"the first {self.max} of" + ("" if self.skip == 1 else f" {every}")
        split = "" if self.split is None else f" ({self.split} split)"
        return f"{every} {self.data_size} inputs{split}"

    @property
    def draw_text(self) -> str:
        """Where the noise is from, in words, with what that leaves open."""
        if self.nonce is None:
            return f"seed {self.seed}: an experiment, whose noise can be predicted and chosen"
        if self.nonce_origin == GIVEN:
            return f"nonce {self.nonce}, received after the commitment, as the run says"
        return f"nonce {self.nonce}, drawn by the author of the run, perhaps several times"

    def one_norm(self, wanted: str | None) -> str:
        """A norm that the run has radii in: the one asked for, or the only one."""
        if wanted is None and len(self.norms) > 1:
            there = ", ".join(self.norm_texts)
            raise RunError(f"the run has radii in several norms ({there}): choose one with --norm")
        return self.some_norms(None if wanted is None else [wanted])[0]

    def some_norms(self, wanted: Sequence[str] | None) -> list[str]:
        """Norms that the run has radii in: those asked for, or all."""
        there = self.norm_texts
        texts = there if wanted is None else [parse_norm(text).text for text in wanted]
        for text in texts:
            if text not in there:
                raise RunError(f"the run has radii in {', '.join(there)}, but not in {text}")
        return list(dict.fromkeys(texts))

    def indices(self, size: int) -> range:
        """The inputs that the run is about, of data with so many."""
        every = range(0, size, self.skip)
        every = every if self.max is None else every[: self.max]
        if len(every) > MOST_INPUTS:
            raise RunError(f"the run is damaged: it claims to have {len(every)} inputs")
        return every


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
            known = {field.name: values[field.name] for field in fields(cls)}
            texts = [known["device"], known["unicr"], known["date"], *known["versions"].values()]
            _read_whole(known["workers"])
            for text in texts:
                _read_text(text)
            return cls(**known)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(f"the execution record of the run cannot be read: {error!r}") from None


def _read_noise(text: str, data: Any) -> Noise:
    """The noise from its numbers where there are some, else from its text; code stays closed."""
    noise = read_noise(text) if data is None else from_data(_read_kind(dict, data))
    if noise.text != text:
        raise RunError(f"the numbers of the noise are those of {noise.text}")
    # A table of a density of its author's own has any name, but none that speaks of another noise.
    if data is not None and CODE not in text and _FAMILY_NAME.search(text):
        parse(text)
    return noise


def check_reads_back(noise: Noise) -> None:
    """Raise where whoever reads a run could not read its noise, from its table or its text."""
    data = write_noise(noise)
    if data is None:
        check_parses(noise)
    else:
        _read_noise(noise.text, data)


def _list_numbers(noise: Noise, data: dict[str, Any] | None) -> Any:
    """The law of a noise, kept as `data`, without the names that its author gave it.

    A density that only code gives is written down at fixed lengths; one that stays closed has its
    text alone, and whoever opens it again gets the numbers.
    """
    if isinstance(noise, ClosedNoise):
        return noise.text
    if data is not None:
        return _drop_names(data["noise"])
    lengths = np.geomspace(2.0**-20, 2.0**20, 161)
    radial = noise.radial
    values = None if radial is None else [float(v) for v in radial.radial_logpdf(lengths)]
    return {"dim": getattr(noise, "dim", None), "scale": noise.scale, "log_density": values}


def _drop_names(data: Any) -> Any:
    """Stored numbers of a noise without the file and the name that they were written under."""
    if not isinstance(data, dict):
        return data
    if "written" in data:  # a noise from a file, `times` a factor
        noise = _drop_names(data["noise"])
        return noise if data["times"] == 1 else {"noise": noise, "times": data["times"]}
    return {k: _drop_names(v) for k, v in data.items() if k != "density"}


def write_noise(noise: Noise) -> dict[str, Any] | None:
    """The noise as numbers; None if it rests on functions that have no table."""
    try:
        return to_data(noise)
    except NoiseError:
        return None


def _read_whole(value: Any, least: int = 0, most: int = 1 << 200) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        end = f" and at most {most}" if most < 1 << 63 else ""
        raise ValueError(f"a whole number, at least {least}{end}, is needed")
    return value


def _read_text(value: Any) -> str:
    """A text that is shown as it is: nothing in it moves a cursor or turns the line round."""
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError("a text of printable characters is needed")
    return value


def _can_be_written(text: str) -> bool:
    """Whether a file can hold a text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_kind(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"a {kind.__name__} is needed")
    return value


def _or_none(reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else reader(value)


def _read_shape(value: Any) -> tuple[int, ...]:
    shape = tuple(_read_whole(side, 1) for side in _read_kind(list, value))
    if math.prod(shape) > 1 << 40:
        raise ValueError("no input has so many values")
    return shape


def _read_norms(value: Any) -> tuple[Norm, ...]:
    norms = tuple(parse_norm(norm) for norm in _read_kind(list, value))
    if not norms or [norm.text for norm in norms] != value or len(set(norms)) < len(norms):
        raise ValueError("a list of different norms, written as unicr writes them, is needed")
    return norms


def _read_lattice(value: Any) -> Lattice:
    lattice = Lattice.parse(_read_kind(str, value))
    if lattice.text != value:
        raise ValueError(f"it should be written {lattice.text!r}")
    return lattice


def _read_digest(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{64}", value):
        raise ValueError("64 hexadecimal digits are needed")
    return value


def _read_one_of(known: tuple[str, ...], value: Any) -> str:
    if value not in known:
        raise ValueError(f"one of {', '.join(known)} is needed")
    return str(value)


def _read_texts(value: Any) -> dict[str, str]:
    return {_read_text(k): _read_text(v) for k, v in _read_kind(dict, value).items()}


def _read_classes(value: Any) -> tuple[str | int, ...]:
    if not all(isinstance(name, str | int) for name in _read_kind(list, value)):
        raise ValueError("class names must be texts or whole numbers")
    return tuple(value)


_read_flag = partial(_read_kind, bool)
_read_options = partial(_read_kind, dict)
_read_positive = partial(_read_whole, least=1)


READERS: dict[str, Callable[[Any], Any]] = {  # of each field but the noise
    "model_hash": _read_text,
    "model_digests": _read_texts,
    "shape": _read_shape,
    "data_size": _read_whole,
    "inputs": _read_digest,
    "split": _or_none(partial(_read_one_of, ("test", "train"))),
    "norms": _read_norms,
    "all_norms": _read_norms,
    "plan": Plan.from_dict,
    "searched": _read_flag,
    "skip": _read_positive,
    "max": _or_none(_read_positive),
    "batch": partial(_read_whole, least=1, most=1 << 24),
    "channels_last": _read_flag,
    "lattice": _or_none(_read_lattice),
    "seed": _or_none(partial(_read_whole, least=-(1 << 200))),
    "nonce": _or_none(lambda value: check_nonce(_read_kind(str, value))),
    "nonce_origin": _or_none(partial(_read_one_of, (GIVEN, DRAWN))),
    "require": lambda value: tuple(
        Requirement.parse(text).text for text in _read_kind(list, value)
    ),
    "classes": _or_none(_read_classes),
    "model": _read_text,
    "data": _read_text,
    "loading": _read_options,
    "reading": _read_options,
}
