"""What users' files may ask of this machine, to run their code and to fill memory; their digest."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZipInfo

from unicr.errors import SpecError, UnicrError, foreign
from unicr.text import split_reference

LARGE = 1 << 28  # bytes; what unpacks to less harms nobody, however small the file is
RATIO = 200  # unpacked by stored bytes: deflate reaches 1030, data worth reading comes nowhere near


@lru_cache(maxsize=64)
def _module(path: Path, stamp: int) -> ModuleType:
    name = f"_unicr_user_{path.stem}_{abs(hash((path, stamp)))}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SpecError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with foreign(SpecError, f"{path} failed to load"):
            spec.loader.exec_module(module)
    except SpecError:
        del sys.modules[name]
        raise
    return module


def load_object(reference: str) -> Any:
    """The object `name` of `path/to/file.py:name`. Runs that file: only load what you trust."""
    file, name = split_reference(reference)
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise SpecError(f"no file {file} (named in {reference!r})")
    module = _module(path, path.stat().st_mtime_ns)
    if not hasattr(module, name):
        known = [n for n in vars(module) if not n.startswith("_")]
        raise SpecError(f"{file} has no {name!r}; it has {', '.join(known[:20]) or 'no names'}")
    return getattr(module, name)


def is_among(file: str | Path, named: Iterable[str | Path]) -> bool:
    """Whether a file is one of those named, under whatever path."""
    return Path(file).expanduser().resolve() in {Path(one).expanduser().resolve() for one in named}


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def combined_digest(*parts: str) -> str:
    """One digest of several texts without line breaks."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def check_size(path: Path, size: int, stored: int, kind: type[UnicrError]) -> None:
    """Refuse a file that unpacks to more than memory, or from `stored` bytes to far more."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory:
        raise kind(f"{path} needs {size:.3g} bytes of memory and this machine has {memory:.3g}")
    if size > LARGE and size > RATIO * stored:
        raise kind(
            f"{path} unpacks {stored} bytes to {size}: a decompression bomb? If you trust it, "
            "save it without compression"
        )


def check_unpacked(path: Path, parts: Iterable[ZipInfo], kind: type[UnicrError]) -> None:
    """`check_size` of all parts of a zip archive together; no part can give more than it says."""
    parts = list(parts)
    check_size(path, sum(p.file_size for p in parts), sum(p.compress_size for p in parts), kind)
