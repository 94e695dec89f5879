"""A training in a folder: the best weights, a record of every epoch, a checkpoint to go on from.

Each file is replaced as a whole, so that a kill at any moment leaves the last finished epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

import unicr
from unicr.classifier.internal import read_weights
from unicr.errors import RunError
from unicr.folder import Folder, plain, replace_file
from unicr.lab.train._examples import Examples
from unicr.lab.train._settings import Training
from unicr.lab.train._trainer import DivergedError, Fitted, Trainer

WEIGHTS, SETTINGS, CHECKPOINT = "model.safetensors", "train.json", "checkpoint.pt"
FREE = frozenset({"unicr", "device"})  # settings that may differ when a training goes on


def train_run(
    examples: Examples,
    settings: Training,
    folder: Path,
    *,
    resume: bool = False,
    on_epoch: Callable[[Fitted], None] | None = None,
) -> Fitted:
    """Train into `folder`: model.safetensors (the best weights so far) and train.json.

    A checkpoint after each epoch lets `resume` go on; it is removed at the end.
    """
    home = open_training(folder)
    values = {
        "unicr": unicr.__version__,
        "data": examples.digest,
        "inputs": len(examples),
        **plain(settings.to_dict()),
    }
    with home.write():
        record = home.begin(values, resume=resume, free=FREE)
        checkpoint = folder / CHECKPOINT
        if record is not None and record["done"]:
            checkpoint.unlink(missing_ok=True)
            return Fitted(settings, read_weights(folder / WEIGHTS), record["history"], done=True)
        trainer = Trainer(examples, settings)
        fitted = trainer.fitted

        def note(failed: str | None = None) -> None:
            home.note(
                {
                    "settings": values,
                    "shape": list(examples.shape),
                    "classes": list(examples.classes or range(examples.num_classes)),
                    "done": fitted.done,
                    "failed": failed,
                    "best": fitted.best if fitted.history else None,
                    "history": fitted.history,
                }
            )

        def keep() -> None:
            about = f"{settings.arch}, {settings.noise or 'no noise'}, unicr train"
            with replace_file(folder / WEIGHTS) as file:
                save_file(fitted.state, file, metadata={"about": about})
            note()

        def after_epoch(trainer: Trainer) -> None:
            with replace_file(checkpoint) as file:
                torch.save(trainer.checkpoint(), file)
            keep()
            if on_epoch is not None:
                on_epoch(fitted)

        if record is not None and checkpoint.is_file():
            trainer.restore(_read_checkpoint(checkpoint))
        elif record is None:
            note()
        try:
            trainer.run(after_epoch)
        except DivergedError as error:
            note(failed=str(error))
            raise
        keep()
        checkpoint.unlink(missing_ok=True)
        return fitted


def open_training(path: Path) -> Folder:
    """Where a training is, or is to be."""
    return Folder(path, "a training", SETTINGS)


def _read_checkpoint(path: Path) -> dict[str, Any]:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(f"cannot read {path} ({first}): delete it to train from the start") from None
