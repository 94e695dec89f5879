"""Programs saved by `torch.export.save` (.pt2).

Torch's reader of them may unpickle, call any function of torch and evaluate text, so
`unsafe_part` looks into the file first: plain tensors and operators pass, anything else needs the
user's trust.
"""

from __future__ import annotations

import ast
import io
import json
import logging
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unicr.classifier._adapter import Adapter, ModelAsked, with_ending
from unicr.classifier._base import Classifier, in_pieces
from unicr.classifier.adapters.module import classifier_of
from unicr.errors import ModelError
from unicr.files import file_digest

OPERATORS = re.compile(
    r"torch\.ops\.(aten|prims|higher_order)\.(?!from_file\b|save\b)\w+(\.\w+)?"
    r"|_operator\.(getitem|add|sub|mul|floordiv|truediv|mod|neg|pow|lt|le|gt|ge|eq|ne|and_|or_|not_)"
    r"|torch\.sym_\w+"
)
SYMBOL = re.compile(r"z?u?[sf]?\d+")
FUNCTIONS = {"Symbol", "Integer", "Add", "Mul", "Pow", "Max", "Min"} | {
    *("Mod", "PythonMod", "FloorDiv", "CleanDiv", "CeilDiv", "Rational", "int_oo", "oo")
}


def load(asked: ModelAsked) -> Classifier:
    """The classifier of a .pt2 file; a file that would be unpickled is refused without trust."""
    from torch.export.passes import move_to_device_pass

    path = asked.path
    if not zipfile.is_zipfile(path):
        raise ModelError(f"{path} is not a .pt2 file of torch.export.save")
    if not asked.trust and (reason := unsafe_part(path)) is not None:
        raise ModelError(
            f"{path} {reason}, so reading it could run code of its author; if you trust that "
            "person, say so with trust=True (--trust)"
        )
    logging.getLogger("torch.export").setLevel(logging.CRITICAL)  # it logs what it also raises
    program = torch.export.load(path)
    if asked.device is not None and asked.device.type != "cpu":
        program = move_to_device_pass(program, asked.device)
    module = _Program(program.module(), _batch_size(program, path))
    return classifier_of(asked, module, file_digest(path))


def _batch_size(program: torch.export.ExportedProgram, path: Path) -> int | None:
    """The batch size that the program was traced for; None if it takes any."""
    names = program.graph_signature.user_inputs
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    shapes = [node.meta["val"].shape for node in nodes if node.name in names]
    if len(shapes) != 1 or not shapes[0]:
        raise ModelError(f"{path} takes {len(names)} inputs: one batch of inputs is needed")
    first = shapes[0][0]
    return first if isinstance(first, int) else None


class _Program(nn.Module):
    """An exported program, which refuses eval() and train() and may know just one batch size."""

    def __init__(self, program: nn.Module, batch_size: int | None) -> None:
        super().__init__()
        self._program = (program,)
        self._batch_size = batch_size
        self.training = False

    def forward(self, batch: torch.Tensor) -> Any:
        (program,) = self._program
        if self._batch_size is None:
            return program(batch)
        return in_pieces(program, batch, self._batch_size)


def unsafe_part(path: Path) -> str | None:
    """What in a .pt2 file goes beyond plain tensors and operators; None if nothing does."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if len(set(names)) != len(names):
            return "has two parts of the same name"
        inside = {name.partition("/")[2]: name for name in names}
        if not any(name.startswith("models/") for name in inside):
            return "is of an old form that is unpickled"
        for name, full in inside.items():
            if name.startswith("data/aotinductor"):
                return "carries compiled code"
            if name.endswith(".pt") and not _plain_tensors(archive.read(full)):
                return f"carries a pickle ({name})"
            if name.endswith(".json"):
                try:
                    content = json.loads(archive.read(full))
                except ValueError:
                    return f"has a part that is not JSON ({name})"
                for key, value in _entries(content):
                    if not _harmless(key, value, constants=name.startswith("data/constants")):
                        return f"asks for {key} {value!r}"
    return None


def _harmless(key: str, value: Any, constants: bool) -> bool:
    match key:
        case "use_pickle":
            return value is False
        case "path_name":
            return not constants or str(value).startswith("tensor_")
        case "target" | "as_operator" if isinstance(value, str):
            return OPERATORS.fullmatch(value) is not None
        case "expr_str":
            return isinstance(value, str) and _plain_expression(value)
    return True


def _plain_expression(text: str) -> bool:
    """Whether a text is arithmetic on sizes, such as Symbol('s0') or Max(1, s0 - 2)."""
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError, RecursionError):
        return False
    return all(_plain_node(node) for node in nodes)


def _plain_node(node: ast.AST) -> bool:
    match node:
        case ast.Name(name) | ast.Constant(str(name)):
            return name in FUNCTIONS or SYMBOL.fullmatch(name) is not None
        case ast.Constant(value):
            return isinstance(value, bool | int | float)
        case ast.Call(ast.Name(name)):
            return name in FUNCTIONS
        case ast.Expression() | ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.keyword():
            return True
        case ast.operator() | ast.unaryop() | ast.cmpop() | ast.Load():
            return True
    return False


def _entries(content: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(content, dict):
        for key, value in content.items():
            yield key, value
            yield from _entries(value)
    elif isinstance(content, list):
        for value in content:
            yield from _entries(value)


def _plain_tensors(content: bytes) -> bool:
    if not content:
        return True
    try:
        torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
    except Exception:
        return False
    return True


ADAPTER = Adapter(".pt2 (torch.export)", with_ending(".pt2"), load)
