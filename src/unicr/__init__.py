"""unicr: certified robustness for any classifier, input, ℓp norm and continuous noise.

Sub-modules load on first use, so that `import unicr` is cheap.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_SUBMODULES = (
    "classifier",
    "data",
    "errors",
    "guard",
    "i_opt",
    "lab",
    "metrics",
    "noise",
    "norms",
    "radius",
    "runs",
    "select",
    "sklearn",
    "smoothing",
    "tradeoff",
)
_NAMES = {
    "Denoised": "classifier",
    "Normalised": "classifier",
    "SelectiveClassifier": "select",
    "SmoothedClassifier": "smoothing",
    "certified_radius": "radius",
    "load_run": "runs",
}

__all__ = ["__version__", *_NAMES, *_SUBMODULES]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"unicr.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"unicr.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'unicr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
