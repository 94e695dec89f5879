"""How a noise was made: from a family and numbers, from a density, or from another noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, TypeVar

from unicr.noise._base import Data, Noise

N = TypeVar("N", bound=Noise)


class Recipe(ABC, Generic[N]):
    """How a noise is written and kept as data, and how it is made again at another scale.

    Law and scale say what a noise is, and how it computes; its recipe says what it is called.
    """

    @property
    def family(self) -> str | None:
        """See `Noise.family`."""
        return None

    @property
    def numbers(self) -> Mapping[str, float]:
        """See `Noise.numbers`."""
        return {}

    @property
    def plain(self) -> str | None:
        """See `Noise.plain`."""
        return None

    @property
    def label(self) -> str:
        """A name that belongs to the noise's identity: densities may agree, and differ in it."""
        return ""

    @property
    @abstractmethod
    def text(self) -> str:
        """What `noise.parse` reads back."""

    @abstractmethod
    def data(self, noise: N) -> Data:
        """What `noise.from_data` reads back."""

    @abstractmethod
    def scaled(self, noise: N, factor: float) -> N:
        """`factor` times the noise that this recipe made."""

    @abstractmethod
    def unit(self, noise: N) -> N:
        """The same shape at scale 1."""
