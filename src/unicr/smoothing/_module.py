"""The smoothed classifier as a torch module: a probability for every class, with gradients.

p(x) = E softmax f(x + ε) is averaged over m samples of the noise of each input, and gradients go
through the base network (expectation over noise). A model that cannot be differentiated answers
with the shares of its votes instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

from unicr.classifier import (
    Classifier,
    Denoised,
    ModuleClassifier,
    Normalised,
    load_classifier,
)
from unicr.classifier.internal import evaluating, labels_of
from unicr.errors import ModelError
from unicr.noise import Noise

Logits = Callable[[torch.Tensor], torch.Tensor]


class SmoothedModel(nn.Module):
    """Log-probabilities (n, classes) of the smoothed classifier at n inputs.

    Input i has the noise `noises[i]`, drawn from the stream (seed, `indices[i]`): the same m
    samples at every call, or the next ones where `fresh`. `batch` is the most noisy inputs of one
    forward pass.
    """

    def __init__(
        self,
        classifier: Classifier,
        noises: Sequence[Noise],
        indices: Sequence[int],
        shape: tuple[int, ...],
        *,
        num_classes: int | None = None,
        samples: int = 32,
        seed: int = 0,
        batch: int = 1024,
        fresh: bool = False,
    ) -> None:
        super().__init__()
        self.name = classifier.name
        self.samples = samples
        self.device = classifier.device
        self._classifier = classifier
        self._streams = list(zip(noises, indices, strict=True))
        self._shape, self._seed, self._batch, self._fresh = shape, seed, batch, fresh
        self._drawn = 0
        self._noise: torch.Tensor | None = None
        self._logits = logits_of(classifier)
        self.num_classes = num_classes or self._count_classes()

    @property
    def size(self) -> tuple[int, ...]:
        """The shape of a batch of all inputs."""
        return (len(self._streams), *self._shape)

    @property
    def differentiable(self) -> bool:
        """Whether gradients reach the input."""
        return self._logits is not None

    def forward(self, x: torch.Tensor, rows: torch.Tensor | None = None) -> torch.Tensor:
        """log p(x); `rows` says for each x of which input it is a variant (in order without)."""
        if self._logits is None:
            votes = self.votes(x, rows).to(torch.float32)
            return ((votes + 0.5) / (self.samples + 0.5 * self.num_classes)).log()
        each = self._each(self._pieces(x, rows), self._logits).view(len(x), self.samples, -1)
        return torch.logsumexp(each, 1) - math.log(self.samples)

    def votes(self, x: torch.Tensor, rows: torch.Tensor | None = None) -> torch.Tensor:
        """How many of the m samples around each x got each class."""
        labels = [self._classifier.predict(piece) for piece in self._pieces(x, rows)]
        flat = torch.cat(labels).clamp(max=self.num_classes - 1)
        hot = functional.one_hot(flat, self.num_classes)
        return hot.view(len(x), self.samples, -1).sum(1)

    def _pieces(self, x: torch.Tensor, rows: torch.Tensor | None) -> list[torch.Tensor]:
        noise = self._sampled() if rows is None else self._sampled()[rows]
        noisy = self._see(x[:, None].to(torch.float32) + noise, rows).flatten(0, 1)
        return [noisy[i : i + self._batch] for i in range(0, len(noisy), self._batch)]

    def _see(self, noisy: torch.Tensor, rows: torch.Tensor | None) -> torch.Tensor:
        laws = [noise for noise, _ in self._streams]
        if len(set(laws)) == 1:
            return laws[0].see(noisy)
        chosen = laws if rows is None else [laws[row] for row in rows.tolist()]
        return torch.stack([law.see(copy_) for law, copy_ in zip(chosen, noisy, strict=True)])

    def _each(self, pieces: Sequence[torch.Tensor], logits: Logits) -> torch.Tensor:
        """log softmax of every noisy input; a gradient recomputes the pieces, to save memory."""
        if len(pieces) > 1 and torch.is_grad_enabled() and pieces[0].requires_grad:
            with set_checkpoint_early_stop(False):  # it would stop by an error inside the model
                scores = [checkpoint(logits, piece, use_reentrant=False) for piece in pieces]
        else:
            scores = [logits(piece) for piece in pieces]
        return functional.log_softmax(torch.cat(scores), 1)

    def _sampled(self) -> torch.Tensor:
        if self._noise is not None and not self._fresh:
            return self._noise
        size = (len(self._streams), self.samples, *self._shape)
        drawn = torch.empty(size, dtype=torch.float32, device=self.device)
        for into, (noise, index) in zip(drawn, self._streams, strict=True):
            noise.sample(
                self.samples, seed=self._seed, input_index=index, start=self._drawn, out=into
            )
        if self._fresh:
            self._drawn += self.samples
        self._noise = drawn
        return drawn

    def _count_classes(self) -> int:
        if self._classifier.num_classes is None:
            self._classifier.predict(torch.zeros((1, *self._shape), device=self.device))
        if self._classifier.num_classes is None:
            raise ModelError(
                f"{self.name} returns labels only, so the number of classes is not known: give "
                "num_classes="
            )
        return self._classifier.num_classes


class SmoothedModule(nn.Module):
    """The smoothed classifier for batches of any size: log-probabilities (n, classes).

    An estimate from `samples` noisy copies of each input, without a guarantee. Use it for attacks,
    saliency maps, or inside another network. Gradients reach the input, not the weights. With
    `fresh`, every call draws new noise; without it, the same input gives the same answer.

    >>> import torch, unicr
    >>> from unicr.smoothing import SmoothedModule
    >>> g = SmoothedModule(torch.nn.Linear(4, 3), unicr.noise.laplace(sigma=0.5), samples=64)
    >>> x = torch.zeros(2, 4, requires_grad=True)
    >>> g(x)[:, 0].sum().backward()
    >>> tuple(x.grad.shape)
    (2, 4)
    """

    def __init__(
        self,
        model: Classifier | nn.Module,
        noise: Noise,
        *,
        samples: int = 32,
        num_classes: int | None = None,
        seed: int = 0,
        batch: int = 1024,
        fresh: bool = False,
    ) -> None:
        super().__init__()
        self.classifier = load_classifier(model, num_classes=num_classes)
        self.noise, self.samples, self.fresh = noise, samples, fresh
        self._options: dict[str, Any] = {"num_classes": num_classes, "seed": seed, "batch": batch}
        self._inner: SmoothedModel | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """log p(x) for every input of a batch (n, …)."""
        inner, size = self._inner, (len(x), *x.shape[1:])
        if inner is None or inner.size != size:
            inner = SmoothedModel(
                self.classifier,
                [self.noise] * len(x),
                range(len(x)),
                tuple(x.shape[1:]),
                samples=self.samples,
                fresh=self.fresh,
                **self._options,
            )
            self._inner = inner
        return inner(x)


def logits_of(classifier: Classifier) -> Logits | None:
    """The scores of a classifier as a differentiable function, None if there is none."""
    if isinstance(classifier, ModuleClassifier):
        return _Module(classifier)
    if isinstance(classifier, Normalised):
        inner = logits_of(classifier.classifier)
        return None if inner is None else _After(classifier.normalised, inner)
    if isinstance(classifier, Denoised) and isinstance(classifier.denoiser, nn.Module):
        inner = logits_of(classifier.classifier)
        return None if inner is None else _After(_Still(classifier.denoiser), inner)
    return None


class _After:
    """One function after another."""

    def __init__(self, first: Logits, second: Logits) -> None:
        self._first, self._second = first, second

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        return self._second(self._first(batch))


class _Still:
    """A module in eval mode, whose own weights get no gradient."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        with evaluating(self._module), _without_weights(self._module):
            out: torch.Tensor = self._module(batch)
            return out


class _Module:
    """Scores (n, classes) of a module; a single score s becomes the two scores (0, s)."""

    def __init__(self, classifier: ModuleClassifier) -> None:
        self._classifier = classifier

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        module = self._classifier.module
        with evaluating(module), _without_weights(module):
            out = self._classifier.scores(batch)
        labels_of(out, len(batch), self._classifier.name)  # refuses whatever is no tensor
        out = cast("torch.Tensor", out)
        if not out.dtype.is_floating_point:
            raise ModelError(
                f"{self._classifier.name} returns labels, which have no gradient: use a model that "
                "returns scores"
            )
        scores = out.reshape(len(batch), -1)
        if scores.shape[1] == 1:
            scores = torch.cat([torch.zeros_like(scores), scores], 1)
        return scores


@contextmanager
def _without_weights(module: nn.Module) -> Iterator[None]:
    """No gradient for the weights inside, so that an attack neither computes nor changes them."""
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    for weight in weights:
        weight.requires_grad_(False)
    try:
        yield
    finally:
        for weight in weights:
            weight.requires_grad_(True)
