"""A training in a folder: the best weights, a record of every epoch, a checkpoint to go on from.

Each file is replaced as a whole, so that a kill at any moment leaves the last finished epoch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

import unicr
from unicr.classifier.internal import read_weights
from unicr.errors import RunError
from unicr.lab.train._examples import Examples
from unicr.lab.train._settings import Training
from unicr.lab.train._trainer import DivergedError, Fitted, Trainer
from unicr.runs import changes

WEIGHTS, SETTINGS, CHECKPOINT = "model.safetensors", "train.json", "checkpoint.pt"
FREE = frozenset({"unicr", "device"})


def train_run(
    examples: Examples,
    settings: Training,
    folder: Path,
    *,
    resume: bool = False,
    on_epoch: Callable[[Fitted], None] | None = None,
    on_step: Callable[[float], None] | None = None,
) -> Fitted:
    """Train into `folder`: model.safetensors (the best weights so far) and train.json.

    A checkpoint after each epoch lets `resume` go on; it is removed at the end.
    """
    values = {
        "unicr": unicr.__version__,
        "data": examples.digest,
        "inputs": len(examples),
        **json.loads(json.dumps(settings.to_dict())),
    }
    record = read_record(folder)
    claim(folder, "a training", None if record is None else record["settings"], values, resume)
    checkpoint = folder / CHECKPOINT
    if record is not None and record["done"]:
        checkpoint.unlink(missing_ok=True)
        return Fitted(settings, read_weights(folder / WEIGHTS), record["history"], done=True)
    trainer = Trainer(examples, settings)
    fitted = trainer.fitted

    def note(failed: str | None = None) -> None:
        record = {
            "settings": values,
            "shape": list(examples.shape),
            "classes": list(examples.classes or range(examples.num_classes)),
            "done": fitted.done,
            "failed": failed,
            "best": fitted.best if fitted.history else None,
            "history": fitted.history,
        }
        write_json(folder / SETTINGS, record)

    def keep() -> None:
        about = f"{settings.arch}, {settings.noise or 'no noise'}, unicr train"
        with _replacing(folder / WEIGHTS) as file:
            save_file(fitted.state, file, metadata={"about": about})
        note()

    def after_epoch(now: Trainer) -> None:
        with _replacing(checkpoint) as file:
            torch.save(now.checkpoint(), file)
        keep()
        if on_epoch is not None:
            on_epoch(fitted)

    if record is not None and checkpoint.is_file():
        trainer.restore(_read_checkpoint(checkpoint))
    elif record is None:
        note()
    try:
        trainer.run(after_epoch, on_step)
    except DivergedError as error:
        note(failed=str(error))
        raise
    keep()
    checkpoint.unlink(missing_ok=True)
    return fitted


def claim(
    folder: Path, what: str, old: Mapping[str, Any] | None, new: Mapping[str, Any], resume: bool
) -> None:
    """Make the folder; one with other settings, or any without `resume`, is refused by RunError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot make the folder {folder}: {error}") from None
    if old is None:
        return
    if not resume:
        raise RunError(f"{folder} already holds {what}: use --resume, or another folder")
    if differing := changes(dict(old), dict(new), FREE):
        raise RunError(f"cannot resume {folder} with other settings ({differing})")


def read_record(folder: Path, name: str = SETTINGS) -> dict[str, Any] | None:
    """The train.json of a folder: settings, history, done, failed; None where there is none."""
    file = folder / name
    try:
        return json.loads(file.read_text()) if file.is_file() else None
    except (OSError, ValueError) as error:
        raise RunError(f"cannot read {file}: {error}") from None


def _read_checkpoint(path: Path) -> dict[str, Any]:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(f"cannot read {path} ({first}): delete it to train from the start") from None


def write_json(path: Path, value: object) -> None:
    """Replace a JSON file as a whole."""
    with _replacing(path) as file:
        file.write_text(json.dumps(value, indent=1) + "\n")


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place at the end of the block."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield beside
        os.replace(beside, path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error}") from None
    finally:
        beside.unlink(missing_ok=True)
