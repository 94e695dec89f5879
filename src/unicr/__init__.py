"""unicr: certified robustness for any classifier, input, ℓp norm and continuous noise.

Sub-modules load on first use, so that `import unicr` is cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the names of `_HOMES`, for type checkers and editors
    from unicr.classifier import Classifier as Classifier
    from unicr.classifier import Denoised as Denoised
    from unicr.classifier import Normalised as Normalised
    from unicr.classifier import load_classifier as load_classifier
    from unicr.data import Dataset as Dataset
    from unicr.data import fetch as fetch
    from unicr.data import load_dataset as load_dataset
    from unicr.errors import UnicrError as UnicrError
    from unicr.guard import Guard as Guard
    from unicr.i_opt import IOpt as IOpt
    from unicr.i_opt import i_opt_run as i_opt_run
    from unicr.metrics import Scores as Scores
    from unicr.metrics import robustness_score as robustness_score
    from unicr.noise import Noise as Noise
    from unicr.noise import from_density as from_density
    from unicr.norms import Norm as Norm
    from unicr.norms import parse_norm as parse_norm
    from unicr.radius import Radius as Radius
    from unicr.radius import RadiusCurve as RadiusCurve
    from unicr.radius import certified_radius as certified_radius
    from unicr.runs import Job as Job
    from unicr.runs import Run as Run
    from unicr.runs import certify_run as certify_run
    from unicr.runs import load_run as load_run
    from unicr.runs import recertify as recertify
    from unicr.runs import replay as replay
    from unicr.runs import verify as verify
    from unicr.select import SelectiveClassifier as SelectiveClassifier
    from unicr.select import Selector as Selector
    from unicr.smoothed import SmoothedClassifier as SmoothedClassifier
    from unicr.smoothing import Certificate as Certificate
    from unicr.smoothing import Certificates as Certificates
    from unicr.smoothing import Plan as Plan
    from unicr.smoothing import Rule as Rule

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
    "smoothed",
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
    "smoothed": ("SmoothedClassifier",),
    "smoothing": ("Certificate", "Certificates", "Plan", "Rule"),
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
