"""Options that several commands share: how a model and a dataset are loaded, where work is done."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

if TYPE_CHECKING:
    from unicr.classifier import Classifier
    from unicr.data import Dataset
    from unicr.runs import Own

MOST = 1 << 53


def whole(_: Any, tokens: Sequence[Token]) -> int:
    """A whole number as users write it: 3072, 1e5, but not 1.5 and not 1e30."""
    text = tokens[0].value
    shown = text if len(text) <= 30 else text[:29] + "…"
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if abs(number) > MOST:
        raise ValueError(f"{shown} is beyond 2^53")
    if not number.is_integer():
        raise ValueError(f"{shown} is not a whole number")
    return int(number)


MaybeWhole = Annotated[int | None, Parameter(converter=whole)]
Whole = Annotated[int, Parameter(converter=whole)]
Numbers = Annotated[list[float] | None, Parameter(consume_multiple=True, negative="")]
Flag = Annotated[bool, Parameter(negative="")]
RayAddress = Annotated[bool | str | None, Parameter(negative="")]


@Parameter(name="*")
@dataclass(frozen=True)
class ModelOptions:
    """How the model is loaded.

    Parameters
    ----------
    weights
        Weights for a model given as file.py:factory or as a built-in architecture.
    device
        Where the model runs: cpu, cuda, …
    mean
        The model expects (x - mean)/std, per channel; noise and radius stay in input space.
    std
        See mean.
    trust
        Allow a model file that runs code when loaded (pickle, joblib).
    """

    weights: Path | None = None
    device: str = "cpu"
    mean: Numbers = None
    std: Numbers = None
    trust: Flag = False

    def arguments(self, spec: str) -> dict[str, Any]:
        """What `load_classifier` takes, in a form that can be sent to workers."""
        return {
            "spec": spec,
            "weights": self.weights,
            "device": self.device,
            "mean": self.mean,
            "std": self.std,
            "trust": self.trust,
        }

    def load(self, spec: str) -> Classifier:
        """The classifier."""
        from unicr.classifier import Normalised, load_classifier

        found = load_classifier(**self.arguments(spec))
        if self.mean is None and isinstance(found, Normalised):
            print(f"{spec} normalises its inputs itself: {found.text}", file=sys.stderr)
        return found


@Parameter(name="*")
@dataclass(frozen=True)
class DataOptions:
    """How the dataset is read.

    Parameters
    ----------
    labels
        Labels, where they are not with the inputs: .npy, idx, or text with one per line.
    split
        Which part of the data, where it has both.
    label_column
        The label column of a table.
    """

    labels: Path | None = None
    split: Literal["test", "train"] = "test"
    label_column: str | None = None

    def arguments(self) -> dict[str, Any]:
        """What `load_dataset` takes beside the text."""
        return {"labels": self.labels, "split": self.split, "label_column": self.label_column}

    def load(self, spec: str, classifier: Classifier) -> Dataset:
        """The dataset; its labels follow the classifier's names for them."""
        from unicr.data import load_dataset

        dataset = load_dataset(spec, **self.arguments())
        if classifier.classes is not None:
            dataset = dataset.aligned(classifier.classes)
        return dataset


@Parameter(name="*")
@dataclass(frozen=True)
class PlaceOptions:
    """Where the work is done.

    Parameters
    ----------
    workers
        Processes; 0 runs everything in this one. With --ray: how many actors (default: as many as
        the cluster has CPUs, or GPUs where --gpus is given).
    ray
        Address of a Ray cluster: auto (without a value), HOST:PORT, ray://HOST:PORT, or local to
        start one here.
    gpus
        GPUs that each Ray worker reserves; may be a fraction.
    """

    workers: Whole = 0
    ray: RayAddress = None
    gpus: float = 0

    @property
    def address(self) -> str | None:
        """The cluster's address, None for this machine."""
        return "auto" if self.ray is True else self.ray or None


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """How the model and the data of a run are opened again. What is left out is as in the run.

    Parameters
    ----------
    model
        Your own copy of the model, compared with the run by its hash.
    weights
        Weights of the model.
    device
        Where the model runs: cpu, cuda, …
    mean
        See std.
    std
        The model expects (x - mean)/std, per channel.
    labels
        Labels, where they are not with the inputs.
    split
        Which part of the data, where it has both.
    label_column
        The label column of a table.
    trust
        A file that may run code: the file.py of a noise or a model that the run names, a pickle.
        Nothing that comes with a run is executed otherwise. May be given several times.
    """

    model: str | None = None
    weights: Path | None = None
    device: str | None = None
    mean: Numbers = None
    std: Numbers = None
    labels: Path | None = None
    split: Literal["test", "train"] | None = None
    label_column: str | None = None
    trust: Annotated[list[Path] | None, Parameter(negative="")] = None

    def own(self, data: str | None = None) -> Own:
        """The options as `unicr.runs` takes them."""
        from unicr.runs import Own

        loading = ("weights", "device", "mean", "std")
        reading = ("labels", "split", "label_column")
        return Own(
            model=self.model,
            data=data,
            loading={name: getattr(self, name) for name in loading},
            reading={name: getattr(self, name) for name in reading},
            trust=tuple(self.trust or ()),
        )


MODEL, DATA, PLACE, RUN = ModelOptions(), DataOptions(), PlaceOptions(), RunOptions()
