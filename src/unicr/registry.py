"""How unicr finds noise families, rules, adapters, commands, …: by their being there.

Each kind of thing has one `Catalogue`: the modules of one package of unicr, and the entry points of
one group, which any installed distribution may declare in its `pyproject.toml`:

    [project.entry-points."unicr.families"]
    student = "my_package.student"

The groups stand in docs/plugins.md. An entry point names a module, of which everything of the kind
is taken, or one thing of a module (`my_package.student:Student`). A plugin that cannot be used is
left out with one `PluginWarning` that names its distribution; the rest works as if it were absent.
A plugin never replaces what unicr has: a name that is taken is refused.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from threading import RLock
from types import ModuleType
from typing import Any, ClassVar, Self, TypeVar, cast

from unicr.errors import CertifyError, SpecError, UnicrError, did_you_mean, one_line
from unicr.text import read_call, write_call

Thing = TypeVar("Thing")


class PluginWarning(UserWarning):
    """Something of another distribution that cannot be used, and why."""


class Catalogue(Mapping[str, Thing]):
    """Everything of one kind by its name, loaded on first use.

    `base` is the class of which the things are instances, or subclasses where `classes` is set.
    Their names are those of their attribute `name`, or else of the place where they were found.
    `sort` orders them. `check` raises where a thing lacks what every user of it relies on.
    """

    def __init__(
        self,
        group: str,
        package: str,
        base: type[Any],
        *,
        classes: bool = False,
        sort: Callable[[Thing], Any] | None = None,
        check: Callable[[Thing], object] | None = None,
    ) -> None:
        self.group, self.package = group, package
        self._base, self._classes = base, classes
        self._sort, self._check = sort, check
        self._things: dict[str, Thing] | None = None
        self._added: list[Thing] = []
        self._lock = RLock()

    def __getitem__(self, name: str) -> Thing:
        return self._load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def __repr__(self) -> str:
        return f"Catalogue({self.group}: {', '.join(self)})"

    def add(self, thing: Thing) -> Thing:
        """Make a thing of this process known, as if an installed distribution had declared it."""
        with self._lock:
            things = self._load()
            self._put(things, "this process", [*self._added, thing])
            self._arrange(things)
            self._added.append(thing)
        return thing

    def reload(self) -> None:
        """Look again: at the modules that are there now, and the distributions."""
        _every_entry.cache_clear()
        with self._lock:
            self._things = None

    def _load(self) -> dict[str, Thing]:
        with self._lock:
            if self._things is None:
                things: dict[str, Thing] = {}
                for module in modules_of(self.package):
                    self._put(things, module.__name__, self._of_module(module))
                self._arrange(things)
                # Plugins come last: while they are imported they may ask for what unicr has.
                self._things = things
                for point in entries(self.group):
                    source = f"{distribution_of(point)}: {point.name}"
                    with leave_out_if_broken(point):
                        self._put(things, source, self._of_entry(point))
                self._put(things, "this process", self._added)
                self._arrange(things)
            return self._things

    def _arrange(self, things: dict[str, Thing]) -> None:
        if (sort := self._sort) is not None:
            ordered = sorted(things.items(), key=lambda pair: sort(pair[1]))
            things.clear()
            things.update(ordered)

    def _put(self, things: dict[str, Thing], source: str, new: Iterable[Thing]) -> None:
        named: dict[str, Thing] = {}
        for i, thing in enumerate(new):
            name = getattr(thing, "name", None)
            name = name if isinstance(name, str) else f"{source}:{i}"
            known = things.get(name, named.get(name))
            if known is thing:  # there already: a module may hold what it imports from another
                continue
            if known is not None:
                raise UnicrError(f"the name {name!r} is already used")
            if self._check is not None:
                self._check(thing)
            if self._sort is not None:
                self._sort(thing)
            named[name] = thing
        things.update(named)

    def _of_module(self, module: ModuleType) -> list[Thing]:
        """What a module defines, or as values holds, alone or in tuples."""
        if self._classes:
            return [
                value
                for value in vars(module).values()
                if self._fits(value) and value.__module__ == module.__name__
            ]
        things: dict[int, Thing] = {}
        for value in vars(module).values():
            for thing in value if isinstance(value, tuple) else (value,):
                if self._fits(thing):
                    things[id(thing)] = thing
        return list(things.values())

    def _of_entry(self, point: EntryPoint) -> list[Thing]:
        value = point.load()
        if isinstance(value, ModuleType):
            things = self._of_module(value)
        else:
            things = list(value) if isinstance(value, tuple) else [value]
            things = things if all(map(self._fits, things)) else []
        if not things:
            kind = "subclass" if self._classes else "instance"
            raise UnicrError(f"{point.value} contains no {kind} of {self._base.__name__}")
        return things

    def _fits(self, value: object) -> bool:
        if not self._classes:
            return isinstance(value, self._base)
        below = isinstance(value, type) and issubclass(value, self._base)
        return below and not inspect.isabstract(value)


def modules_of(package: str) -> list[ModuleType]:
    """Every module of a package whose name no underscore hides, imported, in the order of names.

    Of a module that is no package, itself.
    """
    home = importlib.import_module(package)
    path = getattr(home, "__path__", None)
    if path is None:
        return [home]
    names = [module.name for module in pkgutil.iter_modules(path) if module.name[0] != "_"]
    return [importlib.import_module(f"{package}.{name}") for name in names]


def entries(group: str) -> list[EntryPoint]:
    """The entry points of a group, by their names and the names of their distributions."""
    points = _every_entry().select(group=group)
    return sorted(points, key=lambda point: (point.name, distribution_of(point)))


@cache
def _every_entry() -> EntryPoints:
    # Reads a file of every installed distribution, so it is asked for all groups at once.
    return cast("EntryPoints", entry_points())


def distribution_of(point: EntryPoint) -> str:
    """Name and version of the distribution that declares an entry point."""
    return "no distribution" if point.dist is None else f"{point.dist.name} {point.dist.version}"


@contextmanager
def leave_out_if_broken(point: EntryPoint) -> Iterator[None]:
    """A block that loads one entry point: what goes wrong inside is one warning, and no more.

    A plugin is somebody else's code, and may raise anything, SystemExit too, when it is imported.
    """
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        reason = str(error) if isinstance(error, UnicrError) else one_line(error)
        warnings.warn(
            f"{distribution_of(point)}: its plugin {point.name!r} ({point.group}) is left out: "
            f"{reason}",
            PluginWarning,
            stacklevel=2,
        )


class Registered:
    """A value with a name and numbers, `target(radius=0.5)`: as text, and as JSON in a spec.

    A subclass is a frozen dataclass with a `name`, found by its `catalogue`.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    catalogue: ClassVar[Catalogue[Any]]

    @classmethod
    def known(cls) -> Catalogue[type[Self]]:
        """Every one by its name: `Rule.known().add(Mine)` makes one of this process known too."""
        return cls.catalogue

    @property
    def text(self) -> str:
        """The form that `parse` reads."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return write_call(self.name, {key: value for key, value in values.items() if value})

    @classmethod
    def parse(cls, text: str) -> Self:
        """The value that `text` names. Nothing is evaluated."""
        try:
            call = read_call(text)
            if call.positional:
                raise SpecError("its numbers have no names")
        except SpecError as error:
            raise CertifyError(
                f"cannot read the {cls.kind} {text!r} ({error}): write it as NAME or "
                f"NAME(SETTING=NUMBER), with one of {', '.join(cls.catalogue)}"
            ) from None
        return cls.from_dict({"name": call.name, **call.named})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a spec."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {"name": self.name, **values}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        settings = dict(values)
        name, known = str(settings.pop("name", None)), cls.catalogue
        if name not in known:
            hint = did_you_mean(name, known)
            raise CertifyError(
                f"there is no {cls.kind} {name!r}: {hint}there are {', '.join(known)}"
            )
        return known[name].read(settings)

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """The value with these settings, which are numbers; a subclass may read others."""
        known = {f.name for f in fields(cls)}  # type: ignore[arg-type]
        for key, value in settings.items():
            if key not in known or isinstance(value, str | bool | list | dict):
                raise CertifyError(f"the {cls.kind} {cls.name} has no setting {key}={value!r}")
        try:
            return cls(**settings)
        except TypeError as error:
            raise CertifyError(f"the {cls.kind} {cls.name}: {error}") from None
