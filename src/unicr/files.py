"""What users' files may ask of this machine, to run their code and to fill memory; their digest."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import json
import math
import os
import re
import stat
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
HALF = re.compile(r"\\u[dD][89a-fA-F]")  # how JSON writes half of a character
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
    except SpecError as error:
        del sys.modules[name]
        missing = getattr(error.__cause__, "name", None)
        if isinstance(error.__cause__, ModuleNotFoundError) and missing:
            beside = path.parent / str(missing).split(".")[0]
            if beside.is_dir() or beside.with_suffix(".py").is_file():
                raise SpecError(
                    f"{path} imports {missing}, which lies beside it: add the folder to PYTHONPATH"
                ) from None
        raise
    return module


def load_object(reference: str) -> Any:
    """The object `name` of `path/to/file.py:name`. Runs that file: only load what you trust."""
    file, name = split_reference(reference)
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise SpecError(f"there is no file {file} (named in {reference!r})")
    module = _module(path, path.stat().st_mtime_ns)
    if not hasattr(module, name):
        known = [n for n in vars(module) if not n.startswith("_")]
        raise SpecError(f"{file} has no {name!r}; it has {', '.join(known[:20]) or 'no names'}")
    return getattr(module, name)


def is_among(file: str | Path, named: Iterable[str | Path]) -> bool:
    """Whether a file is one of those named, under whatever path."""
    return Path(file).expanduser().resolve() in {
        Path(path).expanduser().resolve() for path in named
    }


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_plain(path: Path, most: int) -> bytes:
    """The bytes of a plain file of at most so many; OSError if it is a pipe, a device, a folder
    or longer: none of these may hold up whoever looks into a stranger's folder.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
    return content


def read_json(text: str | bytes) -> Any:
    """Plain values of a JSON text (bytes: of UTF-8) that says the same to every reader.

    ValueError if a name is given twice in one object (some programs take the first value, others
    the last), for numbers that JSON does not have or a float cannot hold, and for halves of
    characters, which no file can be written with.
    """
    text = text.decode() if isinstance(text, bytes) else text
    value = json.loads(
        text,
        object_pairs_hook=_refuse_repeats,
        parse_constant=_refuse_constant,
        parse_float=_read_finite,
    )
    if HALF.search(text):  # or a whole character: json writes those beyond U+FFFF as two halves
        json.dumps(value, ensure_ascii=False).encode()
    return value


def read_stored(value: Any) -> Any:
    """`read_json` of a cell of a table: ValueError if that is no text, which other programs may
    read in another way.
    """
    if not isinstance(value, str):
        raise ValueError(f"{value!s:.60} is not a JSON text")
    return read_json(value)


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(n for n in names if names.count(n) > 1)!r:.60} is given twice")
    return values


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


def _read_finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text:.30} is too large for a float")
    return value


def combine_digests(*parts: str) -> str:
    """One digest of several texts without line breaks."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def memory_size() -> int:
    """How many bytes of memory this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_size(path: Path, size: int, stored: int, kind: type[UnicrError]) -> None:
    """Refuse a file that unpacks to more than memory, or from `stored` bytes to far more."""
    memory = memory_size()
    if size > memory:
        raise kind(f"{path} needs {size:.3g} bytes of memory, but this machine has {memory:.3g}")
    if size > LARGE and size > RATIO * stored:
        raise kind(
            f"{path} unpacks {stored} bytes to {size}, which may be a decompression bomb: if you "
            "trust the file, save it without compression"
        )


def check_unpacked(path: Path, parts: Iterable[ZipInfo], kind: type[UnicrError]) -> None:
    """`check_size` of all parts of a zip archive together; no part can give more than it says."""
    parts = list(parts)
    check_size(path, sum(p.file_size for p in parts), sum(p.compress_size for p in parts), kind)
