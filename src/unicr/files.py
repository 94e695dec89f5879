"""Load a Python object that a user names as `path/to/file.py:name`."""

from __future__ import annotations

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from unicr.errors import SpecError


@lru_cache(maxsize=64)
def _module(path: Path, stamp: int) -> ModuleType:
    name = f"_unicr_user_{path.stem}_{abs(hash((path, stamp)))}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SpecError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise SpecError(f"{path} failed to load: {type(error).__name__}: {error}") from error
    return module


def load_object(reference: str) -> Any:
    """The object `name` of `path/to/file.py:name`. Runs that file: only load what you trust."""
    file, _, name = reference.rpartition(":")
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise SpecError(f"no file {file} (named in {reference!r})")
    module = _module(path, path.stat().st_mtime_ns)
    if not hasattr(module, name):
        known = [n for n in vars(module) if not n.startswith("_")]
        raise SpecError(f"{file} has no {name!r}; it has {', '.join(known) or 'no names'}")
    return getattr(module, name)
