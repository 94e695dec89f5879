"""What a classifier is: a label for every input of a batch, and a digest of what gives it.

A classifier may be randomised: the smoothing theorem only speaks of the probability of a label.
What it must not do is guess: scores that are not finite, or of a wrong shape, are errors.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

from unicr.data import Dataset
from unicr.errors import ModelError, listed
from unicr.extras import torch

# Votes are counted in a vector as long as the largest label, for every batch and in every row of a
# run. The largest public sets of labels have some ten thousand.
MOST_CLASSES = 1 << 20


class Classifier(ABC):
    """Labels 0 … num_classes − 1 for batches of float32 inputs.

    `name` is the text it was loaded from, `digest` a SHA-256 of all that decides its labels,
    `classes` the original labels where the model has its own names for them, `features` the names
    of the columns that it was fitted on.
    """

    features: tuple[str, ...] | None = None

    def __init__(
        self,
        *,
        name: str,
        digest: str,
        device: str | torch.device = "cpu",
        num_classes: int | None = None,
        classes: tuple[str | int, ...] | None = None,
    ) -> None:
        self.name = name
        self.digest = digest
        self.device = torch.device(device)
        self.num_classes = num_classes
        self.classes = classes

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, num_classes={self.num_classes})"

    @property
    def digests(self) -> dict[str, str]:
        """What `digest` is made of: `model`, its files or weights, and by name what is before it.

        `preprocessing` is of mean and std, `denoiser` of a denoiser.
        """
        return {"model": self.digest}

    @abstractmethod
    def predict(self, batch: torch.Tensor) -> torch.Tensor:
        """Labels, int64 of shape (n,), for a batch (n, …) of float32 on `device`.

        Raises ModelError where the model fails or its output gives no labels.
        """

    def at_precision(self, precision: str) -> Classifier:
        """The same computed with fewer bits (bf16, fp16), which is another classifier."""
        raise ModelError(f"{self.name}: a precision can be chosen for torch models only")

    def replica(self) -> Classifier | None:
        """A copy that another thread may use at the same time, or None where that is not safe."""
        return None

    def _labels(self, output: object, n: int) -> torch.Tensor:
        """Labels from the model's output for n inputs; the first output tells `num_classes`."""
        labels = labels_of(output, n, self.name)
        if self.num_classes is None and isinstance(output, torch.Tensor):
            self.num_classes = width_of(output)
        return labels

    def votes(self, batch: torch.Tensor, num_classes: int | None = None) -> torch.Tensor:
        """How often each label occurs in the batch: int64 counts on the CPU.

        `num_classes` fixes their number; without it, it is the model's own or as large as needed.
        """
        labels = self.predict(batch)
        size = num_classes if num_classes is not None else self.num_classes
        largest = int(labels.max()) if len(labels) else 0
        if size is not None and largest >= size:
            raise ModelError(
                f"{self.name} gave the label {largest} where there are {size} classes "
                f"(0 … {size - 1})"
            )
        if largest >= MOST_CLASSES:
            raise ModelError(
                f"{self.name} gave the label {largest}: labels are 0, 1, 2, … below {MOST_CLASSES}"
            )
        return torch.bincount(labels, minlength=size or 0).cpu()


def in_pieces(
    run: Callable[[torch.Tensor], torch.Tensor], batch: torch.Tensor, size: int
) -> torch.Tensor:
    """What `run`, which takes `size` inputs and no others, gives for a batch of any size.

    The last piece is filled up with copies of its last input.
    """
    pieces = []
    for start in range(0, len(batch), size):
        piece = batch[start : start + size]
        filler = piece[-1:].expand(size - len(piece), *piece.shape[1:])
        pieces.append(run(torch.cat([piece, filler]))[: len(piece)])
    return torch.cat(pieces)


def labels_of(output: object, n: int, name: str) -> torch.Tensor:
    """Labels from what a model gave for n inputs: scores (n, C), one score each, or labels (n,).

    Floating scores give their arg max, or their sign where there is one per input (above 0 is
    class 1); whole numbers of shape (n,) are labels already.
    """
    if not isinstance(output, torch.Tensor):
        raise ModelError(
            f"{name} returned {type(output).__name__}: a tensor of scores (inputs, classes) or "
            "labels (inputs,) is needed"
        )
    if not output.dtype.is_floating_point:
        return _checked_labels(output, n, name)
    scores = output.detach()
    if scores.ndim == 1 and n == len(scores):
        scores = scores[:, None]
    if scores.ndim > 2 and scores.shape[2:].numel() == 1:
        scores = scores.flatten(1)
    if scores.ndim != 2 or len(scores) != n or scores.shape[1] == 0:
        raise ModelError(
            f"{name} returned scores of shape {tuple(output.shape)} for {n} inputs: "
            f"({n}, classes) is needed"
        )
    if not math.isfinite(scores.sum()) and not bool(torch.isfinite(scores).all()):
        raise ModelError(f"{name} returned scores that are not finite numbers (NaN or infinity)")
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).long()
    return scores.argmax(1)


def _checked_labels(labels: torch.Tensor, n: int, name: str) -> torch.Tensor:
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n,) or labels.dtype.is_complex:
        raise ModelError(
            f"{name} returned labels of shape {tuple(labels.shape)} for {n} inputs: ({n},) is "
            "needed"
        )
    labels = labels.long()
    if n and int(labels.min()) < 0:
        raise ModelError(f"{name} returned the label {int(labels.min())}: labels are 0, 1, 2, …")
    return labels


def width_of(output: torch.Tensor) -> int | None:
    """The number of classes that scores speak of; None for labels."""
    if not output.dtype.is_floating_point:
        return None
    return 2 if output.ndim == 1 else max(2, output.shape[1])


def check_shape(classifier: Classifier, sample: torch.Tensor) -> None:
    """Run one input (without batch axis) through, so that a wrong shape shows before a long run.

    Two copies make a batch, since a model that mixes up its axes may pass with one.
    """
    batch = sample.to(classifier.device, torch.float32)[None].repeat(2, *[1] * sample.ndim)
    try:
        classifier.votes(batch)
    except ModelError as error:
        raise ModelError(
            f"{classifier.name} does not work on inputs of shape {tuple(sample.shape)}"
            f"{_channels(tuple(sample.shape))}: {error}"
        ) from None


def _channels(shape: tuple[int, ...]) -> str:
    """A word to whoever keeps images in another way than torch does."""
    if len(shape) == 3 and shape[2] in (1, 3, 4) and shape[0] not in (1, 3, 4):
        return " (channels last? torch has them first: x.transpose(0, 3, 1, 2))"
    return " (images without an axis for channels? x[:, None])" if len(shape) == 2 else ""


def match_data(classifier: Classifier, data: Dataset) -> Dataset:
    """The data as the classifier's model knows it, matched by names and never by position.

    Columns are put into the order in which the model was fitted; labels are numbered as the model
    numbers its classes. A column or a label that is missing on the other side is an error.
    """
    if classifier.features is not None and data.features is not None:
        data = data.with_features(classifier.features)
    return data if classifier.classes is None else data.aligned(classifier.classes)


def check_fit(classifier: Classifier, data: Dataset) -> None:
    """Whether a dataset's inputs and labels can be those of a classifier, before a long run."""
    check_shape(classifier, data.sample())
    said, known = data.num_classes, classifier.num_classes
    words = [one for one in data.classes or () if isinstance(one, str)]
    if classifier.classes is None and words and known is not None and len(words) < known:
        raise ModelError(
            f"{data.name} has the labels {listed(words)}, and {classifier.name} has {known} "
            "outputs without names: give all names in the order of the outputs by classes= "
            "(--classes)"
        )
    if said is not None and known is not None and said > known:
        raise ModelError(
            f"{data.name} has {said} classes (labels 0 … {said - 1}) and {classifier.name} knows "
            f"{known}: these labels are another model's"
        )
