"""Files of `torch.save` and `torch.jit.save` that hold a whole model; the user must name them.

Both are programs: a TorchScript operator can write files, a pickle can do anything. Weights alone
are no model: the message says where they go.
"""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path

from unicr.classifier._base import Classifier
from unicr.classifier._load import Adapter, ModelAsked, check_trusted, with_ending
from unicr.classifier.adapters.module import classifier_of
from unicr.errors import ModelError, foreign
from unicr.extras import torch
from unicr.files import file_digest

SCRIPTS = (".ts", ".torchscript")
WEIGHTS = ".safetensors"


def _is_torchscript(path: Path) -> bool:
    """Whether a file is a TorchScript archive (it carries code), not a pickle."""
    try:
        with zipfile.ZipFile(path) as archive:
            inside = {name.partition("/")[2] for name in archive.namelist()}
    except Exception:  # what is no zip archive, in whichever way, is none
        return False
    return "constants.pkl" in inside and any(name.startswith("code/") for name in inside)


def load(asked: ModelAsked) -> Classifier:
    """The module of a TorchScript file or of a pickle."""
    path, ending = asked.path, asked.path.suffix.lower()
    module: object = None
    if ending != WEIGHTS:
        what = "TorchScript" if ending in SCRIPTS else "a pickle or TorchScript"
        check_trusted(path, asked.trust, what, ".onnx")
        with foreign(ModelError, f"{path} is not a model file"), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            if ending in SCRIPTS or _is_torchscript(path):
                module = torch.jit.load(path, map_location=asked.device)  # type: ignore[no-untyped-call]
            else:
                module = torch.load(path, map_location="cpu", weights_only=False)
    if not isinstance(module, torch.nn.Module):
        raise ModelError(
            f"{path} contains weights without their architecture: give file.py:factory or a "
            f"builtin network as the model, and this file as its weights (--weights {path.name})"
        )
    return classifier_of(asked, module, file_digest(path))


ENDINGS = (*SCRIPTS, ".pt", ".pth", ".th", ".ckpt", ".bin", WEIGHTS)
ADAPTERS = (
    Adapter(
        ".pt/.ts (TorchScript or pickled, with trust), .safetensors in `weights` beside "
        "file.py:factory or a builtin network",
        with_ending(*ENDINGS),
        load,
    ),
)
