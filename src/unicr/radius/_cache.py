"""Arrays kept on disk between runs: atomic writes, and a damaged file is simply made again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unicr.values import Array

NUMERICS = ("noise", "tradeoff", "radius")
VARIABLE = "UNICR_CACHE_DIR"


@cache
def fingerprint() -> str:
    """A digest of the sources that numbers come from: another one has a cache of its own."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256(np.__version__.encode())
    for room in NUMERICS:
        for file in sorted((package / room).rglob("*.py")):
            digest.update(file.relative_to(package).as_posix().encode() + b"\0")
            digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def folder() -> Path:
    """The cache folder: in $UNICR_CACHE_DIR, or in the platform's own place for caches."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given) / fingerprint()
    from platformdirs import user_cache_path

    return user_cache_path("unicr", appauthor=False) / fingerprint()


def name_of(kind: str, key: str) -> str:
    """The name of a shipped curve."""
    return f"{kind}-{hashlib.sha256(key.encode()).hexdigest()[:24]}"


@cache
def shipped() -> dict[str, NDArray[np.float32]]:
    """Curves of standard shapes that come with the package: rows 1 − p and radius, rounded down.

    Made by `tools/make_curves.py`; a test makes a sample of them again.
    """
    path = Path(__file__).parent / "shipped.npz"
    if not path.is_file():
        return {}
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def cached(kind: str, key: str, make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """The arrays shipped or stored under (`kind`, `key`), or those of `make`, then stored.

    Safe with several writers (each writes its own file and renames it). Whatever cannot be read,
    or was written for another key or by other sources, is made again; a folder that cannot be
    written to costs only the storing.
    """
    given = shipped().get(name_of(kind, key))
    if given is not None:
        return {"alpha": given[0].astype(np.float64), "radius": given[1].astype(np.float64)}
    path = folder() / f"{kind}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.npz"
    stored = _read(path, key)
    if stored is not None:
        return stored
    arrays = make()
    with contextlib.suppress(OSError):
        _write(path, key, arrays)
    return arrays


def _digest(key: str, arrays: dict[str, Array]) -> str:
    digest = hashlib.sha256(key.encode())
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def _read(path: Path, key: str) -> dict[str, Array] | None:
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zipfile.error):
        return None
    seal = arrays.pop("seal", None)
    if seal is None or str(seal) != _digest(key, arrays):
        return None
    return arrays


def _write(path: Path, key: str, arrays: dict[str, Array]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, seal=np.array(_digest(key, arrays)), **arrays)  # type: ignore[arg-type]
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
