"""Arrays kept on disk between runs, for one user of one machine.

Files are written atomically and carry a keyed digest; one that is damaged, or that somebody else
wrote, is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import math
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from unicr.errors import RunError
from unicr.folder import replace_file
from unicr.values import Array

# Raise this by one when a change makes any stored curve differ from a new one. The golden radii of
# tests/golden fail on such a change and say so; a change of comments or names needs nothing.
NUMERICS = 7
# The curves that come with the package are used with these numerics only. Whoever raises NUMERICS
# makes them again, or proves what they may lack, and says so in SHIPPED_LACK. They were made with
# 6, which differs in curves of tables, of laws that are 0 somewhere and of (f). The packaged ones
# are of positive and even densities by formula; where (j) proves little, new ones reach further.
SHIPPED_FOR = 7
# What H of each coordinate may lack in the packaged curves, beside today's proofs: they were made
# with 1e-15 where KERNEL_ROUNDING of `bellman/_verify.py` says 1.3e-14
# (docs/theory.md#packaged-curves).
SHIPPED_LACK = 1.3e-14
VARIABLE = "UNICR_CACHE_DIR"
PROVED, SEARCHED = "curve-proved", "curve-searched"  # kinds of curves
RADIUS_STEP = 4e-4  # between the radii of a shipped curve, as a share of them
PROBIT_STEP = 4e-5  # of −Φ⁻¹(1 − p), as a share of it
PACKED_CHARGE = 1e-12  # of a radius, off it twice: exp and log of some hundred are right to 1e-13
# Of a step of the probit, onto it: log, division and ndtri are right to 1e-14, 1e-9 of a step.
PROBIT_CHARGE = 1e-6


def choose_folder() -> Path:
    """The cache folder: in $UNICR_CACHE_DIR, or in the platform's own place for caches."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given) / f"numerics-{NUMERICS}"
    from platformdirs import user_cache_path

    return user_cache_path("unicr", appauthor=False) / f"numerics-{NUMERICS}"


def name_curve(kind: str, key: str) -> str:
    """The name of a shipped curve."""
    return f"{kind}-{hashlib.sha256(key.encode()).hexdigest()[:24]}"


@cache
def load_shipped_curves() -> Mapping[str, NDArray[Any]]:
    """Curves of standard shapes that come with the package, packed, by name.

    `tools/make_curves.py` makes them, and a test makes a sample of them again.
    """
    path = Path(__file__).parent / "shipped.npz"
    if SHIPPED_FOR != NUMERICS or not path.is_file():
        return {}
    with np.load(path, allow_pickle=False) as file:  # not kept open: a forked process shares it
        return dict(file)


def pack_steps(alpha: Array, radius: Array) -> NDArray[np.int32]:
    """Steps (1 − p, r), r proved at p, as whole numbers that compress well; never more than given.

    Radii are e^(kS). At each of them −Φ⁻¹(1 − p) of the next step that reaches so far is kept,
    rounded up to e^(jQ): first k, then the j by their differences. A step that is read back is at
    most one that was given, at no smaller p. See docs/theory.md#packaged-curves.
    """
    order = np.argsort(radius, kind="stable")
    alpha, radius = np.maximum.accumulate(alpha[order][::-1])[::-1], radius[order]
    used = (alpha > 0) & (alpha < 0.5) & (radius > 0)
    alpha, radius = alpha[used], radius[used] * (1 - PACKED_CHARGE)
    first, last = (
        math.ceil(math.log(radius[0]) / RADIUS_STEP),
        math.floor(math.log(radius[-1]) / RADIUS_STEP),
    )
    reached = np.searchsorted(radius, np.exp(RADIUS_STEP * np.arange(first, last + 1)))
    probit = np.log(-special.ndtri(alpha[reached]))
    level = np.ceil(probit / PROBIT_STEP + PROBIT_CHARGE).astype(np.int32)
    return np.concatenate([[first], level[:1], np.diff(level)]).astype(np.int32)


def unpack_steps(numbers: NDArray[Any]) -> tuple[Array, Array]:
    """(1 − p, r) of `pack_steps`; rows of numbers are such a pair already."""
    if numbers.ndim == 2:
        return numbers[0].astype(np.float64), numbers[1].astype(np.float64)
    level = np.cumsum(numbers[1:], dtype=np.int64)
    radius = np.exp(RADIUS_STEP * (int(numbers[0]) + np.arange(len(level))))
    return special.ndtr(-np.exp(PROBIT_STEP * level)), radius * (1 - PACKED_CHARGE)


def read_shipped(kind: str, key: str, dim: int) -> tuple[Array, Array] | None:
    """The steps of a curve that comes with the package, None if it has none.

    Steps of a proved curve are moved to a larger p_A by what they may lack in `dim` dimensions
    (docs/theory.md#packaged-curves).
    """
    numbers = load_shipped_curves().get(name_curve(kind, key))
    if numbers is None:
        return None
    alpha, radius = unpack_steps(numbers)
    if kind == SEARCHED:
        return alpha, radius
    alpha = alpha - 2 * dim * SHIPPED_LACK
    return alpha[alpha > 0], radius[alpha > 0]


_ignoring: ContextVar[bool] = ContextVar("ignoring", default=False)


@contextlib.contextmanager
def without_stored() -> Iterator[None]:
    """Inside, nothing is read from this machine's disk or written to it: arrays are made again.

    Those that come with the package stay: they are part of what a reader of the package believes.
    """
    token = _ignoring.set(True)
    try:
        yield
    finally:
        _ignoring.reset(token)


def load_or_make(kind: str, key: str, make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """The arrays stored under (`kind`, `key`), or those of `make`, then stored.

    Safe with several writers (each writes its own file and renames it). Whatever cannot be read,
    or was written for another key or by other sources, is made again; a folder that cannot be
    written to costs only the storing.
    """
    if _ignoring.get():
        return make()
    path = choose_folder() / f"{kind}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.npz"
    stored = _read(path, key)
    if stored is not None:
        return stored
    arrays = make()
    with contextlib.suppress(OSError, RunError):
        _write(path, key, arrays)
    return arrays


def _machine_key(folder: Path) -> bytes:
    """A random key that only this user can read, made on first use beside the stored curves.

    A file that somebody else wrote into the cache does not have its digest under this key.
    """
    path = folder / "key"
    with contextlib.suppress(FileExistsError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(32))
    # Another process may have made the file and not written it yet.
    for _ in range(100):
        if len(secret := path.read_bytes()) == 32:
            return secret
        time.sleep(0.01)
    raise OSError(f"{path} is damaged")


def _digest(folder: Path, key: str, arrays: dict[str, Array]) -> str:
    digest = hmac.new(_machine_key(folder), key.encode(), hashlib.sha256)
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def _read(path: Path, key: str) -> dict[str, Array] | None:
    """The arrays of a file, None if it is missing, damaged, or not written by this user."""
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        seal = arrays.pop("seal")
        honest = hmac.compare_digest(str(seal), _digest(path.parent, key, arrays))
    except Exception:  # a damaged archive can raise anything; the curve is then made again
        return None
    return arrays if honest else None


def _write(path: Path, key: str, arrays: dict[str, Array]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    seal = np.array(_digest(path.parent, key, arrays))
    with replace_file(path) as file:
        np.savez(file, seal=seal, **arrays)  # type: ignore[arg-type]
