"""Files of `torch.save` and `torch.jit.save`: TorchScript programs, and pickled modules with trust.

TorchScript's own reader builds no Python objects. Weights alone are no model: the message says
where they go.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from pathlib import Path

import torch
from torch import nn

from unicr.classifier._adapter import Adapter, ModelAsked, with_ending
from unicr.classifier._base import Classifier
from unicr.classifier.adapters.module import classifier_of
from unicr.errors import ModelError, foreign
from unicr.files import file_digest

SCRIPTS = (".ts", ".torchscript")
FILES = re.compile(rb"\b(from_file|save)\b")  # the operators that can write a file


def _is_torchscript(path: Path) -> bool:
    """Whether a file is a TorchScript archive (it carries code), not a state dict."""
    try:
        with zipfile.ZipFile(path) as archive:
            inside = {name.partition("/")[2] for name in archive.namelist()}
    except Exception:  # what is no zip archive, in whichever way, is none
        return False
    return "constants.pkl" in inside and any(name.startswith("code/") for name in inside)


def _refuse_files(path: Path) -> None:
    """A program that could write files is refused before any of it runs."""
    with foreign(ModelError, f"{path} is not a TorchScript file"), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".py") and (found := FILES.search(archive.read(name))):
                raise ModelError(
                    f"{path} uses {found[0].decode()}, which may write files: if you trust its "
                    "author, say so with trust=True (--trust)"
                )


def load(asked: ModelAsked) -> Classifier:
    """The module of a TorchScript file, or a pickled one with trust."""
    path = asked.path
    module: object
    if path.suffix.lower() in SCRIPTS or _is_torchscript(path):
        if not asked.trust:
            _refuse_files(path)
        with foreign(ModelError, f"{path} is not a TorchScript file"), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            module = torch.jit.load(path, map_location=asked.device)  # type: ignore[no-untyped-call]
    elif asked.trust and path.suffix.lower() != ".safetensors":
        module = torch.load(path, map_location="cpu", weights_only=False)
    else:
        module = None
    if not isinstance(module, nn.Module):
        raise ModelError(
            f"{path} holds weights without their architecture, or a pickled model. Weights: give "
            f"file.py:factory as the model and this file as weights (--weights {path.name}); a "
            "pickled model needs trust=True (--trust)"
        )
    return classifier_of(asked, module, file_digest(path))


ENDINGS = (*SCRIPTS, ".pt", ".pth", ".th", ".ckpt", ".bin", ".safetensors")
ADAPTERS = (
    Adapter(
        ".pt/.ts (TorchScript), state dicts (.pt, .pth, .th, .safetensors) in `weights` beside "
        "file.py:factory or a builtin network",
        with_ending(*ENDINGS),
        load,
    ),
)
