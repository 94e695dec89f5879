"""A family of noises: what it is called, which numbers it takes, and how it makes a noise of them.

The registry, the command line, the explorer, I-OPT and the optimality gallery read it from here;
`unicr.noise.families` holds one file for each family, and nothing else has to know of it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Generic, NamedTuple

import numpy as np

from unicr.errors import NoiseError
from unicr.law import Law, LengthLaw, RadialDensity
from unicr.noise._base import IID, Data, N, Noise, Recipe, View, positive
from unicr.noise._radial import RadialNoise, UnitBall
from unicr.text import number, write_call

MOST_COORDINATES = 1 << 53  # whole numbers up to here are exact as doubles


@dataclass(frozen=True)
class Parameter:
    """A parameter of a family (beside its size), from `low` to `high`, ends included.

    In this range, and at its ends, sampler, density, probabilities, quantiles and radii are tested
    against an independent computation. Other values are refused.
    """

    name: str
    low: float
    high: float
    slider: tuple[float, float, float]
    """Least, most and first value on the explorer's page."""
    axis: tuple[float, float, float] | None = None
    """From, to and step of a search for the best noise."""
    gallery: tuple[float, ...] = ()
    """The values that an optimality validation compares."""

    def check(self, family: str, value: float) -> float:
        """The value as a float within the range, or an error that names the range."""
        name = self.name
        try:
            result = float(value)
        except OverflowError:
            result = math.inf
        except (TypeError, ValueError):
            raise NoiseError(f"{name}={value!r} is not a number") from None
        if not self.low <= result <= self.high:
            raise NoiseError(
                f"{name}={number(result)} is outside the range of {family}, which takes {name} "
                f"from {number(self.low)} to {number(self.high)}"
            )
        return result


def dimension(value: float, least: int) -> int:
    """The value as an int from `least` to 2^53, or an error that names it."""
    whole = isinstance(value, int | np.integer) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole or not least <= value <= MOST_COORDINATES:
        raise NoiseError(f"dim={str(value)[:30]} must be a whole number from {least} to 2^53")
    return int(value)


@dataclass(frozen=True, eq=False)
class Family(ABC, Generic[N]):
    """A named family of noises, with what lists and pages print about it.

    Where `usual` is set, searches and the explorer begin with this family if none is named.
    """

    name: str
    _: KW_ONLY
    formula: str
    example: str
    parameters: tuple[Parameter, ...] = ()
    equal: tuple[tuple[Mapping[str, float], Family[Any]], ...] = ()
    """Numbers at which the noise is one of a plainer family, of the same sigma."""
    sizes: tuple[str, ...] = ("sigma", "scale")
    usual: bool = False
    elsewhere: tuple[str, ...] = ()
    """What other packages call it: a text with such a name is refused with the right one."""
    colour: int | None = None
    """Its place in the palette of pictures, where it has one of its own."""
    joint: ClassVar[bool] = False
    """Whether the law is one of a whole input, so that the family takes `dim` as well."""

    @abstractmethod
    def __call__(
        self, *, sigma: float | None = None, scale: float | None = None, **numbers: float
    ) -> N:
        """The noise of these numbers, of size `sigma` or `scale` (exactly one of them)."""

    @property
    @abstractmethod
    def module(self) -> str:
        """The module that holds its density."""


@dataclass(frozen=True, eq=False)
class IIDFamily(Family[IID]):
    """A family of independent coordinates; `law` makes the law at unit scale of the numbers."""

    law: Callable[..., Law]
    _: KW_ONLY
    view: View | None = None

    def __call__(
        self, *, sigma: float | None = None, scale: float | None = None, **numbers: float
    ) -> IID:
        checked = check_numbers(self, numbers)
        law = self.law(**checked)
        size = read_size(self, checked, law.std, sigma, scale)
        member = Member(self, {**checked, **size.given})
        return IID(
            law,
            member,
            scale=size.scale,
            sigma=size.sigma,
            view=self.view,
            made_by=self,
            numbers=checked,
        )

    @property
    def module(self) -> str:
        return self.law.__module__


@dataclass(frozen=True, eq=False)
class RadialFamily(Family[RadialNoise]):
    """A family of lengths: `density` makes φ(‖z‖) at unit scale of the numbers, in the norm of
    `ball`. It takes the dimension as `dim`.
    """

    density: Callable[..., RadialDensity]
    ball: UnitBall
    _: KW_ONLY
    joint: ClassVar[bool] = True

    def __call__(
        self, *, sigma: float | None = None, scale: float | None = None, **numbers: float
    ) -> RadialNoise:
        if "dim" not in numbers:
            raise TypeError(
                f"{self.name}() needs dim=, the number of values of an input: try {self.example}"
            )
        dim = dimension(numbers.pop("dim"), 2)
        checked = check_numbers(self, numbers)
        length = LengthLaw(self.density(**checked), dim)
        size = read_size(self, {**checked, "dim": dim}, self.ball.std(length), sigma, scale)
        return RadialNoise(
            self.ball,
            length,
            Member(self, {**checked, **size.given, "dim": dim}),
            scale=size.scale,
            sigma=size.sigma,
            made_by=self,
            numbers=checked,
        )

    @property
    def module(self) -> str:
        return self.density.__module__


def check_numbers(family: Family[Any], numbers: Mapping[str, float]) -> dict[str, float]:
    """The numbers as floats within their ranges; TypeError where others are given."""
    if set(numbers) != {known.name for known in family.parameters}:
        given = ", ".join(numbers) or "without it"
        wanted = " and ".join(f"{known.name}=" for known in family.parameters) or "no shape"
        raise TypeError(
            f"{family.name}() needs {wanted} beside sigma= or scale=, not {given}: try "
            f"{family.example}"
        )
    return {p.name: p.check(family.name, numbers[p.name]) for p in family.parameters}


class Size(NamedTuple):
    """Sigma and scale of a noise, and `given`, the one of them that is exact, by its name."""

    sigma: float
    scale: float
    given: Mapping[str, float]


def read_size(
    family: Family[Any],
    numbers: Mapping[str, float],
    std: float,
    sigma: float | None,
    scale: float | None,
) -> Size:
    """The size of a noise whose law has the standard deviation `std` at unit scale."""
    if (sigma is None) == (scale is None):
        which = "both" if sigma is not None else "neither"
        raise NoiseError(
            f"{family.name} needs exactly one of sigma= and scale=, but {which} was given"
        )
    if sigma is None:
        scale = positive("scale", scale)
        return Size(scale * std, scale, {"scale": scale})
    sigma = positive("sigma", sigma)
    if not math.isfinite(std):
        asked = write_call(family.name, {**numbers, "sigma": sigma})
        instead = write_call(family.name, {**numbers, "scale": 1.0})
        raise NoiseError(
            f"{asked} has no finite variance and so no sigma: give scale= instead, or truncate "
            f"it: {instead}.truncated(5)"
        )
    return Size(sigma, positive("scale", sigma / std), {"sigma": sigma})


@dataclass(frozen=True, eq=False)
class Member(Recipe[N]):
    """A noise of a family, which made it of these `arguments`: the numbers, the size by sigma or
    scale, and the dimension where the family takes one.
    """

    family: Family[N]
    arguments: Mapping[str, float]

    @property
    def text(self) -> str:
        return write_call(self.family.name, self.arguments)

    def data(self, noise: N) -> Data:
        return {"family": self.family.name, **self.arguments}

    def scaled(self, noise: N, factor: float) -> N:
        given = next(size for size in ("sigma", "scale") if size in self.arguments)
        return self.family(**{**self.arguments, given: self.arguments[given] * factor})

    def unit(self, noise: N) -> N:
        others = {k: v for k, v in self.arguments.items() if k not in ("sigma", "scale")}
        return self.family(**others, scale=1.0)


def plainest(noise: Noise) -> Noise:
    """The same law under its plainest name: General Normal 2 is Gaussian, as the family says."""
    equal = () if noise.made_by is None else noise.made_by.equal
    plain = next((same for numbers, same in equal if numbers == noise.numbers), None)
    return noise if plain is None else plain(sigma=noise.sigma)
