"""What a dataset is: numbered float32 inputs of one shape, each with a label or -1.

Also how raw values become such inputs. Bytes k become the float32 nearest to k/255, floats are
kept, and byte images with channels last become channels first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from unicr.errors import DataError, foreign, listed

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]

NO_LABEL = -1
CHANNELS = (1, 3, 4)
COUNTS = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}  # the white of images, by their type
MOST = 1 << 31
INPUT_KEYS = ("image", "img", "pixel_values", "input", "x")  # of items that are dicts
LABEL_KEYS = ("label", "labels", "fine_label", "target", "y")
LONGEST_LABEL = 1000  # characters; labels stand in every run and report


@dataclass(frozen=True, eq=False)
class Dataset:
    """Inputs 0 … size − 1, which are read when needed. `classes` are the labels as the source has
    them.

    `read(i)` gives input i as a float32 array and its label as a number (-1 if it has no label).
    `features` are the names of a table's columns, in the order of an input's values.
    """

    name: str
    source: str
    size: int
    shape: tuple[int, ...]
    read: Callable[[int], tuple[Floats, int]]
    num_classes: int | None = None
    classes: tuple[str | int, ...] | None = None
    features: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]: ...
    @overload
    def __getitem__(self, index: slice) -> Dataset: ...
    def __getitem__(self, index: int | slice) -> tuple[torch.Tensor, int] | Dataset:
        import torch

        if isinstance(index, slice):
            return self._part(range(self.size)[index])
        values, label = self._item(index)
        return torch.from_numpy(values), label

    def _item(self, index: int) -> tuple[Floats, int]:
        if not 0 <= index < self.size:
            raise IndexError(
                f"{self.name} has no input {index}: its inputs are 0 … {self.size - 1}"
            )
        with foreign(DataError, f"input {index} of {self.name} cannot be read"):
            values, label = self.read(index)
        if values.shape != self.shape:
            raise DataError(
                f"input {index} of {self.name} has shape {values.shape}, but the first one has "
                f"{self.shape}: all inputs must have the same shape"
            )
        return values, label

    def _part(self, places: range) -> Dataset:
        """The inputs at these places, as a dataset of their own, numbered from 0."""
        original = self.read
        return replace(self, size=len(places), read=lambda index: original(places[index]))

    def readable(self) -> Iterator[torch.Tensor]:
        """The inputs that can be read and are finite, in order."""
        for index in range(self.size):
            with suppress(DataError):
                if self.finite(index):
                    yield self[index][0]

    def sample(self) -> torch.Tensor:
        """The first input that can be read and is finite. Models are tried on it."""
        for x in self.readable():
            return x
        self._item(0)
        raise DataError(f"no input of {self.name} has only finite values")

    def digest_of(self, index: int) -> str:
        """`digest_input` of one input."""
        return digest_input(self._item(index)[0])

    def finite(self, index: int) -> bool:
        """Whether every value of one input is a finite number."""
        return bool(np.isfinite(self._item(index)[0]).all())

    def labelled(self, labels: Any) -> Dataset:
        """The same inputs with these labels instead of their own."""
        given = labels if isinstance(labels, list) else _numpy(labels)
        numbers, classes = number_labels(given, self.size, self.name)
        original = self.read
        return replace(
            self,
            read=lambda index: (original(index)[0], int(numbers[index])),
            num_classes=count_classes(numbers, classes),
            classes=classes,
        )

    def with_features(self, names: Sequence[str]) -> Dataset:
        """The same table with these columns, in this order; other columns are left out."""
        own = self.features or ()
        if missing := [name for name in names if name not in own]:
            raise DataError(
                f"{self.name} has no column {listed(missing)}, but the model was fitted on it; the "
                f"columns are {listed(own)}"
            )
        places = np.array([own.index(name) for name in names])
        original = self.read

        def read(index: int) -> tuple[Floats, int]:
            values, label = original(index)
            return values[places], label

        return replace(self, read=read, shape=(len(places),), features=tuple(names))

    def aligned(self, classes: Sequence[str | int]) -> Dataset:
        """The same data with labels numbered as in `classes`, the labels that a classifier knows.

        Labels that the classifier does not know are an error, unless the data has no labels. If the
        data has plain numbers and the classifier has names, label 3 means the fourth name.
        """
        if self.classes is None and not any(_is_number(one) for one in classes):
            if (self.num_classes or 0) > len(classes):
                raise DataError(
                    f"{self.name} has labels 0 … {(self.num_classes or 0) - 1}, but the classifier "
                    f"has {len(classes)} classes: {listed(classes)}"
                )
            return replace(self, num_classes=len(classes), classes=tuple(classes))
        own = self.classes if self.classes is not None else range(self.num_classes or 0)
        numbers = {str(label): i for i, label in enumerate(classes)}
        translation = {i: numbers.get(str(label)) for i, label in enumerate(own)}

        def translate(label: int) -> int:
            number = NO_LABEL if label == NO_LABEL else translation[label]
            if number is None:
                numbered = tuple(classes) == tuple(range(len(classes)))
                cure = ": name them in their order by classes= (--classes)" if numbered else ""
                raise DataError(
                    f"{self.name} has the label {own[label]!r}, but the classifier has the classes "
                    f"{listed(classes)}{cure}"
                )
            return number

        if self.classes is not None:  # words that the data has; a number below others may not occur
            for label in range(len(own)):
                translate(label)
        original = self.read

        def read(index: int) -> tuple[Floats, int]:
            values, label = original(index)
            return values, translate(label)

        return replace(self, read=read, num_classes=len(classes), classes=tuple(classes))


def _is_number(label: str | int) -> bool:
    return not isinstance(label, str) or _as_numbers([label]) is not None


def digest_input(values: Floats) -> str:
    """SHA-256 of the shape and the little-endian float32 bytes of an input."""
    head = "x".join(map(str, values.shape)).encode() + b":"
    return hashlib.sha256(head + values.astype("<f4").tobytes()).hexdigest()


def as_input(values: NDArray[Any]) -> Floats:
    """One input as float32: bytes k as k/255, 16-bit counts as k/65535, all else as it is.

    Images of bytes or counts become channels first, H×W becomes 1×H×W; other arrays keep their
    shape.
    """
    if values.dtype.kind not in "biuf":
        raise DataError(f"the inputs have type {values.dtype}, but numbers are needed")
    most = COUNTS.get(values.dtype)
    if most is not None:
        if values.ndim == 2:
            values = values[None]
        elif values.ndim == 3 and values.shape[-1] in CHANNELS and values.shape[0] not in CHANNELS:
            values = np.moveaxis(values, -1, 0)
    with np.errstate(over="ignore"):
        floats = np.array(values, dtype=np.float32, order="C")
    return floats if most is None else floats / np.float32(most)


def number_labels(labels: Any, size: int, name: str) -> tuple[Labels, tuple[str | int, ...] | None]:
    """Labels as whole numbers from 0 and, where they were words, the words in sorted order."""
    # not by numpy itself: an array of texts gives every text the width of the longest
    words = isinstance(labels, list) and any(isinstance(one, str) for one in labels)
    array = np.array(labels, dtype=object) if words else np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(
            f"the labels of {name} have shape {array.shape}, but one label for each input is "
            "needed; if they are one-hot rows, pass labels.argmax(1)"
        )
    if len(array) != size:
        raise DataError(f"{name} has {size} inputs but {len(array)} labels")
    if array.dtype.kind in "USOT":
        texts = ["" if word is None else str(word) for word in array]
        if (values := _as_numbers(texts)) is not None:
            return number_labels(values, size, name)
        known = sorted(set(texts) - {""})
        if len(longest := max(known, key=len, default="")) > LONGEST_LABEL:
            raise DataError(
                f"a label of {name} is too long ({len(longest)} characters): {longest[:40]}…"
            )
        places = {word: i for i, word in enumerate(known)}
        return np.array([places.get(word, NO_LABEL) for word in texts], np.int64), tuple(known)
    if array.dtype.kind == "f":
        missing = np.isnan(array)
        array = np.where(missing, NO_LABEL, array)
        if np.any(array != np.floor(array)) or not np.isfinite(array).all():
            raise DataError(f"the labels of {name} must be whole numbers")
    elif array.dtype.kind not in "biu":
        raise DataError(
            f"the labels of {name} have type {array.dtype}, but numbers or words are needed"
        )
    outside = array[(array.astype(np.float64) < NO_LABEL) | (array.astype(np.float64) >= MOST)]
    if len(outside):
        raise DataError(
            f"the labels of {name} contain {outside[0]}: labels must be 0, 1, 2, …, or -1 for an "
            "input without a label"
        )
    return array.astype(np.int64), None


def _as_numbers(words: Sequence[str]) -> NDArray[np.float64] | None:
    """Words that are all numbers, as numbers; an empty word is NaN."""
    try:
        return np.array([float(word) if word else np.nan for word in words])
    except ValueError:
        return None


def from_arrays(
    inputs: Any,
    labels: Any = None,
    *,
    name: str,
    source: str,
    features: Sequence[str] | None = None,
) -> Dataset:
    """A dataset of an array of inputs (first axis: one input each) and perhaps labels.

    `features` names the columns of a table.
    """
    values = _numpy(inputs)
    if values.ndim < 2 or not len(values):
        raise DataError(
            f"the inputs of {name} have shape {values.shape}, but (inputs, …) with at least one "
            "input is needed"
        )
    if labels is None:
        numbers, classes = np.full(len(values), NO_LABEL, np.int64), None
    else:
        given = labels if isinstance(labels, list) else _numpy(labels)
        numbers, classes = number_labels(given, len(values), name)

    def read(index: int) -> tuple[Floats, int]:
        return as_input(np.asarray(values[index])), int(numbers[index])

    return Dataset(
        name=name,
        source=source,
        size=len(values),
        shape=read(0)[0].shape,
        read=read,
        num_classes=count_classes(numbers, classes),
        classes=classes,
        features=None if features is None else tuple(features),
    )


def from_items(items: Any, name: str) -> Dataset:
    """A dataset of a torch or Hugging Face Dataset, or a list.

    Items are inputs, (input, label) pairs, or dicts with an image and a label. Each is read when
    asked for, its transforms run then.
    """
    size = len(items)
    if not size:
        raise DataError(f"{name} is empty")

    def read(index: int) -> tuple[Floats, int]:
        item = items[index]
        value, label = _value_and_label(item, name)
        array = _numpy(value)
        if array.ndim == 0:
            raise DataError(f"item {index} of {name} is {type(value).__name__}, not an array")
        return as_input(array), NO_LABEL if label is None else int(label)

    words = getattr(items, "classes", None) or _feature_names(items)
    classes = tuple(words) if isinstance(words, list | tuple) else None
    return Dataset(
        name=name,
        source=f"{type(items).__module__}.{type(items).__qualname__}",
        size=size,
        shape=read(0)[0].shape,
        read=read,
        num_classes=len(classes) if classes else None,
        classes=classes,
    )


def from_batches(batches: Any, name: str) -> Dataset:
    """A dataset of a torch DataLoader, read once into memory: batches, or (batch, labels) pairs."""
    inputs: list[NDArray[Any]] = []
    labels: list[NDArray[Any]] = []
    for batch in batches:
        value, label = _value_and_label(batch, name)
        inputs.append(_numpy(value))
        if label is not None:
            labels.append(_numpy(label))
    if not inputs:
        raise DataError(f"{name} is empty")
    known = np.concatenate(labels) if labels else None
    return from_arrays(np.concatenate(inputs), known, name=name, source=f"a {name} in memory")


def _value_and_label(item: Any, name: str) -> tuple[Any, Any]:
    """The input and the label, or None, of an item or a batch."""
    if isinstance(item, Mapping):
        value = next((item[key] for key in INPUT_KEYS if key in item), None)
        if value is None:
            raise DataError(
                f"the items of {name} have the fields {listed(item)}, but one of "
                f"{listed(INPUT_KEYS)} is needed"
            )
        return value, next((item[key] for key in LABEL_KEYS if key in item), None)
    if isinstance(item, tuple | list) and len(item) == 2:
        return item[0], item[1]
    return item, None


def _feature_names(items: Any) -> list[str] | None:
    """The class names of a Hugging Face dataset."""
    features = getattr(items, "features", None) or {}
    columns = [features[key] for key in LABEL_KEYS if key in features]
    return getattr(columns[0], "names", None) if columns else None


def count_classes(numbers: Labels, classes: Sequence[object] | None) -> int | None:
    """How many classes labels speak of; None if there are no labels."""
    if classes is not None:
        return len(classes)
    return int(numbers.max()) + 1 if numbers.size and numbers.max() >= 0 else None


def _numpy(values: Any) -> NDArray[Any]:
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return values if isinstance(values, np.ndarray) else np.asarray(values)
