"""Which adapter is for which model: `load_classifier` asks them in turn."""

from __future__ import annotations

import inspect
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unicr.classifier._adapter import ADAPTERS, ModelAsked
from unicr.classifier._base import Classifier
from unicr.classifier._trust import Trust, trusted_files
from unicr.classifier._wrap import Normalised
from unicr.errors import ModelError, foreign, one_line
from unicr.extras import torch
from unicr.files import check_unpacked, load_object

PREFIXES = ("builtin:", "hf:", "hub:")  # what follows them is never a Python file
Numbers = float | Sequence[float]


def load_classifier(
    spec: Any,
    *,
    weights: str | Path | None = None,
    device: str | torch.device | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    trust: Trust = None,
    num_classes: int | None = None,
    precision: str | None = None,
) -> Classifier:
    """The classifier that `spec` names, or an adapter around the object that it is.

    `weights` is a state dict for an architecture (`file.py:factory`, `builtin:resnet20`, a
    module). `mean` and `std` wrap a model that expects normalised inputs, so that noise and radius
    stay in the space of the raw input. `trust` names the files that may run their author's code,
    which every format but .onnx, .safetensors and hf:DIR can carry. `num_classes` is only needed
    where neither the model nor its output tells it. Without `device` a module in memory stays where
    it is and all else runs on the CPU. `precision` (bf16, fp16) computes a torch model with fewer
    bits, which changes its digest.
    """
    if (mean is None) != (std is None):
        raise ModelError("mean and std belong together: give both or neither")
    place = usable("cpu" if device is None else device)
    file = None if weights is None else Path(weights).expanduser()
    if file is not None and not file.is_file():
        raise ModelError(f"no weights file {weights}")
    asked = ModelAsked(
        spec=str(spec) if isinstance(spec, str | Path) else None,
        weights=file,
        device=place,
        trust=trusted_files(trust),
        num_classes=num_classes,
        normalised=mean is not None,
    )
    if asked.spec is None:
        asked = replace(asked, thing=spec, device=None if device is None else place)
    elif names_python(asked.spec):
        asked = replace(asked, thing=load_object(asked.spec))
    classifier = _loaded(_made(asked))
    if precision is not None:
        classifier = classifier.at_precision(precision)
    if mean is not None and std is not None:
        classifier = Normalised(classifier, mean, std)
    return classifier


def names_python(spec: str) -> bool:
    """Whether a text is `file.py:name`, which runs that file."""
    return ".py:" in spec and not spec.startswith(PREFIXES)


def usable(device: str | torch.device) -> torch.device:
    """The device, after trying it."""
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"device {device!r} cannot be used here: {one_line(error)}") from None
    return place


def _loaded(asked: ModelAsked) -> Classifier:
    if isinstance(asked.thing, Classifier):
        return asked.thing
    adapter = next((adapter for adapter in ADAPTERS.values() if adapter.takes(asked)), None)
    if adapter is None:
        raise ModelError(_no_adapter(asked))
    if asked.weights is not None and not adapter.takes_weights:
        raise ModelError(f"{asked.name} brings its own weights: leave {asked.weights} out")
    for file in (asked.weights, None if asked.thing is not None else asked.path):
        if file is not None and file.is_file() and zipfile.is_zipfile(file):
            with foreign(ModelError, f"{file} cannot be read"), zipfile.ZipFile(file) as archive:
                check_unpacked(file, archive.infolist(), ModelError)
    with foreign(ModelError, f"{asked.name} cannot be loaded"):
        return adapter.load(asked)


def _no_adapter(asked: ModelAsked) -> str:
    if asked.thing is not None or asked.spec is None:
        return (
            f"{asked.name} is no classifier: a torch module, an object with predict, or a function "
            "from a batch to labels or scores is needed"
        )
    forms = sorted(filter(None, (a.forms for a in ADAPTERS.values())), key=lambda f: f[0] != ".")
    known = f"known forms: {', '.join(forms)}"
    if not asked.path.is_file():
        return f"no model file {asked.spec}; {known}"
    return f"{asked.path}: {asked.path.suffix or 'no'} ending is not known; {known}"


def _made(asked: ModelAsked) -> ModelAsked:
    """The same with the model in place of a class or function that makes it."""
    thing = asked.thing
    if not _is_factory(thing, asked.weights is not None):
        return asked
    with foreign(ModelError, f"{asked.spec or repr(thing)}() failed"):
        return replace(asked, thing=thing())


def _is_factory(thing: Any, weights: bool) -> bool:
    """A class, or a function that needs no argument, makes the model rather than being it."""
    if inspect.isclass(thing):
        return True
    if isinstance(thing, torch.nn.Module | Classifier) or hasattr(thing, "predict"):
        return False
    if not callable(thing) or weights:
        return callable(thing)
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(
        p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters
    ) and not any(p.kind is p.VAR_POSITIONAL for p in parameters)
