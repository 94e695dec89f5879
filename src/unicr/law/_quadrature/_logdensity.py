"""How is the user's log-density called, and what does it return?

It may take arrays, tensors or single numbers; whatever it takes, the rest of the package sees a
float64 array function that is -inf outside the declared support, or an error that names the fault.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import NoiseError
from unicr.values import Array

HINT = (
    "`logpdf` must return the LOG of the density (not the density itself), "
    "and the density must be integrable"
)
PATIENCE = 40.0  # seconds inside a user's function, before it is refused as too slow


class LogDensity:
    """The user's callable as a float64 array function, -inf outside the declared support."""

    def __init__(self, function: Callable[..., Any], support: tuple[float, float]):
        if not callable(function):
            raise NoiseError(f"logpdf must be a callable of one number, got {function!r}")
        self._function = function
        self.support = support
        self.patience = math.inf  # seconds that may yet be spent inside the function
        self._call = self._choose_call()

    def __call__(self, x: ArrayLike, *, ends: bool = False) -> Array:
        """Values inside the declared support; at its ends only if `ends` (they have no mass)."""
        x = np.asarray(x, dtype=np.float64)
        out = np.where(np.isnan(x), np.nan, -np.inf)
        inside = (x > self.support[0]) & (x < self.support[1]) & np.isfinite(x)
        if ends:
            inside |= ((x == self.support[0]) | (x == self.support[1])) & np.isfinite(x)
        if inside.any():
            start = time.perf_counter()
            with np.errstate(all="ignore"):
                out[inside] = self._call(x[inside])
            self.patience -= time.perf_counter() - start
            if self.patience < 0:
                raise NoiseError(
                    f"logpdf is too slow to integrate: it took more than {PATIENCE:.0f} s in "
                    "total; write it for arrays, make it faster, or name its modes and kinks with "
                    "`points`"
                )
        return out

    def strict(self, x: Array) -> Array:
        """Values at points where NaN is not tolerated."""
        value = self(x)
        bad = np.isnan(value)
        if bad.any():
            raise nan_error(float(x[bad][0]))
        return value

    def _choose_call(self) -> Callable[[Array], Array]:
        low, high = self.support
        anchor = low if math.isfinite(low) else high if math.isfinite(high) else 0.0
        if math.isfinite(low) and math.isfinite(high):
            probe = low + (high - low) * np.array([0.11, 0.23, 0.37, 0.51, 0.67, 0.83])
        else:
            sign = -1.0 if math.isfinite(high) else 1.0
            probe = anchor + sign * np.array([0.11, 0.23, 0.71, 1.3, 2.9, 5.3])
        for call in (self._on_array, self._on_tensor):
            try:
                with np.errstate(all="ignore"):
                    whole, part = call(probe), call(probe[::2])
            except _RefusedOutput as refused:
                raise NoiseError(str(refused)) from None
            except Exception:
                continue
            if np.allclose(whole[::2], part, rtol=1e-12, atol=1e-12, equal_nan=True):
                return call
        with np.errstate(all="ignore"):
            self._one_by_one(probe)
        return self._one_by_one

    def _on_array(self, x: Array) -> Array:
        return _as_float64(self._function(x), x.shape)

    def _on_tensor(self, x: Array) -> Array:
        if "torch" not in sys.modules:
            raise TypeError("no tensor library in use")
        return _as_float64(self._function(sys.modules["torch"].as_tensor(x.copy())), x.shape)

    def _one_by_one(self, x: Array) -> Array:
        out = np.empty(x.size)
        for i, value in enumerate(x.ravel()):
            try:
                result = self._function(value)
            except OverflowError:
                out[i] = np.nan
                continue
            except Exception as cause:
                raise NoiseError(
                    f"logpdf raised {type(cause).__name__} at x = {float(value):.17g}: {cause}; "
                    "it must accept every real number (return -inf if the density is zero) "
                    "or `support` must say where it is defined"
                ) from cause
            if isinstance(result, float):
                out[i] = result
                continue
            try:
                out[i] = _as_float64(result, ()).item()
            except (_RefusedOutput, TypeError, ValueError) as cause:
                raise NoiseError(
                    f"logpdf({float(value):.6g}) returned {_short(result)}: {cause}; it must map "
                    "one real number to one real number, the log of the density there"
                ) from cause
        return out.reshape(x.shape)


class _RefusedOutput(Exception):
    """An output that no other way of calling the function would repair."""


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def nan_error(x: float) -> NoiseError:
    return NoiseError(
        f"logpdf is NaN at x = {x:.17g}; return a number there (-inf if the density is zero) "
        "or exclude the point with `support`"
    )


def _as_float64(result: Any, shape: tuple[int, ...]) -> Array:
    if hasattr(result, "detach"):
        result = result.detach().cpu().numpy()
    array = np.asarray(result)
    if np.iscomplexobj(array):
        raise _RefusedOutput("logpdf returned complex numbers; a log-density is real")
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        raise _RefusedOutput(
            f"logpdf returned {array.dtype} numbers, which are not accurate enough: compute in "
            "float64"
        )
    if array.dtype.kind not in "fiub":
        raise TypeError(f"dtype {array.dtype} is not a real number")
    if array.shape != shape and not (shape == () and array.size == 1):
        raise ValueError(f"shape {array.shape} instead of {shape}")
    return array.astype(np.float64).reshape(shape)
