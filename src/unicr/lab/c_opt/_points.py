"""What C-OPT searches: noises as points of a grid, and the settings that all of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import unicr
from unicr.data import Dataset
from unicr.errors import DataError, UnicrError
from unicr.folder import plain
from unicr.lab.train import Examples, Training, examples_of
from unicr.noise import Noise, parse
from unicr.runs import Terms
from unicr.smoothing import Plan
from unicr.text import number, write_call

Shape = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Point:
    """One noise of the search: the parameters of its shape, and its σ (or scale)."""

    family: str
    shape: Shape
    size: float
    given: Literal["sigma", "scale"] = "sigma"

    @property
    def noise(self) -> Noise:
        """The noise itself; NoiseError if the family refuses the parameters."""
        return parse(write_call(self.family, dict([*self.shape, (self.given, self.size)])))

    @property
    def name(self) -> str:
        """The name of its folder."""
        values = (f"{k}-{number(v)}" for k, v in (*self.shape, (self.given, self.size)))
        return "-".join([self.family, *values])


@dataclass(frozen=True)
class Scales:
    """A family of noises by its name, and the scales that one robustness score goes over."""

    name: str
    sizes: tuple[float, ...]
    given: Literal["sigma", "scale"] = "sigma"

    def points(self, shape: Shape) -> list[Point]:
        """The points of one shape, one for each scale."""
        return [Point(self.name, shape, size, self.given) for size in self.sizes]


def grid(parameters: Mapping[str, Sequence[float]]) -> list[Shape]:
    """Every combination of the parameters' values."""
    for name, values in parameters.items():
        if not values:
            raise UnicrError(f"the parameter {name} has no values")
        if len(set(values)) < len(values):
            raise UnicrError(f"{name} has the same value twice: {', '.join(map(number, values))}")
    names = list(parameters)
    return [
        tuple(zip(names, map(float, values), strict=True))
        for values in product(*parameters.values())
    ]


@dataclass(frozen=True, kw_only=True)
class Search(Terms):
    """Everything that decides the results of a C-OPT beside its points.

    `training.noise` is replaced by each point's noise. `train_spec` and `test_spec` are how the
    data was named. Certificates come from a `nonce`, drawn when the search begins unless given, or
    for experiments from the `seed`.
    """

    plan: Plan
    train: Examples
    test: Dataset
    training: Training
    train_spec: str | None = None
    test_spec: str | None = None

    def manifest(self) -> dict[str, Any]:
        """What is written down of the search; resuming must agree with it."""
        values: dict[str, Any] = {
            "unicr": unicr.__version__,
            "train": self.train_spec,
            "train_digest": self.train.digest,
            "test": self.test_spec or self.test.source,
            "training": {**self.training.to_dict(), "noise": None},
            "plan": self.plan.to_dict(),
            **self.terms,
            **({} if self.nonce is None else {"nonce": self.nonce}),
        }
        return plain(values)


def make_search(
    train: Dataset, test: Dataset, *, most: int | None = None, **settings: Any
) -> Search:
    """A search on two datasets, `most` of the training inputs; their shapes and labels must fit."""
    if train.shape != test.shape:
        raise DataError(
            f"training inputs have shape {train.shape}, but test inputs have {test.shape}: both "
            "must be the same"
        )
    examples = examples_of(train, most)
    if examples.classes is not None:
        test = test.aligned(examples.classes)
    return Search(train=examples, test=test, **settings)
