"""Where inputs and noise live on a computer: the points h·j, j whole, h = 1/(255·2^k) or 2^k.

Whole numbers add without rounding, so the sum of an input and its noise is one and the same map of
x + δ + ε whatever δ (docs/theory.md, lattice noise). What is not on the lattice is moved to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unicr.errors import NoiseError

Integers = NDArray[np.int64]

LARGEST = 1 << 30  # of an input's integers: sums with noise stay exact
COUNTS = (255, 65_535)  # what 8-bit and 16-bit images are divided by
STEPS = 16  # lattice points in one sigma, at least
SHARE = 1e-4  # of sigma: what moving an input may take off a radius
_TEXT = re.compile(r"(?P<up>[1-9]\d{0,30})(?:/(?P<down>[1-9]\d{0,30}))?|2\^(?P<power>-?\d{1,3})")


@dataclass(frozen=True)
class Lattice:
    """The points step·j. Its text is `1/255` or `2^-20`."""

    step: Fraction

    def __post_init__(self) -> None:
        if not 2.0**-120 <= self.step <= 2.0**100:
            raise NoiseError(f"lattice={self.step}: a step from 2^-120 to 2^100 is needed")

    @classmethod
    def parse(cls, text: Lattice | str) -> Lattice:
        """The inverse of `text`; a lattice is itself."""
        if isinstance(text, Lattice):
            return text
        found = _TEXT.fullmatch(text.strip())
        if found is None:
            raise NoiseError(f"lattice={text!r}: write its step, such as 1/255, 1/65280 or 2^-20")
        if found["power"] is not None:
            return cls(Fraction(2) ** int(found["power"]))
        return cls(Fraction(int(found["up"]), int(found["down"] or 1)))

    @property
    def text(self) -> str:
        """The step, as it is written."""
        up, down = self.step.numerator, self.step.denominator
        power = down.bit_length() - up.bit_length()
        if self.step == Fraction(2) ** -power:
            return f"2^{-power}"
        return f"{up}/{down}"

    def integers(self, x: Any) -> Integers:
        """The nearest point of every value, half upwards."""
        values = np.asarray(x, dtype=np.float64)
        scaled = values * self.step.denominator / self.step.numerator
        if not np.all(np.abs(scaled) < LARGEST):
            raise NoiseError(
                f"an input reaches {np.abs(values).max():g}, which is more than 2^30 steps of the "
                f"lattice {self.text}: take a coarser one with --lattice"
            )
        return np.floor(scaled + 0.5).astype(np.int64)

    def floats(self, integers: Integers) -> NDArray[np.float32]:
        """What a model sees of lattice points: one function of the integer."""
        return (integers.astype(np.float64) * float(self.step)).astype(np.float32)

    def holds(self, x: Any) -> bool:
        """Whether every value is a point of the lattice, as float32 writes it."""
        values = np.asarray(x, dtype=np.float32)
        near = np.abs(values, dtype=np.float64) < LARGEST * float(self.step) / 2
        return bool(near.all()) and np.array_equal(self.floats(self.integers(values)), values)

    def off(self, radius: float, p: float, dim: int, *, moved: bool) -> float:
        """What is left of a radius in ℓp for changes that do not keep to the lattice.

        g moves its input to the lattice, by h/2 in each coordinate; an x that had to be moved
        itself (`moved`) once more as much. Triangle inequality, of ‖·‖^p where p < 1.
        """
        h = float(self.step)
        if math.isinf(radius):
            return radius
        if p >= 1:
            root = 1.0 if math.isinf(p) else dim ** (1 / p)
            return max(0.0, radius - h * root * (1.0 if moved else 0.5) * (1 + 1e-12))
        lost = dim * h**p * (1.0 if moved else 1 - 2.0**-p) * (1 + 1e-12)
        left = radius**p - lost
        return left ** (1 / p) if left > 0 else 0.0


def lattice_for(
    inputs: Iterable[Any],
    size: float,
    dim: int,
    exponents: Iterable[float],
    *,
    fine: bool = False,
) -> Lattice:
    """The lattice of some inputs under a noise of this size (sigma, or scale where there is none).

    8-bit and 16-bit images keep theirs, refined where the noise is small. Other inputs, and with
    `fine` images too, get one so fine that moving them takes less than 1e-4 of the size off a
    radius, in any of the norms, unless 2^30 steps would not reach the largest input.
    """
    values = [np.asarray(x, dtype=np.float32).ravel() for x in inputs]
    root = max(
        1.0 if math.isinf(p) else dim ** min(1 / p, 60 / math.log2(dim + 1)) for p in exponents
    )
    wanted = math.floor(math.log2(SHARE * size / root))
    reach = max((float(np.abs(x).max(initial=0.0)) for x in values), default=0.0)
    least = math.ceil(math.log2(max(reach, 1e-30))) - 28
    for count in COUNTS:
        if all(_counts(x, count) for x in values):
            finer = max(0, math.ceil(math.log2(STEPS / (count * size))))
            if fine:
                finer = max(finer, -max(wanted, least) - math.floor(math.log2(count)))
            return Lattice(Fraction(1, count * 2 ** min(finer, 60)))
    return Lattice(Fraction(2) ** max(wanted, least, -100))


def _counts(x: NDArray[np.float32], count: int) -> bool:
    scaled = np.round(x.astype(np.float64) * count)
    if not np.all(np.abs(scaled) < LARGEST):
        return False
    return bool(np.array_equal((scaled / count).astype(np.float32), x))
