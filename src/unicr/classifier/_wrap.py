"""Classifiers around classifiers: normalisation and denoising that belong to the model.

Both happen after the noise, so the radius is in the space of the raw input.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unicr.classifier._base import NOT_FINITE, Classifier, check_labels, hint_channels
from unicr.classifier._digest import module_digest, source_digest
from unicr.classifier.adapters.function import takes_numpy
from unicr.classifier.adapters.module import evaluating
from unicr.errors import ModelError, foreign
from unicr.extras import torch
from unicr.files import combine_digests


class Normalised(Classifier):
    """A classifier that gets (x − mean) / std, by channel (the first axis of an input)."""

    def __init__(
        self, classifier: Classifier, mean: float | Sequence[float], std: float | Sequence[float]
    ) -> None:
        means, stds = _numbers("mean", mean), _numbers("std", std)
        if len(means) != len(stds) and 1 not in (len(means), len(stds)):
            raise ModelError(f"mean has {len(means)} values, but std has {len(stds)}")
        if any(value <= 0 for value in stds):
            raise ModelError(f"std={stds}: all values must be above 0")
        self._texts = (f"mean={means}", f"std={stds}")
        super().__init__(
            name=classifier.name,
            digest=combine_digests(classifier.digest, *self._texts),
            device=classifier.device,
            num_classes=classifier.num_classes,
            classes=classifier.classes,
        )
        self.classifier = classifier
        self._preprocessing = combine_digests(*self._texts)
        self._mean = torch.tensor(means, device=self.device)
        self._std = torch.tensor(stds, device=self.device)

    @property
    def text(self) -> str:
        """What is done to an input, in words."""
        mean, std = (", ".join(f"{v:g}" for v in t.tolist()) for t in (self._mean, self._std))
        return f"mean {mean}, std {std}"

    @property
    def digests(self) -> dict[str, str]:
        inner = self.classifier.digests
        before = [inner["preprocessing"]] if "preprocessing" in inner else []
        own = combine_digests(self._preprocessing, *before) if before else self._preprocessing
        return inner | {"preprocessing": own}

    def at_precision(self, precision: str) -> Normalised:
        twin = copy.copy(self)
        twin.classifier = self.classifier.at_precision(precision)
        twin.digest = combine_digests(twin.classifier.digest, *self._texts)
        return twin

    def at_own_precision(self) -> Normalised:
        twin = copy.copy(self)
        twin.classifier, twin.digest = self.classifier.at_own_precision(), ""
        return twin

    def replica(self) -> Normalised | None:
        inner = self.classifier.replica()
        if inner is None:
            return None
        twin = copy.copy(self)
        twin.classifier = inner
        return twin

    def predict(self, batch: torch.Tensor) -> torch.Tensor:
        return check_labels(self.predict_unchecked(batch), self.name)

    def predict_unchecked(self, batch: torch.Tensor) -> torch.Tensor:
        channels = batch.shape[1] if batch.ndim > 1 else 1
        widest = max(len(self._mean), len(self._std))
        if widest not in (1, channels):
            raise ModelError(
                f"mean and std have {widest} values, but inputs of shape {tuple(batch.shape[1:])} "
                f"have {channels} channels{hint_channels(tuple(batch.shape[1:]))}"
            )
        labels = self.classifier.predict_unchecked(self.normalised(batch))
        self.num_classes = self.classifier.num_classes
        return labels

    @property
    def has_convolutions(self) -> bool:
        return self.classifier.has_convolutions

    def normalised(self, batch: torch.Tensor) -> torch.Tensor:
        """(x − mean) / std by channel, differentiable."""
        shape = (1, -1, *[1] * (batch.ndim - 2))
        return (batch - self._mean.view(shape)).div_(self._std.view(shape))


class Denoised(Classifier):
    """A denoiser followed by a classifier (denoised smoothing).

    The two together are one base classifier, so every guarantee holds for them. The denoiser is a
    module or a function from a batch to a batch.
    """

    def __init__(
        self,
        denoiser: torch.nn.Module | Callable[[Any], Any],
        classifier: Classifier | torch.nn.Module,
    ) -> None:
        from unicr.classifier._load import load_classifier

        inner = load_classifier(classifier)
        if isinstance(denoiser, torch.nn.Module):
            digest = module_digest(denoiser)
            denoiser = denoiser.to(inner.device)
        elif callable(denoiser):
            digest = source_digest(denoiser)
        else:
            raise ModelError(f"{type(denoiser).__name__} cannot be called, so it is no denoiser")
        own = getattr(denoiser, "__name__", type(denoiser).__name__)
        super().__init__(
            name=f"{own} + {inner.name}",
            digest=combine_digests(digest, inner.digest),
            device=inner.device,
            num_classes=inner.num_classes,
            classes=inner.classes,
        )
        self.denoiser = denoiser
        self.classifier = inner
        self._denoiser_digest = digest

    @property
    def digests(self) -> dict[str, str]:
        return self.classifier.digests | {"denoiser": self._denoiser_digest}

    def predict(self, batch: torch.Tensor) -> torch.Tensor:
        clean = self._denoise(batch)
        if not bool(torch.isfinite(clean).all()):
            raise ModelError(f"the denoiser of {self.name} returned values that are not finite")
        labels = self.classifier.predict(clean)
        self.num_classes = self.classifier.num_classes
        return labels

    def predict_unchecked(self, batch: torch.Tensor) -> torch.Tensor:
        clean = self._denoise(batch)
        labels = self.classifier.predict_unchecked(clean)
        self.num_classes = self.classifier.num_classes
        return torch.where(torch.isfinite(clean).flatten(1).all(1), labels, NOT_FINITE)

    def _denoise(self, batch: torch.Tensor) -> torch.Tensor:
        with foreign(ModelError, f"the denoiser of {self.name} failed"), torch.inference_mode():
            if isinstance(self.denoiser, torch.nn.Module):
                with evaluating(self.denoiser):
                    clean = self.denoiser(batch)
            else:
                clean = self.denoiser(batch.cpu().numpy() if takes_numpy(self.denoiser) else batch)
        if isinstance(clean, np.ndarray):
            clean = torch.from_numpy(clean)
        if not isinstance(clean, torch.Tensor) or len(clean) != len(batch):
            raise ModelError(f"the denoiser of {self.name} did not return one output per input")
        return clean.to(self.device, torch.float32)


def _numbers(name: str, values: float | Sequence[float]) -> list[float]:
    try:
        listed = [float(v) for v in np.atleast_1d(np.asarray(values, dtype=np.float64))]
    except (TypeError, ValueError):
        raise ModelError(f"{name}={values!r} is not a number or a list of numbers") from None
    if not listed or not all(math.isfinite(value) for value in listed):
        raise ModelError(f"{name}={values!r}: all numbers must be finite")
    return listed
