"""The certificates of several inputs as one table, with the scores of a labelled dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from unicr.errors import CertifyError
from unicr.extras import require
from unicr.metrics import Scores, accuracy_curve
from unicr.norms import parse_norm
from unicr.smoothing._certificate import Certificate
from unicr.tables import Tabular


class Certificates(Tabular, Sequence[Certificate]):
    """The certificates of several inputs, in their order.

    A sequence, and a table: `to_frame()`, `to_csv()`, `to_latex()`, or shown by a notebook.
    `classes` are the names of the classes. `labels` are the true labels, -1 for an input without a
    label. Scores need labels. `save` writes the run that the certificates come from.
    """

    def __init__(
        self,
        certificates: Iterable[Certificate],
        classes: Sequence[str | int] | None = None,
        *,
        labels: Sequence[int] | None = None,
        save: Callable[[Path], None] | None = None,
    ) -> None:
        self._certificates = tuple(certificates)
        self.classes = None if classes is None else tuple(classes)
        self.labels = None if labels is None else tuple(labels)
        self._save = save

    @overload
    def __getitem__(self, index: int) -> Certificate: ...
    @overload
    def __getitem__(self, index: slice) -> Certificates: ...
    def __getitem__(self, index: int | slice) -> Certificate | Certificates:
        if not isinstance(index, slice):
            return self._certificates[index]
        labels = None if self.labels is None else self.labels[index]
        return Certificates(self._certificates[index], self.classes, labels=labels)

    def __len__(self) -> int:
        return len(self._certificates)

    def __iter__(self) -> Iterator[Certificate]:
        return iter(self._certificates)

    @property
    def predict(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The certified classes, −1 if the smoothed classifier abstains."""
        return np.array([one.predict for one in self], dtype=np.int64)

    def radius(self, norm: str | float | None = None) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The certified radii in one norm (the only one, if there is just one)."""
        return np.array([one.radius(norm) for one in self], dtype=np.float64)

    def scores(self, norm: str | float | None = None) -> Scores:
        """Radii, correct inputs and abstentions in one norm (by default the first)."""
        if self.labels is None:
            raise CertifyError(
                "the inputs have no labels, so they have no accuracy: pass labels= to certify"
            )
        if not len(self):
            raise CertifyError("there are no certificates")
        text = self[0].radii[0].norm if norm is None else norm
        labels = np.array(self.labels)
        between = [one.lattice for one in self if one.between_points]
        return Scores(
            name="certificates",
            norm=str(text),
            radius=np.array([one.radius(text) for one in self], dtype=np.float64),
            # an abstention is −1, as is a missing label: an input without a label is never right
            counted=np.array((self.predict == labels) & (labels >= 0), dtype=np.float64),
            abstained=np.array([one.abstained for one in self], dtype=np.float64),
            alpha=self[0].alpha,
            grid=between[0] if between else None,
        )

    def accuracy(self, radius: float = 0, norm: str | float | None = None) -> float:
        """The share of inputs that are classified correctly with at least this radius."""
        return self.scores(norm).certified_accuracy(radius)

    @property
    def average_radius(self) -> float:
        """The mean radius in the first norm. Wrong and abstained inputs have radius 0. A few easy
        inputs can raise it, so look at `accuracy(radius)` too.
        """
        return self.scores().average_radius

    def plot(self, norm: str | float | None = None, *, axes: Any = None) -> Any:
        """Draw certified accuracy against the radius; returns the matplotlib axes."""
        scores = self.scores(norm)
        if axes is None:
            axes = require("matplotlib.pyplot", "plots").subplots()[1]
        # accuracy falls just after each radius, so a step ends at it
        radii = np.concatenate([[0.0], scores.steps()])
        axes.step([*radii, radii[-1]], [*accuracy_curve(scores, radii), 0.0], where="pre")
        axes.set(
            xlabel=f"{parse_norm(scores.norm)} radius", ylabel="certified accuracy", ylim=(0, 1.02)
        )
        return axes

    def save(self, folder: str | Path) -> None:
        """Write the run of these certificates, which `unicr verify` and `report` take."""
        if self._save is None:
            raise CertifyError(
                "these certificates are only a part of a run: save the result of certify itself"
            )
        self._save(Path(folder).expanduser())

    def plain_rows(self) -> list[dict[str, Any]]:
        """One row for each input; the column `class` has its name where names are known."""
        labels = [{}] * len(self) if self.labels is None else [{"label": v} for v in self.labels]
        return [{"input": i, **labels[i], **self._name_class(one)} for i, one in enumerate(self)]

    def _name_class(self, certificate: Certificate) -> dict[str, Any]:
        values = certificate.to_dict()
        if self.classes is None:
            return values
        place = certificate.predict
        name = self.classes[place] if 0 <= place < len(self.classes) else None
        return {"predict": values.pop("predict"), "class": name, **values}

    def __repr__(self) -> str:
        kept = sum(not one.abstained for one in self)
        return f"Certificates({len(self)} inputs, {kept} certified)"
