"""Values that are known by a name: in a package of one file each, in a spec, and as text.

A subclass is a frozen dataclass with a `name`; a new one is a new file in its package, or an entry
point of another distribution.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

from unicr.errors import CertifyError, did_you_mean
from unicr.registry import Catalogue
from unicr.values import number


class Registered:
    """`target(radius=0.5)`: a name and numbers, equal where both are."""

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
        return f"{self.name}({', '.join(f'{k}={number(v)}' for k, v in values.items() if v)})"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The value that `text` names. Nothing is evaluated."""
        try:
            tree = ast.parse(text.strip(), mode="eval").body
            call = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
            assert isinstance(call.func, ast.Name)
            assert not call.args
            values = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
        except (SyntaxError, ValueError, AssertionError, RecursionError, MemoryError):
            raise CertifyError(
                f"cannot read the {cls.kind} {text!r}: write NAME or NAME(SETTING=NUMBER), with "
                f"one of {', '.join(cls.known())}"
            ) from None
        return cls.from_dict({"name": call.func.id, **values})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a spec."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {"name": self.name, **values}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        settings = dict(values)
        name, known = str(settings.pop("name", None)), cls.known()
        if name not in known:
            hint = did_you_mean(name, known)
            raise CertifyError(f"no {cls.kind} {name!r}: {hint}there are {', '.join(known)}")
        return known[name].read(settings)

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """The value with these settings, which are numbers; a subclass may read others."""
        own = {f.name for f in fields(cls)}  # type: ignore[arg-type]
        for key, value in settings.items():
            if key not in own or isinstance(value, str | bool | list | dict):
                raise CertifyError(f"the {cls.kind} {cls.name} has no setting {key}={value!r}")
        try:
            return cls(**settings)
        except TypeError as error:
            raise CertifyError(f"the {cls.kind} {cls.name}: {error}") from None
