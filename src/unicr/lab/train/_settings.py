"""What decides a training beside its data: the settings, and the network that they name."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from unicr.errors import UnicrError
from unicr.files import load_object

if TYPE_CHECKING:
    from torch import nn

HIDDEN = (512, 256)  # widths of the layers of `mlp`


class TrainError(UnicrError, ValueError):
    """A training that cannot be made as asked: settings or an architecture that do not fit."""


@dataclass(frozen=True)
class Training:
    """What decides the weights of a network, beside the data.

    Parameters
    ----------
    noise
        The noise of the training, e.g. 'gaussian(sigma=0.5)'. In every epoch each input gets a
        fresh sample of it. none: train on clean inputs.
    arch
        mlp, lenet, deep-lenet, resnet8, resnet20, resnet56, resnet110, or file.py:factory for your
        own network.
    epochs
        Passes over the data.
    lr
        The highest learning rate.
    batch
        Inputs per step.
    val_share
        Share of the inputs held out to measure accuracy under noise; the best epoch is kept.
    patience
        Stop after this many epochs without a better accuracy.
    seed
        Random seed of weights, order and noise.
    device
        Where it trains: cpu, cuda, …
    mean
        The network expects (x - mean)/std, per channel. The noise stays in input space.
    std
        See mean.
    method
        augment (cross-entropy), consistency, smoothadv, macer or margin; any noise and norm.
    schedule
        The learning rate: one-cycle (up and down), cosine (down from the start) or step (to a
        tenth, three times).
    norm
        The norm of radii, l2 if left out. smoothadv and margin attack in this norm, macer enlarges
        radii in it, and the average radius after each epoch is estimated in it.
    samples
        Noisy copies of each input in a step; the method's own number if left out.
    weight
        consistency, macer: the weight of their extra loss. smoothadv: the weight of an added
        consistency loss.
    radius
        smoothadv: size of the attack. margin: largest size of the attack. macer: target radius.
    steps
        Steps of smoothadv's attack.
    start
        A file of weights to start from (.safetensors), instead of random weights.
    precision
        bf16: run the network in bf16 (torch autocast). Weights, noise and loss stay float32.
    """

    noise: str | None
    arch: str = "mlp"
    epochs: int = 10
    lr: float = 2e-3
    batch: int = 512
    val_share: float = 0.05
    patience: int | None = None
    seed: int = 0
    device: str = "cpu"
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    method: str = "augment"
    schedule: str = "one-cycle"
    norm: str | None = None
    samples: int | None = None
    weight: float | None = None
    radius: float | None = None
    steps: int | None = None
    start: str | None = None
    precision: Literal["bf16"] | None = None

    def __post_init__(self) -> None:
        # torch loads here, not with this module: `unicr train --help` reads the fields alone
        from unicr.lab.train._method import METHODS
        from unicr.lab.train._schedule import SCHEDULES
        from unicr.noise import parse
        from unicr.noise.internal import check_parses
        from unicr.norms import parse_norm

        if self.noise == "none":
            object.__setattr__(self, "noise", None)
        if self.epochs < 1:
            raise TrainError(f"epochs={self.epochs} must be at least 1")
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise TrainError(f"lr={self.lr!r}: a finite number above 0 is needed")
        if self.batch < 2:
            raise TrainError(f"batch={self.batch} must be at least 2")
        if not 0 <= self.val_share < 1:
            raise TrainError(f"val_share={self.val_share!r} must be at least 0 and below 1")
        if self.patience is not None and self.patience < 1:
            raise TrainError(f"patience={self.patience} must be at least 1")
        if self.patience is not None and self.val_share == 0:
            raise TrainError(
                "early stopping (patience) needs validation inputs: set val_share above 0"
            )
        if (self.mean is None) != (self.std is None):
            raise TrainError("mean and std belong together: give both or neither")
        for name, value, known in (
            ("method", self.method, METHODS),
            ("schedule", self.schedule, SCHEDULES),
        ):
            if value not in known:
                raise TrainError(f"there is no {name} {value!r}; there are {', '.join(known)}")
        for name, least in (("samples", 1), ("weight", 0), ("radius", 0), ("steps", 1)):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= least):
                raise TrainError(f"{name}={value!r}: a finite number from {least} up is needed")
        if self.precision not in (None, "bf16"):  # fp16 would need its losses scaled
            raise TrainError(f"precision={self.precision!r} must be bf16, or left out")
        if self.norm is not None:
            parse_norm(self.norm)
        if self.noise is not None:
            check_parses(parse(self.noise))

    def to_dict(self) -> dict[str, Any]:
        """All settings; those that came later only where they are not their defaults."""
        values, newer = asdict(self), {f.name: f.default for f in fields(self)[NEWER:]}
        return {k: v for k, v in values.items() if k not in newer or v != newer[k]}

    @property
    def spec(self) -> str:
        """What `load_classifier` takes, together with the weights."""
        return self.arch if ".py:" in self.arch else f"builtin:{self.arch}"


NEWER = [f.name for f in fields(Training)].index("method")


@dataclass(frozen=True)
class SelectorTraining:
    """What decides a selector, beside its data and the noises that it chooses from.

    Parameters
    ----------
    arch
        mlp, resnet8, resnet20, … or file.py:factory for a module of your own.
    epochs
        Passes over the data.
    lr
        The highest learning rate.
    batch
        Inputs per step.
    copies
        Noisy copies of each input in a step.
    votes
        Votes of each classifier on each training input, to estimate its radius there.
    seed
        Random seed of weights, order and noise.
    device
        Where it trains: cpu, cuda, …
    """

    arch: str = "mlp"
    epochs: int = 10
    lr: float = 1e-3
    batch: int = 128
    copies: int = 8
    votes: int = 64
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 2 or self.copies < 2 or self.votes < 10:
            raise TrainError(
                f"epochs={self.epochs}, batch={self.batch}, copies={self.copies} and "
                f"votes={self.votes} must be at least 1, 2, 2 and 10"
            )
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise TrainError(f"lr={self.lr!r}: a finite number above 0 is needed")


def build(arch: str, shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """An untrained network for inputs of this shape."""
    from unicr.classifier import MLP
    from unicr.classifier.internal import RESNETS
    from unicr.classifier.lenet import LeNet, deep
    from unicr.classifier.resnet import ResNet

    lenets = {"lenet": LeNet, "deep-lenet": deep}
    spec = f"builtin:{arch}"
    if arch == "mlp":
        return MLP((math.prod(shape), *HIDDEN, num_classes))
    if (spec in RESNETS or arch in lenets) and len(shape) != 3:
        raise TrainError(
            f"{arch} works on images of shape (channels, height, width), not on {shape}"
        )
    if spec in RESNETS:
        return ResNet(RESNETS[spec], num_classes, shape[0])
    if arch in lenets:
        return lenets[arch](shape, num_classes)
    if ".py:" in arch:
        return _from_factory(arch)
    known = ", ".join(["mlp", *lenets, *(name.removeprefix("builtin:") for name in RESNETS)])
    raise TrainError(
        f"there is no architecture {arch!r}; there are {known}, or give your own as file.py:factory"
    )


def _from_factory(arch: str) -> nn.Module:
    from torch import nn

    factory = load_object(arch)
    try:
        module = factory()
    except Exception as error:
        raise TrainError(f"{arch}() failed: {type(error).__name__}: {error}") from error
    if not isinstance(module, nn.Module):
        raise TrainError(f"{arch}() returned {type(module).__name__}, but a torch module is needed")
    return module
