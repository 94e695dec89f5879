"""unicr: certified robustness for any classifier, input, ℓp norm and continuous noise.

Sub-modules load on first use, so that `import unicr` is cheap.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.2.0"

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
    "tightness",
    "tradeoff",
)
_HOMES = {
    "classifier": ("Classifier", "Denoised", "Normalised", "load_classifier"),
    "data": ("Dataset", "fetch", "load_dataset"),
    "errors": ("UnicrError",),
    "guard": ("Guard",),
    "i_opt": ("IOpt", "i_opt_run"),
    "metrics": ("Scores", "robustness_score"),
    "noise": ("Noise", "from_density"),
    "norms": ("Norm", "parse_norm"),
    "radius": ("Radius", "RadiusCurve", "certified_radius"),
    "runs": ("Job", "Run", "certify_run", "load_run", "recertify", "replay", "verify"),
    "select": ("SelectiveClassifier", "Selector"),
    "smoothing": ("Certificate", "Plan", "Rule", "SmoothedClassifier"),
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_NAMES, *_SUBMODULES]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"unicr.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"unicr.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'unicr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
