"""Any Python callable from a batch to labels or scores, in torch tensors or numpy arrays.

Scores are (inputs, classes) of floating type; labels are whole numbers of shape (inputs,).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from unicr.classifier._base import Classifier, check_labels
from unicr.classifier._digest import source_digest
from unicr.classifier._load import Adapter, ModelAsked
from unicr.errors import ModelError, foreign
from unicr.extras import torch


class CallableClassifier(Classifier):
    """Labels from a function. It gets a numpy array if it is annotated so or `takes_numpy`."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        name: str | None = None,
        digest: str | None = None,
        device: str | torch.device = "cpu",
        num_classes: int | None = None,
    ) -> None:
        own = getattr(function, "__name__", type(function).__name__)
        super().__init__(
            name=own if name is None else name,
            digest=source_digest(function) if digest is None else digest,
            device=device,
            num_classes=num_classes,
        )
        self.function = function
        self._numpy = takes_numpy(function)

    def predict(self, batch: torch.Tensor) -> torch.Tensor:
        return check_labels(self.predict_unchecked(batch), self.name)

    def predict_unchecked(self, batch: torch.Tensor) -> torch.Tensor:
        given = batch.detach().cpu().numpy() if self._numpy else batch
        with torch.inference_mode():
            with foreign(ModelError, f"{self.name} failed"):
                output = self.function(given)
                if isinstance(output, np.ndarray | list):
                    output = torch.as_tensor(np.asarray(output))
            if isinstance(output, torch.Tensor) and output.ndim == 1 and output.is_floating_point():
                raise ModelError(
                    f"{self.name} returned one floating-point number for each input: return whole "
                    "numbers if these are labels, and the shape (inputs, 1) if they are scores"
                )
            return self._labels_unchecked(output, len(batch)).to(self.device)


def takes_numpy(function: Callable[[Any], Any]) -> bool:
    """Whether a callable wants a numpy array: by its attribute or its first annotation."""
    said = getattr(function, "takes_numpy", None)
    if said is not None:
        return bool(said)
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except (TypeError, ValueError):
        return False
    return first is not None and any(
        word in str(first.annotation) for word in ("ndarray", "NDArray", "ArrayLike")
    )


def load(asked: ModelAsked) -> Classifier:
    """A classifier of a function in memory or in a Python file."""
    return CallableClassifier(
        asked.thing, name=asked.spec, device=asked.device or "cpu", num_classes=asked.num_classes
    )


ADAPTER = Adapter("", lambda asked: callable(asked.thing), load, rank=2)
