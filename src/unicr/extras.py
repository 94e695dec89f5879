"""Import an optional dependency, or say in one line which extra to install."""

from __future__ import annotations

import importlib
from types import ModuleType

from unicr.errors import MissingExtraError

EXTRAS = {
    "onnx": ("onnxruntime",),
    "sklearn": ("sklearn", "joblib"),
    "hf": ("transformers",),
    "table": ("pyarrow",),
    "attack": ("pyautoattack", "art", "foolbox"),
    "optuna": ("optuna",),
    "ray": ("ray",),
    "report": ("plotly",),
}


def require(module: str) -> ModuleType:
    """The optional `module`, imported; it must belong to one of the extras of pyproject.toml."""
    root = module.partition(".")[0]
    extra = next(name for name, modules in EXTRAS.items() if root in modules)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != root:
            raise
        raise MissingExtraError(
            f"this needs {root}, which is not installed: pip install 'unicr[{extra}]'"
        ) from None
