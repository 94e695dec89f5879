"""The grid on which inputs and noise are added: the points h·j for whole j; and noise drawn on it.

Whole numbers add without rounding, so the sum of an input and its noise is one and the same
function of x + δ + ε whatever δ is (docs/theory.md#lattice-noise). Every input is first moved to
its nearest grid point. A radius pays for that, so that it holds for every real change.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unicr.errors import NoiseError, SpecError
from unicr.noise._base import Draws, Noise
from unicr.sample import Fill, IntegerLaw, integer_law
from unicr.text import read_fraction

if TYPE_CHECKING:
    import torch

Integers = NDArray[np.int64]

LARGEST = 1 << 45  # of an input's integers; the sampler adds them exactly below 2^52
COUNTS = (255, 65_535)  # what 8-bit and 16-bit images are divided by
SHARE = 1e-4  # of sigma: the most that moving inputs to the grid takes off a radius, for p >= 1
FINEST = 36  # the grid has at most 2^36 points in one sigma: the sampler draws 28 bits quickly
# An integer is the nearest one of a quotient that double precision rounds: below 2^45 that is off
# by at most 2^-8, so an input moves by at most (1/2 + 2^-8) h.
NEAREST = 1 + 2.0**-6


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
        try:
            return cls(read_fraction(text))
        except SpecError:
            raise NoiseError(
                f"lattice={text!r}: write its step, such as 1/255, 1/65280 or 2^-20"
            ) from None

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
                f"an input reaches {np.abs(values).max():g}, which is more than 2^45 steps of the "
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

    def reduce(self, radius: float, p: float, dim: int) -> float:
        """What is left of an ℓp radius between grid points for changes between any two inputs.

        The classifier moves x and x + δ to the grid, each coordinate by at most h/2. So the two
        grid points differ by at most δ plus h in each coordinate (triangle inequality for ‖·‖_p,
        and for ‖·‖_p^p where p < 1; docs/theory.md#lattice-noise).
        """
        h = float(self.step) * NEAREST
        if math.isinf(radius):
            return radius
        if p >= 1:
            root = 1.0 if math.isinf(p) else dim ** (1 / p)
            return max(0.0, radius - h * root)
        left = radius**p - dim * h**p * NEAREST
        return left ** (1 / p) if left > 0 else 0.0


@dataclass(frozen=True)
class LatticeNoise:
    """ε′ = h·round(ε/h): a noise on a lattice, drawn from a keyed stream."""

    noise: Noise
    lattice: Lattice

    @property
    def tau(self) -> float | None:
        """A bound of the total variation between one coordinate drawn and its law.

        None where there is no bound: spherical and joint noises are drawn as real numbers, then
        rounded, and nothing is known of the law of a float.
        """
        return None if self._law is None else self._law.tau

    @functools.cached_property
    def _law(self) -> IntegerLaw | None:
        law = self.noise.iid
        return None if law is None else integer_law(law, float(self.lattice.step))

    def add(
        self,
        base: Integers,
        out: torch.Tensor,
        *,
        key: bytes,
        start: int = 0,
        threads: int | None = None,
    ) -> torch.Tensor:
        """Write noisy copies number start, start + 1, … of the lattice point `base` into `out`.

        Copy number s under a key is always the same. `out` has shape (n, *shape) and float32.
        """
        return self.copies(base, key=key, threads=threads)(out, start)

    def copies(self, base: Integers, *, key: bytes, threads: int | None = None) -> Copies:
        """`add` for many batches of one point: what they have in common is made ready once."""
        row = np.array(base, dtype=np.int64).reshape(-1)
        if self._law is None:
            return Copies(self.noise, row.size, partial(self._round, row, key))
        step = float(self.lattice.step)
        fill = Fill(self._law, row, key=key, step=step, integers=True, threads=threads)
        return Copies(self.noise, row.size, fill.fill_tensor, fill.prepare)

    def _round(self, row: Integers, key: bytes, out: torch.Tensor, start: int) -> None:
        """Real-valued noise under the key, rounded."""
        import torch

        drawn = torch.empty(out.shape[0], row.size, dtype=torch.float64)
        self.noise._fill(drawn, Draws(key, start), None)
        integers = np.floor(drawn.numpy() / float(self.lattice.step) + 0.5) + row
        out.copy_(torch.from_numpy(self.lattice.floats(integers)).view(out.shape))


@dataclass(frozen=True)
class Copies:
    """Fills batches with the noisy copies of one point on a lattice."""

    noise: Noise
    dim: int
    draw: Callable[[torch.Tensor, int], None]
    ready: Callable[[torch.device, int, int], None] | None = None

    def __call__(self, out: torch.Tensor, start: int = 0) -> torch.Tensor:
        """Write copies number start, start + 1, … into `out`: (n, *shape), float32."""
        import torch

        n, dim = out.shape[0], self.dim
        if out.dtype != torch.float32 or not out.is_contiguous() or n * dim != out.numel():
            raise NoiseError(f"{dim} integers cannot go into {out.dtype} {tuple(out.shape)}")
        if out.numel():
            self.draw(out, start)
        seen = self.noise.see(out)
        return out if seen is out else out.copy_(seen)

    def prepare(self, device: torch.device, start: int, n: int) -> None:
        """Do at once what a device leaves to the processor in copies start … start + n − 1."""
        if self.ready is not None:
            self.ready(device, start, n)


def choose_lattice(
    inputs: Iterable[Any], size: float, dim: int, exponents: Iterable[float]
) -> Lattice:
    """A grid so fine that radii hold for every change and lose less than 1e-4 of the noise's size.

    `size` is sigma, or the scale where there is none. For p < 1, where d^(1/p) outgrows every
    grid, and for inputs of more than 2^45 steps the grid is as fine as the sampler allows.
    """
    root = max(
        1.0 if math.isinf(p) else dim ** min(1 / p, 60 / math.log2(dim + 1)) for p in exponents
    )
    wanted = math.floor(math.log2(SHARE * size / (root * NEAREST)))
    wanted = max(wanted, math.ceil(math.log2(size)) - FINEST)
    reach = max((float(np.abs(np.asarray(x)).max(initial=0.0)) for x in inputs), default=0.0)
    least = math.ceil(math.log2(max(reach, 1e-30))) - 44
    return Lattice(Fraction(2) ** max(wanted, least, -100))


def find_own_grid(inputs: Iterable[Any]) -> Lattice | None:
    """The grid that 8-bit or 16-bit images have by themselves; None for other inputs."""
    values = [np.asarray(x, dtype=np.float32).ravel() for x in inputs]
    for count in COUNTS:
        if all(_counts(x, count) for x in values):
            return Lattice(Fraction(1, count))
    return None


def _counts(x: NDArray[np.float32], count: int) -> bool:
    scaled = np.round(x.astype(np.float64) * count)
    if not np.all(np.abs(scaled) < LARGEST):
        return False
    return bool(np.array_equal((scaled / count).astype(np.float32), x))


class _HasExponent(Protocol):
    """A norm, of which p is needed; the package of norms stands above this one."""

    @property
    def p(self) -> float: ...


def lattice_for(
    inputs: Iterable[torch.Tensor],
    noise: Noise,
    norms: Iterable[_HasExponent],
    *,
    own: bool = False,
) -> Lattice:
    """A grid so fine that radii hold for every change (`choose_lattice`).

    With `own`, the grid that 8-bit and 16-bit images have by themselves, where they have one.
    """
    values = [x.cpu().numpy() for x in inputs]
    if own and (grid := find_own_grid(values)) is not None:
        return grid
    return choose_lattice(values, size_of(noise), values[0].size, [norm.p for norm in norms])


def size_of(noise: Noise) -> float:
    """Sigma, or the scale where there is none."""
    return noise.sigma if math.isfinite(noise.sigma) else noise.scale
