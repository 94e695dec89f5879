"""Train a classifier on noisy inputs, whatever the noise: the first half of C-OPT.

AdamW, a one-cycle learning rate and cross-entropy. Everything random is fixed by (seed, epoch), so
a training that goes on from a checkpoint comes to the same weights.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from unicr.classifier import Normalised, load_classifier
from unicr.classifier.internal import RESNETS, usable
from unicr.classifier.mlp import MLP
from unicr.classifier.resnet import ResNet
from unicr.files import load_object
from unicr.noise import Noise, parse
from unicr.noise.internal import check_parses
from unicr.train._examples import Examples, TrainError

HIDDEN = (512, 256)
RISE = 0.3  # share of the steps in which the learning rate rises to its peak

State = dict[str, torch.Tensor]


class DivergedError(TrainError):
    """A training whose loss or weights are no longer finite numbers."""


@dataclass(frozen=True)
class Training:
    """What decides the weights, beside the data. `noise` is its text, None for clean inputs.

    `arch` is mlp, resnet8, resnet20, resnet56, resnet110 or file.py:factory. `val_share` of the
    inputs are held out; after `patience` epochs without a better accuracy on them the training
    ends. `mean` and `std` say what the network expects; the noise is in input space.
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

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise TrainError(f"epochs={self.epochs}: at least one")
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise TrainError(f"lr={self.lr!r}: a finite number above 0 is needed")
        if self.batch < 2:
            raise TrainError(f"batch={self.batch}: at least two inputs at a time")
        if not 0 <= self.val_share < 1:
            raise TrainError(f"val_share={self.val_share!r}: a share from 0 up to below 1")
        if self.patience is not None and self.patience < 1:
            raise TrainError(f"patience={self.patience}: at least one epoch")
        if self.patience is not None and self.val_share == 0:
            raise TrainError("early stopping (patience) needs inputs held out: val_share above 0")
        if (self.mean is None) != (self.std is None):
            raise TrainError("mean and std belong together: give both or neither")
        if self.noise is not None:
            check_parses(parse(self.noise))

    @property
    def spec(self) -> str:
        """What `load_classifier` takes, together with the weights."""
        return self.arch if ".py:" in self.arch else f"builtin:{self.arch}"


@dataclass
class Fitted:
    """A training after some epochs: `state` holds the best weights so far, `history` each epoch."""

    settings: Training
    state: State
    history: list[dict[str, Any]] = field(default_factory=list)
    done: bool = False

    @property
    def best(self) -> dict[str, Any]:
        """The epoch that `state` is from."""
        scored = [e for e in self.history if e["accuracy"] is not None]
        return max(scored, key=lambda e: e["accuracy"]) if scored else self.history[-1]


def build(arch: str, shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """An untrained network for inputs of this shape."""
    spec = f"builtin:{arch}"
    if arch == "mlp":
        return MLP((math.prod(shape), *HIDDEN, num_classes))
    if spec in RESNETS:
        if len(shape) != 3:
            raise TrainError(f"{arch} is for images (channels, height, width), not {shape}")
        return ResNet(RESNETS[spec], num_classes, shape[0])
    if ".py:" in arch:
        return _from_factory(arch)
    known = ", ".join(["mlp", *(name.removeprefix("builtin:") for name in RESNETS)])
    raise TrainError(f"no architecture {arch!r}: there are {known}, or file.py:factory")


def _from_factory(arch: str) -> nn.Module:
    factory = load_object(arch)
    try:
        module = factory()
    except Exception as error:
        raise TrainError(f"{arch}() failed: {type(error).__name__}: {error}") from error
    if not isinstance(module, nn.Module):
        raise TrainError(f"{arch}() gave {type(module).__name__}, not a torch module")
    return module


def one_cycle(step: int, steps: int, peak: float) -> float:
    """The learning rate at a step: from peak/25 up to the peak by a cosine, then down to 0."""
    top = RISE * steps - 1
    if step <= top:
        low, share = peak / 25, step / top
        return peak + (low - peak) * (1 + math.cos(math.pi * share)) / 2
    share = (step - top) / (steps - 1 - top)
    return peak * (1 + math.cos(math.pi * share)) / 2


def _stream(purpose: str, seed: int) -> int:
    """A seed that no other purpose has. The noise of certification must be independent of the
    weights, so training never draws from the streams (seed, input) that certification votes with.
    """
    return int.from_bytes(hashlib.sha256(f"unicr {purpose} {seed}".encode()).digest()[:7])


class Trainer:
    """One training in memory: `run` goes on from where it stands, epoch by epoch."""

    def __init__(self, examples: Examples, settings: Training) -> None:
        self.examples, self.settings = examples, settings
        self.device = usable(settings.device)
        self.noise: Noise | None = None if settings.noise is None else parse(settings.noise)
        with _seeded(_stream("weights", settings.seed)):
            self.module = build(settings.arch, examples.shape, examples.num_classes)
            self.module.to(self.device)
        self._shift = self._normalisation()
        order = torch.randperm(len(examples), generator=_generator("held out", settings.seed))
        held = round(settings.val_share * len(examples))
        if settings.val_share > 0 and held == 0:
            raise TrainError(
                f"val_share={settings.val_share:g} of {len(examples)} inputs is not even one"
            )
        self.held_out, self.kept = order[:held], order[held:]
        if len(self.kept) < 2:
            raise TrainError(f"{len(self.kept)} inputs are left to train on: two are needed")
        self.optimizer = torch.optim.AdamW(
            self.module.parameters(),
            lr=settings.lr,
            weight_decay=0.01,
            fused=self.device.type in ("cpu", "cuda"),
        )
        self.fitted = Fitted(settings, _state(self.module))
        self._check_scores()

    def run(self, on_epoch: Callable[[Trainer], None] | None = None) -> Fitted:
        """The epochs that are left; `on_epoch` is called after each."""
        fitted = self.fitted
        while not fitted.done:
            start = time.perf_counter()
            epoch = len(fitted.history)
            loss = self._epoch(epoch)
            accuracy = self._accuracy(epoch) if len(self.held_out) else None
            before = fitted.best["accuracy"] if fitted.history else None
            if before is None or accuracy is None or accuracy > before:
                fitted.state = _state(self.module)
            seconds = time.perf_counter() - start
            fitted.history.append(
                {"epoch": epoch + 1, "loss": loss, "accuracy": accuracy, "seconds": seconds}
            )
            fitted.done = len(fitted.history) >= self.settings.epochs or self._stale()
            if on_epoch is not None:
                on_epoch(self)
        return fitted

    def checkpoint(self) -> dict[str, Any]:
        """Everything needed to go on, in tensors, numbers and texts."""
        return {
            "module": self.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "state": self.fitted.state,
            "history": self.fitted.history,
            "done": self.fitted.done,
        }

    def restore(self, checkpoint: dict[str, Any]) -> None:
        """Go back to a checkpoint of the same settings."""
        self.module.load_state_dict(checkpoint["module"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.fitted.state = checkpoint["state"]
        self.fitted.history = list(checkpoint["history"])
        self.fitted.done = checkpoint["done"]

    def _normalisation(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Mean and std as tensors that fit a batch, checked as `Normalised` checks them."""
        mean, std = self.settings.mean, self.settings.std
        if mean is None or std is None:
            return None
        Normalised(load_classifier(self.module), mean, std)
        shape = (1, -1, *[1] * (len(self.examples.shape) - 1))
        for values in (mean, std):
            if len(values) not in (1, self.examples.shape[0]):
                raise TrainError(
                    f"mean and std have {len(values)} values, inputs of shape "
                    f"{self.examples.shape} have {self.examples.shape[0]} channels"
                )
        return (
            torch.tensor(mean, device=self.device).view(shape),
            torch.tensor(std, device=self.device).view(shape),
        )

    def _check_scores(self) -> None:
        with torch.no_grad():
            self.module.eval()
            try:
                scores = self.module(self._normalised(self._clean(self.kept[:2])))
            except Exception as error:
                raise TrainError(
                    f"{self.settings.arch} does not work on inputs of shape "
                    f"{self.examples.shape}: {type(error).__name__}: {error}"
                ) from error
        shape = tuple(scores.shape) if isinstance(scores, torch.Tensor) else type(scores).__name__
        if shape != (2, self.examples.num_classes):
            raise TrainError(
                f"{self.settings.arch} gave {shape} for 2 inputs of {self.examples.num_classes} "
                f"classes: scores of shape (2, {self.examples.num_classes}) are needed"
            )

    def _clean(self, rows: torch.Tensor) -> torch.Tensor:
        return self.examples.batch(rows).to(self.device)

    def _normalised(self, inputs: torch.Tensor) -> torch.Tensor:
        if self._shift is None:
            return inputs
        mean, std = self._shift
        return (inputs - mean) / std

    def _noisy(self, rows: torch.Tensor, purpose: str, epoch: int, start: int) -> torch.Tensor:
        inputs = self._clean(rows)
        if self.noise is not None:
            seed = _stream(purpose, self.settings.seed)
            inputs += self.noise.sample(
                len(rows),
                self.examples.shape,
                seed=seed,
                input_index=epoch,
                start=start,
                device=self.device,
            )
        return self._normalised(inputs)

    def _epoch(self, epoch: int) -> float:
        """One pass over the inputs in a new order; the mean loss."""
        size, settings = len(self.kept), self.settings
        starts = [*range(0, size, settings.batch)]
        if size - starts[-1] == 1:  # a single input is no batch for batch normalisation
            starts.pop()
        order = torch.randperm(size, generator=_generator("order", settings.seed, epoch))
        total = torch.zeros((), device=self.device)
        self.module.train()
        with _seeded(_stream("layers", settings.seed) + epoch):
            for i, start in enumerate(starts):
                rows = self.kept[order[start : start + settings.batch]]
                scores = self.module(self._noisy(rows, "training", epoch, start))
                labels = self.examples.labels[rows].to(self.device)
                loss = nn.functional.cross_entropy(scores, labels)
                rate = one_cycle(
                    epoch * len(starts) + i, settings.epochs * len(starts), settings.lr
                )
                for group in self.optimizer.param_groups:
                    group["lr"] = rate
                self.optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                self.optimizer.step()
                total += loss.detach() * len(rows)
        mean = float(total) / size
        if not math.isfinite(mean) or not _finite(self.module):
            raise DivergedError(
                f"training with {settings.noise or 'no noise'} diverged in epoch {epoch + 1} (the "
                f"loss is {mean:g}): take a lower learning rate than {settings.lr:g}"
            )
        return mean

    @torch.no_grad()
    def _accuracy(self, epoch: int) -> float:
        """Share of the held-out inputs that get their label, each under one draw of noise."""
        self.module.eval()
        right = 0
        for start in range(0, len(self.held_out), self.settings.batch):
            rows = self.held_out[start : start + self.settings.batch]
            scores = self.module(self._noisy(rows, "validation", epoch, start))
            right += int((scores.argmax(1).cpu() == self.examples.labels[rows]).sum())
        return right / len(self.held_out)

    def _stale(self) -> bool:
        patience = self.settings.patience
        return patience is not None and len(self.fitted.history) - self.fitted.best["epoch"] >= (
            patience
        )


def _state(module: nn.Module) -> State:
    """A copy of the weights on the CPU."""
    return {
        name: tensor.detach().cpu().clone().contiguous()
        for name, tensor in module.state_dict().items()
    }


def _finite(module: nn.Module) -> bool:
    return all(bool(torch.isfinite(p).all()) for p in module.parameters())


def _generator(purpose: str, seed: int, epoch: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(_stream(purpose, seed) + epoch)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Torch's global generators at this seed inside, and as they were after."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
