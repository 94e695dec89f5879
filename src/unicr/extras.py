"""Import a dependency that is optional, or say which extra brings it.

`torch` here is torch itself, loaded when it is first used: whoever checks certificates needs none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from unicr.errors import MissingExtraError

if TYPE_CHECKING:
    import torch as torch

# Dependencies whose extra has another name, or which are imported without `require`.
EXTRAS = {"torch": "torch", "safetensors": "torch", "matplotlib": "plots"}


def require(module: str, extra: str | None = None) -> ModuleType:
    """The optional `module`, imported; `extra` of pyproject.toml brings it (by its own name)."""
    root = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != root:
            raise
        raise missing(root, extra or EXTRAS.get(root, root)) from None


def missing(module: str, extra: str) -> MissingExtraError:
    """The error that names the extra to install."""
    return MissingExtraError(
        f"this needs {module}, which is not installed: pip install 'unicr[{extra}]'"
    )


def name_missing_extra(error: ModuleNotFoundError) -> MissingExtraError | None:
    """The same where a plain import failed; None if the module is of no extra."""
    root = (error.name or "").partition(".")[0]
    return missing(root, EXTRAS[root]) if root in EXTRAS else None


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package of which these names load their modules on first use."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return find


class _Lazy(ModuleType):
    """A module that is imported when one of its names is first asked for."""

    def __getattr__(self, name: str) -> Any:
        # inspect and doctest ask every module for names of this kind: that is no use of it
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        value = getattr(require(self.__name__), name)
        setattr(self, name, value)  # found at once the next time
        return value


if not TYPE_CHECKING:
    torch = _Lazy("torch")
