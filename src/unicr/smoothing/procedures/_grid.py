"""The noises that a search for one input may choose from: a family, and a grid of its parameters.

The grid is fixed before any sample is drawn. That makes a union bound over it honest, and lets
one p_A–R curve per shape serve every input: σ is an axis too, but R is homogeneous in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from unicr.errors import NoiseError, SpecError
from unicr.noise import FAMILIES, Noise
from unicr.noise.internal import check_parses, plainest

SIGMA = "sigma"
Node = tuple[int, ...]  # steps from the start, along each axis


@dataclass(frozen=True)
class Axis:
    """One parameter: from `low` to `high`, in steps of `step` (a factor, for σ)."""

    name: str
    low: float
    high: float
    step: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise NoiseError(
                f"range {self.name}={self.low:g}:{self.high:g}: the first number must be below the "
                "second"
            )
        if self.name == SIGMA and not (self.low > 0 and self.step > 1):
            raise NoiseError(
                f"range sigma={self.low:g}:{self.high:g}:{self.step:g}: sigma must be above 0, and "
                "its step is a factor above 1"
            )
        if not self.step > 0:
            raise NoiseError(f"range {self.name}: the step {self.step:g} must be above 0")

    def steps(self, start: float) -> range:
        """How many steps down and up from `start` stay in the range."""
        if not self.low * (1 - 1e-12) <= start <= self.high * (1 + 1e-12):
            raise NoiseError(
                f"the initial {self.name}={start:g} is outside the range {self.low:g}:{self.high:g}"
            )
        return range(-self._count(start, self.low), self._count(start, self.high) + 1)

    def _count(self, start: float, end: float) -> int:
        if self.name == SIGMA:
            return math.floor(abs(math.log(end / start)) / math.log(self.step) + 1e-9)
        return math.floor(abs(end - start) / self.step + 1e-9)

    def at(self, start: float, steps: int) -> float:
        """The value that many steps from `start`, in nine digits so that its text is short."""
        value = start * self.step**steps if self.name == SIGMA else start + steps * self.step
        return float(f"{value:.9g}")


@dataclass(frozen=True)
class Grid:
    """Every noise of `family` on the axes, around the initial noise."""

    family: str
    start: Mapping[str, float]
    axes: tuple[Axis, ...]

    @classmethod
    def around(cls, init: Noise, family: str, axes: tuple[Axis, ...]) -> Grid:
        """A grid around `init`, which must be a noise of the family, under this or another name."""
        known = [axis.name for axis in axes]
        if len(set(known)) < len(known):
            raise NoiseError(f"a range is given twice: {', '.join(known)}")
        start = _parameters(init, family)
        unknown = sorted(set(known) - set(start))
        if unknown:
            raise NoiseError(f"{family} has no parameter {unknown[0]}; it has {', '.join(start)}")
        return cls(family, start, axes)

    @cached_property
    def ranges(self) -> tuple[range, ...]:
        """How many steps each axis allows, down and up from the start."""
        return tuple(axis.steps(self.start[axis.name]) for axis in self.axes)

    def __contains__(self, node: Node) -> bool:
        return all(step in one for step, one in zip(node, self.ranges, strict=True))

    @property
    def size(self) -> int:
        """How many noises there are: what a union bound divides α by."""
        return math.prod(len(steps) for steps in self.ranges)

    @property
    def centre(self) -> Node:
        """Where a search begins: the initial noise."""
        return (0,) * len(self.axes)

    @cached_property
    def _noises(self) -> dict[Node, Noise]:
        return {}

    def noise(self, node: Node) -> Noise:
        """The noise at a node, made once for all inputs."""
        if node not in self._noises:
            values = dict(self.start)
            for axis, steps in zip(self.axes, node, strict=True):
                values[axis.name] = axis.at(self.start[axis.name], steps)
            self._noises[node] = FAMILIES[self.family](**values)
        return self._noises[node]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the spec of a run."""
        axes = [[axis.name, axis.low, axis.high, axis.step] for axis in self.axes]
        return {"family": self.family, "start": dict(self.start), "axes": axes, "size": self.size}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Grid:
        """The inverse of `to_dict`."""
        return cls(values["family"], values["start"], tuple(Axis(*axis) for axis in values["axes"]))


def _parameters(init: Noise, family: str) -> dict[str, float]:
    """The parameters with which `family` is the same law as `init`; σ is always one of them."""
    known = FAMILIES.get(family)
    if known is None:
        raise SpecError(f"unknown family {family!r}; known families: {', '.join(FAMILIES)}")
    if not math.isfinite(init.sigma):
        raise NoiseError(
            f"{init.text} has no standard deviation, so a search over sigma cannot start from it"
        )
    check_parses(init)
    if init.family == family:
        return {**init.numbers, SIGMA: init.sigma}
    plain = plainest(init)
    if plain.family == family:
        return {SIGMA: plain.sigma}
    for numbers, same in known.equal:
        if plain.family == same.name and not known.joint:
            return {**numbers, SIGMA: init.sigma}
    raise NoiseError(
        f"{init.text} is not a {family} noise: start with one, for example --init '{family}(…)'"
    )
