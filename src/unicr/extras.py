"""Import a dependency that is optional, or say which extra brings it."""

from __future__ import annotations

import importlib
from types import ModuleType

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
