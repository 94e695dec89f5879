"""A `torch.nn.Module` that gives logits. Eval mode is forced while it runs and restored after."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from unicr.classifier._base import Classifier, check_labels
from unicr.classifier._digest import module_digest
from unicr.classifier._load import Adapter, ModelAsked, put_weights, read_weights
from unicr.errors import ModelError, foreign
from unicr.extras import torch
from unicr.files import combine_digests, file_digest
from unicr.text import split_reference

PRECISIONS = {"bf16": "bfloat16", "fp16": "float16"}  # the names of torch's types


class ModuleClassifier(Classifier):
    """Labels by the arg max of a module's logits (or the sign of a single one).

    `precision` is that of torch's autocast, None for the module's own.
    """

    precision: str | None = None

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        name: str | None = None,
        digest: str | None = None,
        device: str | torch.device | None = None,
        num_classes: int | None = None,
        classes: tuple[str | int, ...] | None = None,
    ) -> None:
        super().__init__(
            name=type(module).__name__ if name is None else name,
            digest=module_digest(module) if digest is None else digest,
            device=_device_of(module) if device is None else device,
            num_classes=num_classes,
            classes=classes,
        )
        self.module = module.to(self.device)
        self._own = self.digest

    def at_precision(self, precision: str) -> ModuleClassifier:
        if precision not in PRECISIONS:
            raise ModelError(f"precision={precision!r} must be {' or '.join(PRECISIONS)}")
        twin = copy.copy(self)
        twin.precision, twin._own = precision, self.digest
        twin.digest = combine_digests(self.digest, f"precision={precision}")
        return twin

    def at_own_precision(self) -> ModuleClassifier:
        twin = copy.copy(self)
        twin.precision, twin.digest = None, ""
        return twin

    def compiled(self) -> ModuleClassifier:
        twin = copy.copy(self)
        twin.module, twin._own = torch.compile(self.module), self.digest  # type: ignore[assignment]
        twin.digest = combine_digests(self.digest, "torch.compile")
        return twin

    @property
    def digests(self) -> dict[str, str]:
        if self.precision is None:
            return {"model": self.digest}
        return {"model": self._own, "precision": self.precision}

    def predict(self, batch: torch.Tensor) -> torch.Tensor:
        return check_labels(self.predict_unchecked(batch), self.name)

    def predict_unchecked(self, batch: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode(), evaluating(self.module):
            return self._labels_unchecked(self.scores(batch), len(batch))

    @property
    def has_convolutions(self) -> bool:
        return any(isinstance(part, torch.nn.Conv2d) for part in self.module.modules())

    def replica(self) -> ModuleClassifier | None:
        """Module objects copied, parameters and buffers shared, so that a model that is trained on
        stays one model; None off the CPU, or where copying fails.
        """
        if self.device.type != "cpu":
            return None
        tensors = (*self.module.parameters(), *self.module.buffers())
        shared = {id(tensor): tensor for tensor in tensors}
        try:
            module = copy.deepcopy(self.module, shared)
        except Exception:  # a stranger's module may refuse to be copied in any way
            return None
        twin = copy.copy(self)
        twin.module = module
        return twin

    def scores(self, batch: torch.Tensor) -> object:
        """What the module gives; its own exceptions become ModelError."""
        kind = None if self.precision is None else getattr(torch, PRECISIONS[self.precision])
        bits = nullcontext() if kind is None else torch.autocast(self.device.type, kind)
        with foreign(ModelError, f"{self.name} failed"), bits:
            out = self.module(batch)
            fewer = isinstance(out, torch.Tensor) and out.dtype == kind
            return out.float() if fewer else out


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Every sub-module in eval mode inside, and back in its own mode after."""
    training = [part for part in module.modules() if part.training]
    if training:
        module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _device_of(module: torch.nn.Module) -> torch.device:
    first = next(iter((*module.parameters(), *module.buffers())), None)
    return torch.device("cpu") if first is None else first.device


def classifier_of(
    asked: ModelAsked, module: torch.nn.Module, digest: str | None, num_classes: int | None = None
) -> ModuleClassifier:
    """The classifier of a module that an adapter made of what was asked for."""
    return ModuleClassifier(
        module,
        name=asked.spec,
        digest=digest,
        device=asked.device,
        num_classes=num_classes or asked.num_classes,
    )


def load(asked: ModelAsked) -> Classifier:
    """A classifier of a module in memory or in a Python file, with weights put in if given."""
    module, digest = asked.thing, None
    if asked.weights is not None:
        if not isinstance(module, torch.nn.Module):
            raise ModelError(
                f"{asked.name} is not a torch module, so weights cannot be loaded into it"
            )
        put_weights(module, read_weights(asked.weights, asked.trust), asked.weights)
    if asked.spec is not None:
        source = file_digest(Path(split_reference(asked.spec)[0]).expanduser())
        tensors = module_digest(module) if asked.weights is None else file_digest(asked.weights)
        digest = combine_digests(type(module).__qualname__, source, tensors)
    return classifier_of(asked, module, digest)


ADAPTERS = (
    Adapter(
        "file.py:name (a module, a factory of one, an estimator or a function)",
        lambda asked: (
            isinstance(asked.thing, torch.nn.Module)
            or (asked.thing is not None and asked.weights is not None)
        ),
        load,
        takes_weights=True,
    ),
)
