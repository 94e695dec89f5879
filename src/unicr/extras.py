"""Import what is optional or only found by being there: dependencies, files of a package."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Any

from unicr.errors import MissingExtraError


def require(module: str, extra: str | None = None) -> ModuleType:
    """The optional `module`, imported; `extra` of pyproject.toml brings it (by its own name)."""
    root = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != root:
            raise
        raise MissingExtraError(
            f"this needs {root}, which is not installed: pip install 'unicr[{extra or root}]'"
        ) from None


def modules_of(package: str) -> list[ModuleType]:
    """Every module of a package whose name no underscore hides, imported, in the order of names."""
    path = importlib.import_module(package).__path__
    names = [module.name for module in pkgutil.iter_modules(path) if module.name[0] != "_"]
    return [importlib.import_module(f"{package}.{name}") for name in names]


def classes_of(package: str, kind: type) -> list[type[Any]]:
    """The classes of one kind that the modules of a package define."""
    named = [(one, module) for module in modules_of(package) for one in vars(module).values()]
    own = [one for one, home in named if isinstance(one, type) and one.__module__ == home.__name__]
    return list(dict.fromkeys(one for one in own if issubclass(one, kind)))
