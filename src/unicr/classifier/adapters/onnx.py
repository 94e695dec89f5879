"""ONNX files, run by onnxruntime (extra `onnx`). Their format carries no Python code.

A fixed batch size is met by padding the last piece; scores are preferred to ready-made labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from unicr.classifier._base import Classifier, in_pieces
from unicr.classifier._digest import check_inside, files_digest
from unicr.classifier._load import Adapter, ModelAsked, with_ending
from unicr.errors import ModelError, foreign
from unicr.extras import require, torch
from unicr.files import file_digest

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
        runtime = require("onnxruntime", "onnx")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3
        kind = torch.device(device).type
        wanted = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}.get(kind)
        if wanted not in runtime.get_available_providers():
            raise ModelError(f"onnxruntime on this machine cannot use {device}: use device cpu")
        with foreign(ModelError, f"{path} is not a usable ONNX file"):
            outside = outside_files(path)
            for file in outside:
                check_inside(path, path.parent, file)
            self._session = runtime.InferenceSession(
                str(path), options, providers=[wanted], enable_fallback=0
            )
        self._input = _only_input(self._session, path)
        self._type = INPUT_TYPES[self._input.type]
        first = self._input.shape[0] if self._input.shape else None
        self._fixed = first if isinstance(first, int) else None
        self._output = _score_output(self._session, path)
        super().__init__(
            name=str(path) if name is None else name,
            digest=files_digest(file_digest(path), path.parent, outside),
            device=device,
            num_classes=num_classes,
        )

    def predict(self, batch: torch.Tensor) -> torch.Tensor:
        if not len(batch):
            return torch.zeros(0, dtype=torch.int64)
        size = len(batch) if self._fixed is None else self._fixed
        return in_pieces(self._run, batch, size).to(self.device)

    def _run(self, batch: torch.Tensor) -> torch.Tensor:
        values = batch.detach().cpu().numpy().astype(self._type, copy=False)
        with foreign(ModelError, f"{self.name} failed"):
            (output,) = self._session.run([self._output.name], {self._input.name: values})
        return self._labels(torch.from_numpy(np.asarray(output)), len(values))


def _only_input(session: Any, path: Path) -> Any:
    inputs = session.get_inputs()
    if len(inputs) != 1 or inputs[0].type not in INPUT_TYPES:
        found = ", ".join(f"{i.name} {i.type}" for i in inputs)
        raise ModelError(
            f"{path} takes {found}, but a model must take one input of floating-point type"
        )
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
    raise ModelError(
        f"{path} returns {found}, but a model must return one tensor of scores or labels"
    )


# Which fields of which messages of onnx.proto lead to tensors, and those messages' kinds.
MESSAGES = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}


def outside_files(path: Path) -> set[str]:
    """The names of the files that an ONNX file takes weights from, as it writes them.

    Read from the file itself, so that neither the onnx package nor a habit of naming is needed.
    """
    names = set()
    waiting: list[tuple[str, memoryview]] = [("model", memoryview(path.read_bytes()))]
    while waiting:
        kind, message = waiting.pop()
        if kind == "entry":
            entry = {number: bytes(value) for number, value in _fields(message)}
            if entry.get(1) == b"location":
                names.add(entry.get(2, b"").decode())
            continue
        inner = MESSAGES[kind]
        waiting += [(inner[n], value) for n, value in _fields(message) if n in inner]
    return names


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """(number, content) of every field of a protobuf message that holds bytes."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        match tag & 7:
            case 0:
                _, at = _varint(message, at)
                continue
            case 1 | 5 as wire:
                at += 8 if wire == 1 else 4
                continue
            case 2:
                size, at = _varint(message, at)
            case wire:
                raise ValueError(f"wire type {wire} at byte {at}")
        if at + size > len(message):
            raise ValueError("it is cut short")
        yield tag >> 3, message[at : at + size]
        at += size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise ValueError("it is cut short")
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def load(asked: ModelAsked) -> Classifier:
    """The classifier of an ONNX file."""
    device = "cpu" if asked.device is None else asked.device
    return OnnxClassifier(asked.path, name=asked.name, device=device, num_classes=asked.num_classes)


ADAPTER = Adapter(".onnx", with_ending(".onnx"), load)
