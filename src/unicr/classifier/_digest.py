"""What identifies a classifier: SHA-256 over everything that decides which function it is.

Files count with all their bytes, modules with types, settings and tensors, functions with their
source and what they carry. Two classifiers with one digest are one classifier, as far as their
code's own imports and libraries are the same.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import CellType
from typing import Any

from unicr.errors import ModelError
from unicr.extras import torch
from unicr.files import combine_digests, file_digest

PLAIN = (bool, int, float, str, bytes, type(None))


def files_digest(main: str, folder: Path, names: Iterable[str]) -> str:
    """`main`, or where a model reads other files of its folder, one digest of it and of those."""
    parts = [f"{json.dumps(name)} {file_digest(folder / name)}" for name in sorted(set(names))]
    return combine_digests(main, *parts) if parts else main


def check_inside(model: Path, folder: Path, name: str) -> None:
    """Refuse a file name in a model that leads out of the model's folder, or nowhere."""
    kinds = (PurePosixPath(name), PureWindowsPath(name))
    if any(path.is_absolute() or path.drive or ".." in path.parts for path in kinds):
        raise ModelError(
            f"{model} needs the file {name!r} outside its folder: put all files into one folder"
        )
    if not (folder / name).is_file():
        raise ModelError(f"{model} needs the file {name!r}, which is not in its folder")


def module_digest(module: torch.nn.Module) -> str:
    """SHA-256 of the sub-modules' types and settings and of the state dict's tensors."""
    digest = hashlib.sha256()
    for name, part in module.named_modules():
        digest.update(f"{name}:{type(part).__qualname__}:{_settings(part)}\n".encode())
    for name, tensor in sorted(module.state_dict().items()):
        if isinstance(tensor, torch.Tensor):
            plain = tensor.detach().cpu().contiguous()
            digest.update(f"{name}:{plain.dtype}:{tuple(plain.shape)}\n".encode())
            digest.update(plain.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _settings(part: torch.nn.Module) -> str:
    values = {
        name: value
        for name, value in vars(part).items()
        if not name.startswith("_") and name != "training" and _is_plain(value)
    }
    return f"{part.extra_repr()}{sorted(values.items())}"


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return isinstance(value, (*PLAIN, torch.dtype, torch.Size))


def source_digest(function: Callable[[Any], Any]) -> str:
    """SHA-256 of the file that defines a callable, its name and what it carries.

    A function carries its closure and defaults, a method its object, a partial its arguments, an
    object its attributes. `unhashable:…` where the file is unknown or that cannot be written down.
    """
    if isinstance(function, functools.partial):
        inner = source_digest(function.func)
        return _carrying(inner, "partial", (function.args, sorted(function.keywords.items())))
    is_function = hasattr(function, "__qualname__")
    target: Any = function if is_function else type(function)
    name = target.__qualname__
    try:
        file = inspect.getsourcefile(target)
    except TypeError:
        file = None
    if file is None or not Path(file).is_file():
        return f"unhashable:{name}"
    plain = hashlib.sha256(Path(file).read_bytes() + f":{name}".encode()).hexdigest()
    carried = _carried(function) if is_function else vars(function)
    return _carrying(plain, name, carried) if carried else plain


def _carried(function: Callable[[Any], Any]) -> dict[str, Any]:
    names = ("__self__", "__defaults__", "__kwdefaults__")
    values = {name: getattr(function, name, None) for name in names}
    cells = getattr(function, "__closure__", None)
    values["cells"] = None if cells is None else [_content(cell) for cell in cells]
    return {name: value for name, value in values.items() if value is not None}


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return "empty"


def _carrying(digest: str, name: str, carried: Any) -> str:
    try:
        content = pickle.dumps(carried, protocol=4)
    except Exception:  # a stranger's object may refuse to be pickled in any way
        return f"unhashable:{name}:{digest}"
    whole = combine_digests(digest, hashlib.sha256(content).hexdigest())
    return f"unhashable:{name}:{whole}" if digest.startswith("unhashable:") else whole
