"""Train a classifier on noisy inputs, whatever the noise: the first half of C-OPT.

AdamW over the loss of a method, and after each epoch what held-out inputs say. Everything random is
fixed by (seed, epoch), so a training that goes on from a checkpoint comes to the same weights.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unicr.classifier import Normalised, load_classifier
from unicr.classifier.internal import put_weights, read_weights, try_device
from unicr.lab.train._examples import Examples
from unicr.lab.train._method import METHODS, Reach, Step, Tuned
from unicr.lab.train._schedule import SCHEDULES
from unicr.lab.train._settings import TrainError, Training, build
from unicr.noise import Noise, parse
from unicr.noise.internal import LatticeNoise, derive
from unicr.norms import parse_norm
from unicr.progress import tell
from unicr.smoothing import lattice_for

WARM = 0.1  # share of the training over which what a method adds grows to its full weight
WATCHED, VOTES = 64, 100  # held-out inputs, and votes for each, behind the estimated radius

State = dict[str, torch.Tensor]


class DivergedError(TrainError):
    """A training whose loss or weights are no longer finite numbers."""


@dataclass
class Fitted:
    """A training after some epochs: `state` holds the best weights so far, `history` each epoch.

    The best is judged by accuracy under noise. A method that trades accuracy for radius is not:
    there the last epoch counts, at the lowest learning rate, unless `patience` asks for the best.
    """

    settings: Training
    state: State
    history: list[dict[str, Any]] = field(default_factory=list)
    done: bool = False

    @property
    def best(self) -> dict[str, Any]:
        """The epoch that `state` is from."""
        last = self.settings.method != "augment" and self.settings.patience is None
        scored = [e for e in self.history if e["accuracy"] is not None and not last]
        return max(scored, key=lambda e: e["accuracy"]) if scored else self.history[-1]


def stream(purpose: str, seed: int) -> int:
    """A seed that no other purpose has. The noise of certification must be independent of the
    weights, so training never draws from the streams (seed, input) that certification votes with.
    """
    return int.from_bytes(hashlib.sha256(f"unicr {purpose} {seed}".encode()).digest()[:7])


class Trainer:
    """One training in memory: `run` goes on from where it stands, epoch by epoch."""

    def __init__(self, examples: Examples, settings: Training) -> None:
        self.examples, self.settings = examples, settings
        self.device = try_device(settings.device)
        self.noise: Noise | None = None if settings.noise is None else parse(settings.noise)
        self._drawn: LatticeNoise | None = None
        self.method = METHODS[settings.method]
        if self.noise is None and not self.method.noiseless:
            raise TrainError(
                f"the method {settings.method} needs a noise; only augment trains without one"
            )
        with fix_seed(stream("weights", settings.seed)):
            self.module = build(settings.arch, examples.shape, examples.num_classes)
            if settings.start is not None:
                start = Path(settings.start)
                put_weights(self.module, read_weights(start), start)
            self.module.to(self.device)
        if settings.precision is not None and len(examples.shape) == 3:
            # convolutions in 16 bits are fast with the channels last
            self.module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._shift = self._normalisation()
        self.tuned, self.reach = self._tune_method()
        order = torch.randperm(len(examples), generator=_generator("held out", settings.seed))
        held = round(settings.val_share * len(examples))
        if settings.val_share > 0 and held == 0:
            raise TrainError(
                f"val_share={settings.val_share:g} of {len(examples)} inputs is less than one "
                "input: use a larger share"
            )
        self.held_out, self.kept = order[:held], order[held:]
        if len(self.kept) < 2:
            raise TrainError(
                f"only {len(self.kept)} inputs are left to train on, but two are needed"
            )
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
            record: dict[str, Any] = {"epoch": epoch + 1, "loss": loss, "accuracy": None}
            if len(self.held_out):
                record["accuracy"] = self._accuracy(epoch)
                if self.reach is not None:
                    record["radius"] = self._radius(self.reach)
            record["seconds"] = time.perf_counter() - start
            fitted.history.append(record)
            if fitted.best is record:
                fitted.state = _state(self.module)
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
                    f"mean and std have {len(values)} values, but inputs of shape "
                    f"{self.examples.shape} have {self.examples.shape[0]} channels"
                )
        return (
            torch.tensor(mean, device=self.device).view(shape),
            torch.tensor(std, device=self.device).view(shape),
        )

    def _tune_method(self) -> tuple[Tuned, Reach | None]:
        """The method's settings, and the radii it works with and that the progress estimates.

        None if nobody asked for a norm and the noise has no closed form: a curve takes time.
        """
        given, usual = self.settings, self.method.usual
        names = ("samples", "weight", "radius", "steps")
        chosen = {k: getattr(given, k) for k in names if getattr(given, k) is not None}
        tuned = replace(usual, **chosen)
        if self.noise is None:
            return tuned, None
        reach = Reach(self.noise, parse_norm(given.norm or "2"), math.prod(self.examples.shape))
        if usual.radius and given.radius is None:
            tuned = replace(tuned, radius=reach.at(usual.radius))
        closed = self.noise.iid is not None and self.noise.iid.normal_sigma is not None
        wanted = given.norm or closed or usual.radius
        return tuned, reach if wanted else None

    def _check_scores(self) -> None:
        with torch.no_grad():
            self.module.eval()
            try:
                scores = self.module(self._normalise(self._clean(self.kept[:2])))
            except Exception as error:
                raise TrainError(
                    f"{self.settings.arch} does not work on inputs of shape "
                    f"{self.examples.shape}: {type(error).__name__}: {error}"
                ) from error
        shape = tuple(scores.shape) if isinstance(scores, torch.Tensor) else type(scores).__name__
        if shape != (2, self.examples.num_classes):
            raise TrainError(
                f"{self.settings.arch} returned {shape} for 2 inputs of "
                f"{self.examples.num_classes} classes, but scores of shape (2, "
                f"{self.examples.num_classes}) are needed"
            )

    def _clean(self, rows: torch.Tensor) -> torch.Tensor:
        return self.examples.batch(rows).to(self.device)

    def _normalise(self, inputs: torch.Tensor) -> torch.Tensor:
        if self._shift is None:
            return inputs
        return (inputs - self._shift[0]) / self._shift[1]

    def _draw(self, n: int, purpose: str, epoch: int, start: int) -> torch.Tensor:
        """n samples of the noise, from number `start`, in a stream of their purpose."""
        shape = self.examples.shape
        if self.noise is None:
            return torch.zeros((n, *shape), device=self.device)
        seed = stream(purpose, self.settings.seed)
        return self.noise.sample(
            n, shape, seed=seed, input_index=epoch, start=start, device=self.device
        )

    def _noisy(
        self, rows: torch.Tensor, purpose: str, number: int, start: int, copies: int = 1
    ) -> torch.Tensor:
        """Copies as certification lets the model see them: on their lattice, from a key."""
        clean = self._clean(rows).cpu()
        if self.noise is None:
            return clean.repeat_interleave(copies, 0).to(self.device)
        if self._drawn is None:
            norm = parse_norm(self.settings.norm or 2)
            self._drawn = LatticeNoise(self.noise, lattice_for(clean[:16], self.noise, [norm]))
        key = derive("unicr training", purpose, self.settings.seed, number)
        out = torch.empty(len(clean), copies, *clean.shape[1:])
        for i, x in enumerate(clean):
            base = self._drawn.integers(x.numpy())
            self._drawn.add(base, out[i], key=key, start=(start + i) * copies)
        return out.flatten(0, 1).to(self.device)

    def _scores(self, inputs: torch.Tensor) -> torch.Tensor:
        visible = inputs if self.noise is None else self.noise.see(inputs)
        return self._ask(visible)

    def _ask(self, inputs: torch.Tensor) -> torch.Tensor:
        """What the network says to inputs as it sees them, in its precision."""
        fewer = self.settings.precision is not None
        with torch.autocast(self.device.type, torch.bfloat16, enabled=fewer):
            scores: torch.Tensor = self.module(self._normalise(inputs))
        return scores.float()  # a loss wants more bits than autocast leaves

    def _epoch(self, epoch: int) -> float:
        """One pass over the inputs in a new order; the mean loss."""
        size, settings = len(self.kept), self.settings
        starts = [*range(0, size, settings.batch)]
        if size - starts[-1] == 1:  # a single input is no batch for batch normalisation
            starts.pop()
        order = torch.randperm(size, generator=_generator("order", settings.seed, epoch))
        total = torch.zeros((), device=self.device)
        copies, steps = self.tuned.samples, settings.epochs * len(starts)
        self.module.train()
        with fix_seed(stream("layers", settings.seed) + epoch):
            for i, start in enumerate(starts):
                rows = self.kept[order[start : start + settings.batch]]
                at = epoch * len(starts) + i
                noise = self._draw(copies * len(rows), "training", epoch, copies * start)
                loss = self.method.loss(
                    Step(
                        self._clean(rows),
                        self.examples.labels[rows].to(self.device),
                        noise.view(copies, len(rows), *self.examples.shape),
                        self._scores,
                        self.tuned,
                        self.reach,
                        min(1.0, (at + 1) / (WARM * steps)),
                    )
                )
                rate = SCHEDULES[settings.schedule](at, steps, settings.lr)
                for group in self.optimizer.param_groups:
                    group["lr"] = rate
                self.optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                self.optimizer.step()
                total += loss.detach() * len(rows)
                tell("training", epoch + (i + 1) / len(starts), settings.epochs, self._words())
        mean = float(total) / size
        if not math.isfinite(mean) or not _finite(self.module):
            raise DivergedError(
                f"training with {settings.noise or 'no noise'} diverged in epoch {epoch + 1} (the "
                f"loss is {mean:g}): use a lower learning rate than {settings.lr:g}"
            )
        return mean

    def _words(self) -> str:
        """What the last epoch came to."""
        if not self.fitted.history:
            return "training"
        last = self.fitted.history[-1]
        accuracy = "" if last["accuracy"] is None else f", accuracy {last['accuracy']:.1%}"
        radius = f", average radius about {last['radius']:.3f}" if "radius" in last else ""
        return f"epoch {last['epoch']}: loss {last['loss']:.4f}{accuracy}{radius}"

    @torch.no_grad()
    def _accuracy(self, epoch: int) -> float:
        """Share of the held-out inputs that get their label, each under one draw of noise."""
        self.module.eval()
        right = 0
        for start in range(0, len(self.held_out), self.settings.batch):
            rows = self.held_out[start : start + self.settings.batch]
            copies = self._noisy(rows, "validation", epoch, start)
            predicted = self._ask(copies).argmax(1).cpu()
            right += int((predicted == self.examples.labels[rows]).sum())
        return right / len(self.held_out)

    @torch.no_grad()
    def _radius(self, reach: Reach) -> float:
        """The average radius of some held-out inputs, estimated: p_A is the share of VOTES votes.

        The same inputs and noise in every epoch. An estimate to steer by; it certifies nothing.
        """
        self.module.eval()
        rows = self.held_out[:WATCHED]
        shares = torch.zeros(len(rows))
        for i, row in enumerate(rows):
            copies = self._noisy(row[None], "radius", i, 0, copies=VOTES)
            votes = self._ask(copies).argmax(1).cpu()
            shares[i] = (votes == self.examples.labels[row]).float().mean()
        return float(reach.of(shares.clamp(0.5, 1 - 0.5 / VOTES)).mean())

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
    return torch.Generator().manual_seed(stream(purpose, seed) + epoch)


@contextmanager
def fix_seed(seed: int) -> Iterator[None]:
    """Torch's global generators at this seed inside, and as they were after."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
