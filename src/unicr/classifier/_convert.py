"""A model file that can carry code, written once as one that cannot: ONNX, or safetensors."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unicr.classifier._base import Classifier
from unicr.classifier._load import Trust, load_classifier, read_weights, trusted_files
from unicr.classifier.adapters.exported import ExportedModule
from unicr.classifier.adapters.module import ModuleClassifier, evaluating
from unicr.classifier.adapters.onnx import OnnxClassifier
from unicr.classifier.adapters.sklearn import SklearnClassifier
from unicr.errors import ModelError, foreign
from unicr.extras import require, torch
from unicr.folder import replace_file

TRIED = 256  # inputs on which the labels of both files are compared
# Float32 sums in another order move scores by about 1e-6 of their size: labels differ only where
# two scores are as near as that, which is rarer than 1 in 100 of random inputs for a right copy.
DIFFERENT = 0.01


def convert_model(
    spec: str,
    out: Path,
    *,
    weights: str | Path | None = None,
    trust: Trust = None,
    shape: Sequence[int] | None = None,
) -> str:
    """Write a model as `.onnx`, or a pickle of weights as `.safetensors`; what was done, in words.

    `shape` is the shape of one input, needed if the model does not contain it. An ONNX file is
    written only if it gives the labels of the model on random inputs.
    """
    match out.suffix.lower():
        case ".safetensors":
            return _convert_weights(Path(spec).expanduser(), out, trusted_files(trust))
        case ".onnx":
            model = load_classifier(spec, weights=weights, trust=trust)
            return _convert_to_onnx(model, out, shape)
    raise ModelError(f"cannot write {out}: a model is written as .onnx, weights as .safetensors")


def _convert_weights(path: Path, out: Path, trust: tuple[Path, ...]) -> str:
    from safetensors.torch import save_file

    tensors = {k: v.detach().clone().contiguous() for k, v in read_weights(path, trust).items()}
    with replace_file(out, ModelError) as file:
        save_file(tensors, file)
    return f"{len(tensors)} tensors written to {out}"


def _convert_to_onnx(model: Classifier, out: Path, shape: Sequence[int] | None) -> str:
    require("onnx", "convert")
    sizes = _shape_of(model, shape)
    generator = torch.Generator().manual_seed(0)
    batch = torch.rand(TRIED, *sizes, generator=generator)
    batch[::2] += torch.randn(batch[::2].shape, generator=generator)  # what smoothing asks of it
    with replace_file(out, ModelError) as file:
        with foreign(ModelError, f"{model.name} cannot be written as ONNX"), _quiet():
            _write_onnx(model, batch[:2], file)
        written = OnnxClassifier(file)
        other = int((model.predict(batch) != written.predict(batch)).sum())
        if other > DIFFERENT * TRIED:
            raise ModelError(
                f"{model.name} as ONNX gives other labels for {other} of {TRIED} random inputs, so "
                "nothing was written"
            )
    return f"{out} written; same label as {model.name} on {TRIED - other} of {TRIED} random inputs"


def _shape_of(model: Classifier, given: Sequence[int] | None) -> tuple[int, ...]:
    told: tuple[int, ...] | None = None
    if isinstance(model, ModuleClassifier) and isinstance(model.module, ExportedModule):
        told = model.module.shape
    if isinstance(model, SklearnClassifier) and hasattr(model.estimator, "n_features_in_"):
        told = (int(model.estimator.n_features_in_),)
    if given is None:
        if told is None:
            raise ModelError(
                f"{model.name} does not say which shape its inputs have: give it, for example "
                "--shape 3 32 32"
            )
        return told
    if not given or min(given) < 1:
        raise ModelError(f"shape={list(given)}: all sizes must be at least 1")
    if told is not None and math.prod(given) != math.prod(told):
        raise ModelError(f"shape={list(given)}: {model.name} takes inputs of shape {list(told)}")
    return tuple(given)


def _write_onnx(model: Classifier, sample: torch.Tensor, file: Path) -> None:
    if isinstance(model, SklearnClassifier):
        tool = require("skl2onnx", "convert")
        rows = sample.flatten(1).numpy()
        options = {"zipmap": False}  # scores as a matrix, which every runtime can give
        try:
            made = tool.to_onnx(model.estimator, rows[:1], options=options)
        except NameError:  # an estimator without scores has no such option
            made = tool.to_onnx(model.estimator, rows[:1])
        file.write_bytes(made.SerializeToString())
        return
    if not isinstance(model, ModuleClassifier):
        raise ModelError("only a torch model or a scikit-learn estimator can be written as ONNX")
    module: Any = model.module
    fixed = isinstance(module, ExportedModule) and module.batch_size
    if isinstance(module, ExportedModule):
        sample = sample[:1].expand(module.batch_size or 2, *sample.shape[1:]).contiguous()
        module = module.program
    names: dict[str, Any] = {"input_names": ["x"], "output_names": ["scores"]}
    if isinstance(module, torch.jit.ScriptModule):  # torch.export does not take it
        axes = {"x": {0: "n"}, "scores": {0: "n"}}
        settings: dict[str, Any] = {"dynamo": False, "dynamic_axes": axes}
    else:
        require("onnxscript", "convert")
        shapes = None if fixed else ({0: torch.export.Dim("n")},)
        settings = {"dynamo": True, "dynamic_shapes": shapes, "external_data": False}
    with torch.no_grad(), evaluating(module) if _can_change(module) else _quiet():
        torch.onnx.export(module, (sample,), str(file), verbose=False, **names, **settings)


def _can_change(module: torch.nn.Module) -> bool:
    """Exported programs refuse eval(); they are as they were exported."""
    return not isinstance(module, torch.fx.GraphModule)


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporters warn and log about what they leave out of their own accord."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
