"""Which adapter is for which model: `load_classifier` decides by type, prefix and ending."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unicr.classifier import mlp, resnet
from unicr.classifier._base import Classifier
from unicr.classifier._callable import CallableClassifier
from unicr.classifier._digest import combined_digest, file_digest, module_digest
from unicr.classifier._exported import is_torchscript, load_exported, load_torchscript
from unicr.classifier._hf import folder_digest, load_hf, own_normalisation
from unicr.classifier._module import ModuleClassifier
from unicr.classifier._onnx import OnnxClassifier
from unicr.classifier._sklearn import SklearnClassifier, load_estimator
from unicr.classifier._weights import load_weights, read_weights
from unicr.classifier._wrap import Normalised
from unicr.data.internal import builtin_file
from unicr.errors import ModelError
from unicr.files import load_object

MLP_SPEC = "builtin:mlp"
RESNETS = {f"builtin:resnet{depth}": depth for depth in (8, 20, 56, 110)}
MLPS = {f"builtin:mnist-mlp-{sigma}": f"mnist-mlp-{sigma}" for sigma in ("0.25", "0.5", "1.0")}
KNOWN = (
    ".pt2 (torch.export), .pt/.ts (TorchScript), .onnx, .joblib/.pkl (with trust), "
    "file.py:name (a module, a factory of one, an estimator or a function), hf:DIR, "
    f"{', '.join((*MLPS, MLP_SPEC, *RESNETS))}; "
    "state dicts (.pt, .pth, .th, .safetensors) go in `weights` beside file.py:factory or a "
    "builtin network"
)

Numbers = float | Sequence[float]


def load_classifier(
    spec: Any,
    *,
    weights: str | Path | None = None,
    device: str | torch.device | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    trust: bool = False,
    num_classes: int | None = None,
) -> Classifier:
    """The classifier that `spec` names, or an adapter around the object that it is.

    `weights` is a state dict for an architecture (`file.py:factory`, `builtin:resnet20`, a
    module). `mean` and `std` wrap a model that expects normalised inputs, so that noise and radius
    stay in the space of the raw input. `trust` allows files that can run their author's code.
    `num_classes` is only needed where neither the model nor its output tells it. Without `device`
    a module in memory stays where it is and all else runs on the CPU.
    """
    place = usable("cpu" if device is None else device)
    file = None if weights is None else Path(weights).expanduser()
    if file is not None and not file.is_file():
        raise ModelError(f"no weights file {weights}")
    if isinstance(spec, str | Path):
        classifier = _from_text(str(spec), file, place, trust, num_classes)
        if str(spec).startswith("hf:") and mean is None and std is None:
            own = own_normalisation(_hf_folder(str(spec)))
            mean, std = own if own is not None else (None, None)
    else:
        here = None if device is None else place
        classifier = _from_object(spec, None, file, here, num_classes)
    if (mean is None) != (std is None):
        raise ModelError("mean and std belong together: give both or neither")
    if mean is not None and std is not None:
        classifier = Normalised(classifier, mean, std)
    return classifier


def usable(device: str | torch.device) -> torch.device:
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise ModelError(f"device {device!r} cannot be used here: {first}") from None
    return place


def _from_text(
    spec: str, weights: Path | None, device: torch.device, trust: bool, num_classes: int | None
) -> Classifier:
    if spec.startswith("builtin:"):
        return _builtin(spec, weights, device, num_classes)
    if spec.startswith("hf:"):
        _no_weights(spec, weights)
        folder = _hf_folder(spec)
        digest = folder_digest(folder)
        module, count, classes = load_hf(folder)
        return ModuleClassifier(
            module,
            name=spec,
            digest=digest,
            device=device,
            num_classes=num_classes or count,
            classes=classes,
        )
    if ".py:" in spec:
        return _from_object(load_object(spec), spec, weights, device, num_classes)
    path = Path(spec).expanduser()
    if not path.is_file():
        raise ModelError(f"no model file {spec}; known forms: {KNOWN}")
    _no_weights(spec, weights)
    return _from_file(spec, path, device, trust, num_classes)


def _from_file(
    spec: str, path: Path, device: torch.device, trust: bool, num_classes: int | None
) -> Classifier:
    match path.suffix.lower():
        case ".onnx":
            return OnnxClassifier(path, name=spec, device=device, num_classes=num_classes)
        case ".joblib" | ".pkl" | ".pickle":
            return SklearnClassifier(
                load_estimator(path, trust), name=spec, digest=file_digest(path)
            )
        case ".pt2":
            module = load_exported(path, device, trust)
        case ".ts" | ".pt" | ".pth" | ".torchscript" if is_torchscript(path):
            module = load_torchscript(path, device)
        case ".pt" | ".pth" | ".th" | ".ckpt" | ".bin":
            module = _pickled_module(path, trust)
        case ".safetensors":
            raise ModelError(_needs_architecture(path))
        case ending:
            raise ModelError(f"{path}: {ending or 'no'} ending is not known; known forms: {KNOWN}")
    return ModuleClassifier(
        module, name=spec, digest=file_digest(path), device=device, num_classes=num_classes
    )


def _from_object(
    thing: Any,
    name: str | None,
    weights: Path | None,
    device: torch.device | None,
    num_classes: int | None,
) -> Classifier:
    if _is_factory(thing, weights):
        try:
            thing = thing()
        except Exception as error:
            raise ModelError(
                f"{name or repr(thing)}() failed: {type(error).__name__}: {error}"
            ) from error
    if isinstance(thing, nn.Module):
        digest = None
        if weights is not None:
            load_weights(thing, weights)
        if name is not None:
            source = file_digest(Path(name.rpartition(":")[0]).expanduser())
            tensors = module_digest(thing) if weights is None else file_digest(weights)
            digest = combined_digest(type(thing).__qualname__, source, tensors)
        return ModuleClassifier(
            thing, name=name, digest=digest, device=device, num_classes=num_classes
        )
    if weights is not None:
        raise ModelError(f"{name or thing!r} is no torch module: weights {weights} cannot go in")
    if isinstance(thing, Classifier):
        return thing
    if hasattr(thing, "predict"):
        return SklearnClassifier(thing, name=name)
    if callable(thing):
        return CallableClassifier(thing, name=name, device=device or "cpu", num_classes=num_classes)
    raise ModelError(
        f"{name or type(thing).__name__} is no classifier: a torch module, an object with "
        "predict, or a function from a batch to labels or scores is needed"
    )


def _is_factory(thing: Any, weights: Path | None) -> bool:
    """A class, or a function that needs no argument, makes the model rather than being it."""
    if isinstance(thing, nn.Module | Classifier) or hasattr(thing, "predict"):
        return inspect.isclass(thing)
    if not callable(thing):
        return False
    if inspect.isclass(thing) or weights is not None:
        return True
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(
        p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters
    ) and not any(p.kind is p.VAR_POSITIONAL for p in parameters)


def _builtin(
    spec: str, weights: Path | None, device: torch.device, num_classes: int | None
) -> Classifier:
    network: nn.Module
    if spec in MLPS:
        _no_weights(spec, weights)
        file = builtin_file(f"{MLPS[spec]}.safetensors")
        network = mlp.MLP()
    elif spec == MLP_SPEC or spec in RESNETS:
        if weights is None:
            raise ModelError(f"{spec} is an architecture: it needs weights (--weights FILE)")
        file, tensors = weights, read_weights(weights)
        known = spec in RESNETS
        network = resnet.sized_as(RESNETS[spec], tensors) if known else mlp.sized_as(tensors)
    else:
        raise ModelError(f"no {spec}: there are {', '.join((*MLPS, MLP_SPEC, *RESNETS))}")
    load_weights(network, file)
    digest = combined_digest(spec, file_digest(file))
    own = network.linear[-1] if isinstance(network, mlp.MLP) else network.linear
    assert isinstance(own, nn.Linear)
    if num_classes not in (None, own.out_features):
        raise ModelError(f"{file} is for {own.out_features} classes, not {num_classes}")
    return ModuleClassifier(
        network, name=spec, digest=digest, device=device, num_classes=own.out_features
    )


def _pickled_module(path: Path, trust: bool) -> nn.Module:
    if not trust:
        raise ModelError(_needs_architecture(path))
    try:
        content = torch.load(path, map_location="cpu", weights_only=False)
    except Exception as error:
        raise ModelError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from None
    if not isinstance(content, nn.Module):
        raise ModelError(_needs_architecture(path))
    return content


def _needs_architecture(path: Path) -> str:
    return (
        f"{path} holds weights without their architecture, or a pickled model. Weights: give "
        f"file.py:factory as the model and this file as weights (--weights {path.name}); a "
        "pickled model needs trust=True (--trust)"
    )


def _hf_folder(spec: str) -> Path:
    folder = Path(spec.removeprefix("hf:")).expanduser()
    if not folder.is_dir():
        raise ModelError(
            f"no folder {folder}: hf:DIR is a local folder with config.json and .safetensors; "
            "nothing is downloaded"
        )
    return folder


def _no_weights(spec: str, weights: Path | None) -> None:
    if weights is not None:
        raise ModelError(f"{spec} brings its own weights: leave {weights} out")
