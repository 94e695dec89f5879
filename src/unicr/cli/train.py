"""`unicr train`: a classifier trained with the noise that it will be smoothed with."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unicr.cli._parameters import Out, command, spread
from unicr.data import DataOptions
from unicr.lab.train import Training

if TYPE_CHECKING:
    from unicr.lab.train import Examples, Fitted

spread(Training)
READING = DataOptions()


@command
def train(
    *,
    data: str,
    settings: Training,
    out: Out,
    max_: int | None = None,
    resume: bool = False,
    reading: DataOptions = READING,
) -> None:
    """Train a classifier on noisy inputs.

    The folder gets model.safetensors and train.json. Example:

    unicr train --data mnist_train.npz --noise 'laplace(sigma=0.5)' --out model

    Parameters
    ----------
    data
        The training data, in any form that `unicr certify --data` takes, with labels.
    out
        The folder of the training.
    max_
        Train on at most this many inputs.
    resume
        Continue a training that was interrupted, with the same options.
    """
    from unicr.lab.train import examples_of

    dataset = reading.load(data, split="train")
    fitted = _with_bar(examples_of(dataset, max_), settings, out, resume)
    best = fitted.best
    accuracy = "" if best["accuracy"] is None else f", accuracy {best['accuracy']:.2%} under noise"
    if settings.noise is None:
        accuracy = accuracy.removesuffix(" under noise")
    kept = f"{len(fitted.history)} epochs, kept is {best['epoch']}: loss {best['loss']:.4f}"
    print(f"{kept}{accuracy}{_radius(best)}")
    mean, std = settings.mean, settings.std
    shift = f" --mean {_words(mean)} --std {_words(std)}" if mean and std else ""
    weights = out / "model.safetensors"
    print(f"use it with: --model {settings.spec} --weights {weights}{shift}", file=sys.stderr)


def _radius(epoch: Mapping[str, Any]) -> str:
    """The estimate of an epoch, in words."""
    return f", average radius about {epoch['radius']:.3f}" if "radius" in epoch else ""


def _words(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:g}" for value in values)


def _with_bar(examples: Examples, settings: Training, out: Path, resume: bool) -> Fitted:
    """Train with the estimated end, by steps also inside an epoch."""
    from unicr.lab.report.tables import Bar
    from unicr.lab.train import train_run

    words = "training"

    with Bar(words, settings.epochs) as bar:

        def show(now: Fitted) -> None:
            nonlocal words
            last = now.history[-1]
            accuracy = "" if last["accuracy"] is None else f", accuracy {last['accuracy']:.1%}"
            words = f"epoch {last['epoch']}: loss {last['loss']:.4f}{accuracy}{_radius(last)}"
            step(len(now.history))

        def step(epochs: float) -> None:
            bar.update(words, now=epochs)

        return train_run(examples, settings, out, resume=resume, on_epoch=show, on_step=step)
