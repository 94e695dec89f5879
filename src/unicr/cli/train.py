"""`unicr train`: a classifier trained with the noise that it will be smoothed with."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from unicr.cli._parameters import Out, command, spread
from unicr.data import DataOptions
from unicr.lab.train import Training

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

    Writes model.safetensors and train.json into the folder. Example:

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
    from unicr.lab.train import examples_of, train_run

    dataset = reading.load(data, split="train")
    fitted = train_run(examples_of(dataset, max_), settings, out, resume=resume)
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
