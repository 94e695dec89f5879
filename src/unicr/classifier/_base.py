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
NOT_FINITE = -(1 << 30)  # in place of a label: the scores hold NaN or infinity
MOST_HELD = 1 << 16  # labels that wait to be counted: half a megabyte
SHORT_INTEGERS = ("mps",)  # devices that add up 32-bit integers only


class Classifier(ABC):
    """A base classifier: it gives labels 0 … num_classes − 1 to batches of float32 inputs.

    `name` is the text from which it was loaded. `digest` is a SHA-256 of everything that decides
    its labels. `classes` are the names of the classes, if the model has names. `features` are the
    names of the columns on which it was fitted.
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

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # who overrides `predict` alone means all labels, those that are counted too
        if "predict" in vars(cls) and "predict_unchecked" not in vars(cls):
            cls.predict_unchecked = Classifier.predict_unchecked  # type: ignore[method-assign]

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

        Raises ModelError if the model fails or its output gives no labels.
        """

    def predict_unchecked(self, batch: torch.Tensor) -> torch.Tensor:
        """`predict` without a wait for the device: what is no label is found when votes are read.

        NOT_FINITE stands where scores are not finite; other numbers may be no labels either.
        """
        return self.predict(batch)

    @property
    def has_convolutions(self) -> bool:
        """Whether another layout of images in memory (channels last) may be faster."""
        return False

    def at_precision(self, precision: str) -> Classifier:
        """This classifier computed with fewer bits (bf16, fp16). It is a different classifier."""
        raise ModelError(f"{self.name}: precision= works for torch models only")

    def at_own_precision(self) -> Classifier:
        """The same with the model's own bits, to compare how long they take: it has no digest."""
        return self

    def compiled(self) -> Classifier:
        """This classifier compiled by torch.compile. It rounds differently, so it is a different
        classifier."""
        raise ModelError(f"{self.name}: torch.compile works for torch models only")

    def replica(self) -> Classifier | None:
        """A copy that another thread may use at the same time, or None if that is not safe."""
        return None

    def _labels(self, output: object, n: int) -> torch.Tensor:
        """Labels from the model's output for n inputs; the first output tells `num_classes`."""
        return check_labels(self._labels_unchecked(output, n), self.name)

    def _labels_unchecked(self, output: object, n: int) -> torch.Tensor:
        labels = labels_unchecked(output, n, self.name)
        if self.num_classes is None and isinstance(output, torch.Tensor):
            self.num_classes = width_of(output)
        return labels

    def votes(self, batch: torch.Tensor, num_classes: int | None = None) -> torch.Tensor:
        """How often each label occurs in the batch: int64 counts on the CPU. `num_classes` is the
        number of counts. If it is left out, it is the model's number of classes, or as many as
        needed.
        """
        tally = Tally(self.name)
        labels = self.predict_unchecked(batch)
        tally.add(labels, self.num_classes if num_classes is None else num_classes)
        return tally.read()


class Tally:
    """Votes by label, counted on the device where the labels are; `read` is their only transfer.

    Labels are kept and counted together: a pass of a small network takes hardly longer than what it
    takes to count its labels. Where nobody knows how many labels there are, they are counted on the
    CPU as they come.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._size = 0
        self._waiting: list[torch.Tensor] = []
        self._held = 0  # how many labels wait
        self._counts: torch.Tensor | None = None  # below 0, label 0, …, last label, too large
        self._ends: torch.Tensor | None = None  # the smallest and the largest label
        self._on_host = torch.zeros(0, dtype=torch.int64)

    def add(self, labels: torch.Tensor, size: int | None) -> None:
        """Count labels of which 0 … size − 1 are right."""
        if not len(labels):
            return
        if size is None:
            check_labels(labels, self._name, MOST_CLASSES)
            found = torch.bincount(labels.cpu(), minlength=len(self._on_host))
            found[: len(self._on_host)] += self._on_host
            self._on_host = found
            return
        kind = torch.int32 if labels.device.type in SHORT_INTEGERS else torch.int64
        self._size = size
        # copied: a model may write its next labels where these are
        self._waiting.append(labels.to(kind, copy=True))
        self._held += len(labels)
        if self._held >= MOST_HELD:
            self._count()

    def _count(self) -> None:
        labels = torch.cat(self._waiting)
        self._waiting, self._held = [], 0
        low, high = labels.min(), labels.max()
        if self._counts is None or self._ends is None:
            self._counts, self._ends = labels.new_zeros(self._size + 2), torch.stack([low, high])
        self._ends = torch.stack(
            [torch.minimum(self._ends[0], low), torch.maximum(self._ends[1], high)]
        )
        slots = (labels.clamp(-1, self._size) + 1).to(torch.int64)
        self._counts.scatter_add_(0, slots, torch.ones_like(labels))

    def read(self) -> torch.Tensor:
        """The counts as int64 on the CPU; ModelError where something was no label."""
        if self._waiting:
            self._count()
        if self._counts is None or self._ends is None:
            return self._on_host
        both = torch.cat([self._ends, self._counts]).cpu().to(torch.int64)
        counts = both[3:-1]
        check_labels(both[:2], self._name, len(counts))
        seen_before = self._on_host  # before the model said how many classes it has
        if len(seen_before) > len(counts):
            check_labels(torch.tensor([len(seen_before) - 1]), self._name, len(counts))
        counts[: len(seen_before)] += seen_before
        return counts


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
    return check_labels(labels_unchecked(output, n, name), name)


def labels_unchecked(output: object, n: int, name: str) -> torch.Tensor:
    """`labels_of` with NOT_FINITE where a score is not finite: the device need not be waited for.

    Shapes and types, which are known without waiting, are checked.
    """
    if not isinstance(output, torch.Tensor):
        raise ModelError(
            f"{name} returned {type(output).__name__}: a model must return a tensor of scores of "
            "shape (inputs, classes) or of labels of shape (inputs,)"
        )
    if not output.dtype.is_floating_point:
        return _whole_labels(output, n, name)
    scores = output.detach()
    if scores.ndim == 1 and n == len(scores):
        scores = scores[:, None]
    if scores.ndim > 2 and scores.shape[2:].numel() == 1:
        scores = scores.flatten(1)
    if scores.ndim != 2 or len(scores) != n or scores.shape[1] == 0:
        raise ModelError(
            f"{name} returned scores of shape {tuple(output.shape)} for {n} inputs: the shape must "
            f"be ({n}, classes)"
        )
    labels = (scores[:, 0] > 0).long() if scores.shape[1] == 1 else scores.argmax(1)
    # a sum is finite only where all scores are; on a GPU it would have to be waited for
    if scores.device.type == "cpu" and math.isfinite(scores.sum()):
        return labels
    # 0 · score is 0, and not a number for NaN and infinity: much quicker to ask than isfinite
    return labels.masked_fill_(scores.mul(0).sum(1) != 0, NOT_FINITE)


def _whole_labels(labels: torch.Tensor, n: int, name: str) -> torch.Tensor:
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n,) or labels.dtype.is_complex:
        raise ModelError(
            f"{name} returned labels of shape {tuple(labels.shape)} for {n} inputs: the shape must "
            f"be ({n},)"
        )
    return labels.long()


def check_labels(labels: torch.Tensor, name: str, size: int | None = None) -> torch.Tensor:
    """The labels, where all are labels (below `size`); else ModelError says which is not."""
    if not len(labels):
        return labels
    low, high = int(labels.min()), int(labels.max())
    if low == NOT_FINITE:
        raise ModelError(f"{name} returned scores that are not finite numbers (NaN or infinity)")
    if low < 0:
        raise ModelError(f"{name} returned the label {low}: labels must be 0, 1, 2, …")
    if size == MOST_CLASSES and high >= size:
        raise ModelError(
            f"{name} returned the label {high}: labels must be 0, 1, 2, … below {size}"
        )
    if size is not None and high >= size:
        raise ModelError(
            f"{name} returned the label {high}, but there are only {size} classes (0 … {size - 1})"
        )
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
        labels = classifier.predict(batch)
        check_labels(labels, classifier.name, classifier.num_classes or MOST_CLASSES)
    except ModelError as error:
        raise ModelError(
            f"{classifier.name} does not work on inputs of shape {tuple(sample.shape)}"
            f"{hint_channels(tuple(sample.shape))}: {error}"
        ) from None


def hint_channels(shape: tuple[int, ...]) -> str:
    """A word to whoever keeps images in another way than torch does."""
    if len(shape) in (3, 4) and shape[-1] in (1, 3, 4) and shape[-3] not in (1, 3, 4):
        return " (channels last? torch has them first: np.moveaxis(x, -1, -3))"
    return " (images without an axis for channels? x[:, None])" if len(shape) == 2 else ""


def match_data(classifier: Classifier, data: Dataset) -> Dataset:
    """The data as the classifier's model knows it, matched by names and never by position.

    Columns are put into the order in which the model was fitted; labels are numbered as the model
    numbers its classes. A column or a label that is missing on the other side is an error.
    """
    if classifier.features is not None and data.features is not None:
        data = data.with_features(classifier.features)
    return data if classifier.classes is None else data.aligned(classifier.classes)


def check_fit(classifier: Classifier, data: Dataset, sample: torch.Tensor | None = None) -> None:
    """Whether a dataset's inputs and labels can be those of a classifier, before a long run.

    `sample` is the input to try; the first that can be read, if left out.
    """
    check_shape(classifier, data.sample() if sample is None else sample)
    said, known = data.num_classes, classifier.num_classes
    words = [one for one in data.classes or () if isinstance(one, str)]
    if classifier.classes is None and words and known is not None and len(words) < known:
        raise ModelError(
            f"{data.name} has the labels {listed(words)}, but the {known} outputs of "
            f"{classifier.name} have no names: give the names in the order of the outputs by "
            "classes= (--classes)"
        )
    if said is not None and known is not None and said > known:
        raise ModelError(
            f"{data.name} has {said} classes (labels 0 … {said - 1}), but {classifier.name} has "
            f"{known}: these labels belong to another model"
        )
