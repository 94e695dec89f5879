"""Several inputs at once: what counts as one input, and the certificates of many as one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from unicr.classifier import Classifier, check_shape
from unicr.data import Dataset
from unicr.errors import CertifyError, ModelError
from unicr.extras import torch
from unicr.smoothing._certificate import Certificate
from unicr.tables import Tabular


class Certificates(Tabular, Sequence[Certificate]):
    """The certificates of several inputs, in their order; `classes` names the labels.

    A sequence, and a table: `to_frame()`, `to_csv()`, `to_latex()`, or shown by a notebook.
    """

    def __init__(
        self, certificates: Iterable[Certificate], classes: Sequence[str | int] | None = None
    ) -> None:
        self._certificates = tuple(certificates)
        self.classes = None if classes is None else tuple(classes)

    @overload
    def __getitem__(self, index: int) -> Certificate: ...
    @overload
    def __getitem__(self, index: slice) -> Certificates: ...
    def __getitem__(self, index: int | slice) -> Certificate | Certificates:
        found = self._certificates[index]
        return found if isinstance(found, Certificate) else Certificates(found, self.classes)

    def __len__(self) -> int:
        return len(self._certificates)

    def __iter__(self) -> Iterator[Certificate]:
        return iter(self._certificates)

    @property
    def predict(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The certified classes, −1 where the smoothed classifier abstains."""
        return np.array([one.predict for one in self], dtype=np.int64)

    def radius(self, norm: str | float | None = None) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The certified radii in one norm (the only one, if there is just one)."""
        return np.array([one.radius(norm) for one in self], dtype=np.float64)

    def plain_rows(self) -> list[dict[str, Any]]:
        """One row for each input; the column `class` has its name where names are known."""
        return [{"input": i, **self._named(one)} for i, one in enumerate(self)]

    def _named(self, certificate: Certificate) -> dict[str, Any]:
        values = certificate.to_dict()
        if self.classes is None:
            return values
        place = certificate.predict
        name = self.classes[place] if 0 <= place < len(self.classes) else None
        return {"predict": values.pop("predict"), "class": name, **values}

    def __repr__(self) -> str:
        kept = sum(not one.abstained for one in self)
        return f"Certificates({len(self)} inputs, {kept} certified)"


def inputs_of(x: Any, classifier: Classifier, known: dict[tuple[int, ...], bool]) -> Any:
    """The inputs that `x` holds, None where it is one input by itself.

    A dataset is many. An array of one axis, or one that only works as one input, is one; one that
    only works as a stack is many. Where the model takes both nobody can know: an error. `known`
    remembers the answer for each shape.
    """
    if isinstance(x, Dataset):
        return (x[i][0] for i in range(len(x)))
    values = torch.as_tensor(x)
    if values.ndim < 2 or len(values) == 0:
        return None
    shape = tuple(values.shape)
    if shape not in known:
        known[shape] = _is_stack(values, classifier)
    return iter(values) if known[shape] else None


def _is_stack(values: torch.Tensor, classifier: Classifier) -> bool:
    probe = torch.where(torch.isfinite(values), values, torch.zeros_like(values))
    alone = _works(classifier, probe)
    if len(values) == 1 and alone is None:  # (1, H, W): one image of one channel
        return False
    stacked = _works(classifier, probe[0])
    if alone is None and stacked is None:
        raise CertifyError(
            f"an array of shape {tuple(values.shape)} may be one input or {len(values)}, and "
            f"{classifier.name} takes both: give a dataset (unicr.data.load_dataset) for many, or "
            "say input_shape= when you make the SmoothedClassifier"
        )
    if alone is not None and stacked is not None:
        raise alone
    return alone is not None


def _works(classifier: Classifier, sample: torch.Tensor) -> ModelError | None:
    """None where the model takes this as one input, else why not."""
    try:
        check_shape(classifier, sample)
    except ModelError as error:
        return error
    return None
