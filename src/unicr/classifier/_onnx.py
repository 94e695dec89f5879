"""ONNX files, run by onnxruntime (extra `onnx`). Their format carries no Python code.

A fixed batch size is met by padding the last piece; scores are preferred to ready-made labels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from unicr.classifier._base import Classifier, file_digest
from unicr.errors import ModelError
from unicr.extras import require

INPUT_TYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
}
SCORE_NAMES = ("logits", "scores", "probabilities", "output_probability", "output")


class OnnxClassifier(Classifier):
    """Labels from an ONNX model with one image or feature input."""

    def __init__(
        self,
        path: Path,
        *,
        name: str | None = None,
        device: str | torch.device = "cpu",
        num_classes: int | None = None,
    ) -> None:
        runtime = require("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3
        kind = torch.device(device).type
        wanted = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}.get(kind)
        if wanted not in runtime.get_available_providers():
            raise ModelError(f"onnxruntime here cannot run on {device}; use device cpu")
        try:
            self._session = runtime.InferenceSession(str(path), options, providers=[wanted])
        except Exception as error:
            raise ModelError(f"{path} is not a usable ONNX file: {error}") from None
        self._input = _only_input(self._session, path)
        self._type = INPUT_TYPES[self._input.type]
        first = self._input.shape[0] if self._input.shape else None
        self._fixed = first if isinstance(first, int) else None
        self._output = _score_output(self._session, path)
        super().__init__(
            name=str(path) if name is None else name,
            digest=_digest(path),
            device=device,
            num_classes=num_classes,
        )

    def predict(self, batch: torch.Tensor) -> torch.Tensor:
        values = batch.detach().cpu().numpy().astype(self._type, copy=False)
        n = len(values)
        step = self._fixed or max(n, 1)
        pieces = [self._run(values[start : start + step]) for start in range(0, n, step)]
        return torch.cat(pieces).to(self.device) if pieces else torch.zeros(0, dtype=torch.int64)

    def _run(self, values: np.ndarray[Any, Any]) -> torch.Tensor:
        n = len(values)
        if self._fixed is not None and n < self._fixed:
            values = np.concatenate([values, np.repeat(values[-1:], self._fixed - n, axis=0)])
        try:
            (output,) = self._session.run([self._output.name], {self._input.name: values})
        except Exception as error:
            raise ModelError(f"{self.name} failed: {type(error).__name__}: {error}") from error
        return self._labels(torch.from_numpy(np.asarray(output)), len(values))[:n]


def _only_input(session: Any, path: Path) -> Any:
    inputs = session.get_inputs()
    if len(inputs) != 1 or inputs[0].type not in INPUT_TYPES:
        found = ", ".join(f"{i.name} {i.type}" for i in inputs)
        raise ModelError(f"{path} takes {found}: one input of floating type is needed")
    return inputs[0]


def _score_output(session: Any, path: Path) -> Any:
    """The floating output named like scores, or the first floating one, or the labels."""
    outputs = session.get_outputs()
    scores = [one for one in outputs if one.type in INPUT_TYPES]
    named = [one for name in SCORE_NAMES for one in scores if one.name.lower() == name]
    labels = [one for one in outputs if one.type in ("tensor(int64)", "tensor(int32)")]
    for choice in (*named, *scores, *labels):
        return choice
    found = ", ".join(f"{one.name} {one.type}" for one in outputs)
    raise ModelError(f"{path} gives {found}: a tensor of scores or labels is needed")


def _digest(path: Path) -> str:
    outside = (path.with_name(path.name + ending) for ending in (".data", "_data"))
    return file_digest(path, *(file for file in outside if file.is_file()))
