"""Programs saved by `torch.export.save` (.pt2).

Torch's reader of them may unpickle, call any function of torch and evaluate text, so the user must
name the file.
"""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unicr.classifier._base import Classifier, in_pieces
from unicr.classifier._load import Adapter, ModelAsked, check_trusted, with_ending
from unicr.classifier.adapters.module import classifier_of
from unicr.errors import ModelError
from unicr.files import file_digest


def load(asked: ModelAsked) -> Classifier:
    """The classifier of a .pt2 file."""
    from torch.export.passes import move_to_device_pass

    path = asked.path
    check_trusted(path, asked.trust, "a program of torch.export", ".onnx")
    if not zipfile.is_zipfile(path):
        raise ModelError(f"{path} is not a .pt2 file that torch.export.save wrote")
    logging.getLogger("torch.export").setLevel(logging.CRITICAL)  # it logs what it also raises
    program = torch.export.load(path)
    if asked.device is not None and asked.device.type != "cpu":
        program = move_to_device_pass(program, asked.device)
    return classifier_of(asked, ExportedModule(program, path), file_digest(path))


class ExportedModule(nn.Module):
    """An exported program, which refuses eval() and train() and may know just one batch size.

    `shape` is that of one input, `batch_size` the number of inputs that the program was traced for,
    None if it takes any.
    """

    def __init__(self, exported: torch.export.ExportedProgram, path: Path) -> None:
        super().__init__()
        names = exported.graph_signature.user_inputs
        nodes = [node for node in exported.graph.nodes if node.op == "placeholder"]
        shapes = [node.meta["val"].shape for node in nodes if node.name in names]
        if len(shapes) != 1 or not shapes[0]:
            raise ModelError(
                f"{path} takes {len(names)} inputs, but a model must take one: a batch"
            )
        first, *rest = shapes[0]
        self.batch_size = first if isinstance(first, int) else None
        self.shape = tuple(rest) if all(isinstance(size, int) for size in rest) else None
        self._program = (exported.module(),)  # in a tuple, so that eval() does not reach it
        self.training = False

    @property
    def program(self) -> nn.Module:
        """The program as a module."""
        return self._program[0]

    def forward(self, batch: torch.Tensor) -> Any:
        if self.batch_size is None:
            return self.program(batch)
        return in_pieces(self.program, batch, self.batch_size)


ADAPTER = Adapter(".pt2 (torch.export, with trust)", with_ending(".pt2"), load)
