"""State dicts from .safetensors files, and from pickles (.pt, .pth, .th) that the user names.

A pickle is read by torch's restricted unpickler even then.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unicr.classifier._trust import check_trusted
from unicr.errors import ModelError, foreign, listed, one_line
from unicr.extras import torch

WRAPPERS = ("state_dict", "model_state_dict", "model", "net")
PREFIXES = ("module.", "_orig_mod.")


def read_weights(path: Path, trust: Iterable[Path] = ()) -> dict[str, torch.Tensor]:
    """The tensors of a file by name; wrappers and the prefixes of parallel training are removed.

    A file that is no .safetensors is a pickle: it must be among those of `trust`.
    """
    if not path.is_file():
        raise ModelError(f"no weights file {path}")
    if path.suffix.lower() == ".safetensors":
        content = _safetensors(path)
    else:
        check_trusted(path, trust, "a pickle of weights", ".safetensors")
        content = _torch(path)
    for key in WRAPPERS:
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
            break
    if not isinstance(content, dict) or not content:
        raise ModelError(f"{path} holds {type(content).__name__}, not a state dict")
    if not all(isinstance(value, torch.Tensor) for value in content.values()):
        raise ModelError(f"{path} holds other things than tensors: save model.state_dict()")
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in content):
            content = {name.removeprefix(prefix): value for name, value in content.items()}
    return content


def load_weights(module: torch.nn.Module, path: Path, trust: Iterable[Path] = ()) -> None:
    """Put a file's tensors into a module; every name and shape must fit."""
    weights = {
        name: value.float() if value.dtype in (torch.float16, torch.bfloat16) else value
        for name, value in read_weights(path, trust).items()
    }
    optional = {name for name in module.state_dict() if name.endswith("num_batches_tracked")}
    try:
        missing, unexpected = module.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise ModelError(
            f"{path} does not fit {type(module).__name__}: {one_line(error)}"
        ) from None
    missing = [name for name in missing if name not in optional]
    for names, what in ((missing, "has no"), (unexpected, "has, and the model lacks,")):
        if names:
            raise ModelError(
                f"{path} does not fit {type(module).__name__}: the file {what} {listed(names, 5)}"
            )


def _safetensors(path: Path) -> Any:
    from safetensors.torch import load_file

    with foreign(ModelError, f"{path} is not a safetensors file"):
        return load_file(path)


def _torch(path: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ModelError(
            f"{path} is not a plain state dict ({one_line(error, 100)}). Save model.state_dict(); "
            f"a whole pickled model is not weights: give it as the model"
        ) from None
