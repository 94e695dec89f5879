"""`unicr train`: a classifier trained with the noise that it will be smoothed with."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unicr.cli._options import (
    TRAINING,
    DataOptions,
    Device,
    Max,
    MaybeWhole,
    Mean,
    Out,
    Resume,
    Seed,
    Std,
    Whole,
)

if TYPE_CHECKING:
    pass


def train(
    *,
    data: str,
    noise: str,
    out: Out,
    arch: str = "mlp",
    method: str = "augment",
    norm: str | None = None,
    reading: DataOptions = TRAINING,
    epochs: Whole = 10,
    lr: float = 2e-3,
    schedule: str = "one-cycle",
    batch: Whole = 512,
    val_share: float = 0.05,
    patience: MaybeWhole = None,
    seed: Seed = 0,
    max_: Max = None,
    device: Device = "cpu",
    mean: Mean = None,
    std: Std = None,
    samples: MaybeWhole = None,
    weight: float | None = None,
    radius: float | None = None,
    steps: MaybeWhole = None,
    start: str | None = None,
    resume: Resume = False,
) -> None:
    """Train a classifier on noisy inputs.

    The folder gets model.safetensors and train.json. Example:

    unicr train --data mnist_train.npz --noise 'laplace(sigma=0.5)' --out model

    Parameters
    ----------
    data
        The training data, in any form that `unicr certify --data` takes, with labels.
    noise
        Added to every input anew in every epoch, e.g. 'gaussian(sigma=0.5)'; none trains without.
    out
        The folder of the training.
    arch
        mlp, lenet, deep-lenet, resnet8, resnet20, resnet56, resnet110, or file.py:factory for one
        of your own.
    method
        augment (cross-entropy), consistency, smoothadv, macer or margin; any noise and norm.
    norm
        That of radii: smoothadv and margin attack in it, macer enlarges radii in it, the average
        estimated after each epoch is in it; 2 if left out.
    epochs
        Passes over the data; the learning rate rises and falls once over all of them.
    lr
        The highest learning rate.
    schedule
        one-cycle (up and down), cosine (down from the start) or step (to a tenth, three times).
    batch
        Inputs per step.
    val_share
        Share of the inputs held out to measure accuracy under noise; the best epoch is kept.
    patience
        Stop after this many epochs without a better accuracy.
    samples
        Noisy copies of each input in a step; the method's own number if left out.
    weight
        Of what consistency or macer adds to the cross-entropy; with smoothadv, of consistency.
    radius
        How far smoothadv attacks, and margin at most; the radius that macer asks for.
    steps
        Steps of smoothadv's attack.
    start
        Weights to begin with (.safetensors), to tune a network further.
    """
    from unicr.data import load_dataset
    from unicr.lab.train import Training, examples_of, train_run

    settings = Training(
        noise=None if noise == "none" else noise,
        arch=arch,
        epochs=epochs,
        lr=lr,
        batch=batch,
        val_share=val_share,
        patience=patience,
        seed=seed,
        device=device,
        mean=None if mean is None else tuple(mean),
        std=None if std is None else tuple(std),
        method=method,
        schedule=schedule,
        norm=norm,
        samples=samples,
        weight=weight,
        radius=radius,
        steps=steps,
        start=start,
    )
    dataset = load_dataset(data, **vars(reading))
    fitted = train_run(examples_of(dataset, max_), settings, out, resume=resume)
    best = fitted.best
    accuracy = "" if best["accuracy"] is None else f", accuracy {best['accuracy']:.2%} under noise"
    if settings.noise is None:
        accuracy = accuracy.removesuffix(" under noise")
    kept = f"{len(fitted.history)} epochs, kept is {best['epoch']}: loss {best['loss']:.4f}"
    print(f"{kept}{accuracy}{_radius(best)}")
    shift = f" --mean {_words(mean)} --std {_words(std)}" if mean and std else ""
    weights = out / "model.safetensors"
    print(f"use it with: --model {settings.spec} --weights {weights}{shift}", file=sys.stderr)


def _radius(epoch: Mapping[str, Any]) -> str:
    """The estimate of an epoch, in words."""
    return f", average radius about {epoch['radius']:.3f}" if "radius" in epoch else ""


def _words(values: list[float]) -> str:
    return " ".join(f"{value:g}" for value in values)
