"""The grid on which inputs and noise are added: the points h·j for whole j; and noise drawn on it.

Whole numbers add without rounding, so the sum of an input and its noise is one and the same
function of x + δ + ε whatever δ is (docs/theory.md#lattice-noise). Every input is first moved to
its nearest grid point. A radius pays for that, so that it holds for every real change.
"""

from __future__ import annotations

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
from unicr.noise._sum import part_key
from unicr.sample import NO_DOUBLES, Fill, IntegerLaw, integer_law
from unicr.text import read_fraction

if TYPE_CHECKING:
    import torch

    from unicr.noise._frame import Frame

Integers = NDArray[np.int64]

WHOLE_IN_DOUBLES = 2.0**53  # below it doubles hold every whole number
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
            raise NoiseError(f"lattice={self.step}: the step must lie between 2^-120 and 2^100")

    @classmethod
    def parse(cls, text: Lattice | str) -> Lattice:
        """The inverse of `text`; a lattice is itself."""
        if isinstance(text, Lattice):
            return text
        try:
            return cls(read_fraction(text))
        except SpecError:
            raise NoiseError(
                f"lattice={text!r}: give the step as 1/255, 1/65280 or 2^-20"
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
                f"an input has the value {np.abs(values).max():g}, which is more than 2^45 steps "
                f"of the lattice {self.text}: use a coarser one with --lattice"
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

    def reduce(self, radius: float, p: float, dim: int, spread: float | None = None) -> float:
        """What is left of an ℓp radius between grid points for changes between any two inputs.

        The classifier moves x and x + δ to the grid, each coordinate by at most h/2. So the two
        grid points differ by at most δ plus h in each coordinate (triangle inequality for ‖·‖_p,
        and for ‖·‖_p^p where p < 1; docs/theory.md#lattice-noise). `spread` is given where inputs
        are moved on the grid of B⁻¹x: their own points then move by Bu with |u_i| <= h, and ‖Bu‖_p
        is at most h times it.
        """
        h = float(self.step) * NEAREST
        if math.isinf(radius):
            return radius
        if p >= 1:
            root = 1.0 if math.isinf(p) else dim ** (1 / p)
            return max(0.0, radius - h * (root if spread is None else spread))
        rest = radius**p - (dim if spread is None else spread**p) * h**p * NEAREST
        return rest ** (1 / p) if rest > 0 else 0.0


@dataclass(frozen=True)
class LatticeNoise:
    """ε′ = h·round(ε/h): a noise on a lattice, drawn from a keyed stream.

    Bξ is drawn as B times ξ on the lattice, and inputs are moved on the lattice of B⁻¹x; of a sum
    every part is drawn on the lattice (docs/theory.md#parts-on-a-lattice).
    """

    noise: Noise
    lattice: Lattice

    @property
    def tau(self) -> float | None:
        """A bound of the total variation between one coordinate drawn and its law.

        None if there is no bound: spherical and joint noises are drawn as real numbers, then
        rounded, and nothing is known of the law of a float. For a sum only the law of the
        certifying part counts, so it is the largest of those.
        """
        laws = [self._law_of(part) for part in self.noise.certifying]
        return None if None in laws else max(law.tau for law in laws if law is not None)

    def _law_of(self, part: Noise) -> IntegerLaw | None:
        law = part.iid
        return None if law is None else integer_law(law, float(self.lattice.step))

    def integers(self, x: Any) -> Integers:
        """The lattice point that an input is moved to, as a row: of B⁻¹x where the noise is Bξ."""
        frame, step = self.noise.frame, float(self.lattice.step)
        values = np.asarray(x, dtype=np.float64).reshape(-1)
        if frame is None:
            return self.lattice.integers(values)
        if values.size != frame.dim:
            raise NoiseError(
                f"{self.noise.text} has dimension {frame.dim}, but the input has {values.size} "
                "coordinates"
            )
        y, error = frame.pull(values)
        most = min(LARGEST / 4, frame.most_steps / 2)
        # with these, B⁻¹x and the quotient by the step are off by at most 2^-8 and 2^-9 of a step
        if not (np.abs(y).max(initial=0.0) < most * step and error <= step * 2.0**-8):
            raise NoiseError(
                f"an input reaches {np.abs(y).max():g} in units of {self.noise.text}, which is too "
                f"far for the lattice {self.lattice.text}: use a coarser one with --lattice"
            )
        return self.lattice.integers(y)

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
        if self.noise.parts:
            return Copies(self.noise, row.size, self._add_parts(row, key, threads))
        if self.noise.frame is not None:
            fill = self._whole(self.noise.core, row, key, threads)
            return Copies(
                self.noise, row.size, partial(self._stretch, fill, row.size), fill.prepare
            )
        law, step = self._law_of(self.noise), float(self.lattice.step)
        if law is None:
            return Copies(self.noise, row.size, partial(self._round, row, key))
        fill = Fill(law, row, key=key, step=step, integers=True, threads=threads)
        return Copies(self.noise, row.size, fill.fill_tensor, fill.prepare)

    def _round(self, row: Integers, key: bytes, out: torch.Tensor, start: int) -> None:
        """Real-valued noise under the key, rounded."""
        import torch

        integers = self._draw_rounded(self.noise, key, out.shape[0], row.size, start)
        floats = self.lattice.floats(integers.numpy() + row)
        out.copy_(torch.from_numpy(floats).view(out.shape))

    def _draw_rounded(self, noise: Noise, key: bytes, n: int, dim: int, start: int) -> torch.Tensor:
        """Whole numbers, as doubles, of a noise that is drawn as real numbers."""
        import torch

        drawn = torch.empty(n, dim, dtype=torch.float64)
        noise._fill(drawn, Draws(key, start), None)
        return (drawn / float(self.lattice.step) + 0.5).floor_()

    def _whole(self, noise: Noise, row: Integers, key: bytes, threads: int | None) -> Fill:
        """Writes a row plus noise as whole numbers: doubles hold them exactly."""
        law = self._law_of(noise)
        assert law is not None
        return Fill(law, row, key=key, step=1.0, integers=True, threads=threads)

    def _read_whole(self, part: Noise, key: bytes, drawn: torch.Tensor, start: int) -> torch.Tensor:
        """The whole numbers that doubles were drawn from; those that doubles round are drawn again.

        A sum of rounded numbers is no function of the input plus one part
        (docs/theory.md#parts-on-a-lattice).
        """
        import torch

        whole = drawn.to(torch.int64)
        far = torch.nonzero(drawn.view(-1).abs() >= WHOLE_IN_DOUBLES).view(-1).cpu()
        if far.numel():
            law = self._law_of(part)
            assert law is not None
            places = far.numpy().astype(np.uint64) + np.uint64(start * drawn.shape[1])
            exact = torch.from_numpy(law.evaluate(key, places))
            whole.view(-1)[far.to(whole.device)] = exact.to(whole.device)
        return whole

    def _stretch(self, fill: Fill, dim: int, out: torch.Tensor, start: int) -> None:
        """B times the whole numbers of ξ on the lattice: one function of them."""
        frame = self.noise.frame
        assert frame is not None
        whole = _doubles(out, dim)
        fill.fill_tensor(whole, start)
        out.copy_(frame.place(whole, float(self.lattice.step)).view(out.shape))

    def _add_parts(
        self, row: Integers, key: bytes, threads: int | None
    ) -> Callable[[torch.Tensor, int], None]:
        """Draws the parts of a sum under keys of their own, and adds them as whole numbers."""
        keys = [part_key(key, i) for i in range(len(self.noise.parts))]
        none = np.zeros_like(row)
        fills = {
            i: self._whole(part, none, keys[i], threads)
            for i, part in enumerate(self.noise.parts)
            if part.iid is not None
        }

        def draw(out: torch.Tensor, start: int) -> None:
            import torch

            more = _doubles(out, row.size)
            total = torch.from_numpy(row).to(more.device).repeat(len(out), 1)
            for i, part in enumerate(self.noise.parts):
                if i in fills:
                    fills[i].fill_tensor(more, start)
                    total += self._read_whole(part, keys[i], more, start)
                else:
                    drawn = self._draw_rounded(part, keys[i], len(out), row.size, start)
                    total += drawn.to(torch.int64).to(more.device)
            floats = total.to(torch.float64) * float(self.lattice.step)
            out.copy_(floats.to(torch.float32).view(out.shape))

        return draw


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
            raise NoiseError(
                f"{dim} integers do not fit into out, which has type {out.dtype} and shape "
                f"{tuple(out.shape)}"
            )
        if out.numel():
            self.draw(out, start)
        visible = self.noise.see(out)
        return out if visible is out else out.copy_(visible)

    def prepare(self, device: torch.device, start: int, n: int) -> None:
        """Do at once what a device leaves to the processor in copies start … start + n − 1."""
        if self.ready is not None:
            self.ready(device, start, n)


def _doubles(out: torch.Tensor, dim: int) -> torch.Tensor:
    """Memory for whole numbers beside `out`, on its device where that has doubles."""
    import torch

    device = "cpu" if out.device.type in NO_DOUBLES else out.device
    return torch.empty(out.shape[0], dim, dtype=torch.float64, device=device)


def choose_lattice(
    inputs: Iterable[Any],
    size: float,
    dim: int,
    exponents: Iterable[float],
    frame: Frame | None = None,
) -> Lattice:
    """A grid so fine that radii hold for every change and lose less than 1e-4 of the noise's size.

    `size` is sigma, or the scale where there is none. For p < 1, where d^(1/p) outgrows every
    grid, and for inputs of more than 2^45 steps the grid is as fine as the sampler allows. With a
    `frame` B, `size` and the grid are those of B⁻¹x.
    """
    several, most = list(exponents), 2.0**44
    root = max(
        1.0 if math.isinf(p) else dim ** min(1 / p, 60 / math.log2(dim + 1)) for p in several
    )
    if frame is not None:  # what a ball loses, as a share of the one that is inscribed
        inputs, most = [frame.pull(_flat(x))[0] for x in inputs], min(2.0**42, frame.most_steps / 4)
        root = max(root, *(frame.spread(p) / frame.inner_factor(p) for p in several if p >= 1), 1.0)
    wanted = math.floor(math.log2(SHARE * size / (root * NEAREST)))
    wanted = max(wanted, math.ceil(math.log2(size)) - FINEST)
    reach = max((float(np.abs(np.asarray(x)).max(initial=0.0)) for x in inputs), default=0.0)
    least = math.ceil(math.log2(max(reach, 1e-30))) - int(math.log2(most))
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


def _flat(x: Any) -> NDArray[np.float64]:
    return np.asarray(x, dtype=np.float64).reshape(-1)


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
    frame = noise.frame
    if own and frame is None and (grid := find_own_grid(values)) is not None:
        return grid
    dim, exponents = values[0].size, [norm.p for norm in norms]
    if frame is not None and frame.dim != dim:
        raise NoiseError(
            f"{noise.text} has dimension {frame.dim}, but the input has {dim} coordinates"
        )
    size = min(size_of(part) for part in noise.certifying)
    return choose_lattice(values, size, dim, exponents, frame)


def find_finest(noises: Iterable[Noise]) -> Noise:
    """The noise whose grid serves all: the one that a step of the grid changes most."""

    def fineness(law: Noise) -> float:
        frame, size = law.frame, min(size_of(part) for part in law.certifying)
        return size if frame is None else size * frame.inner_factor(2.0) / frame.spread(2.0)

    return min(noises, key=fineness)


def size_of(noise: Noise) -> float:
    """Sigma, or the scale where there is none."""
    return noise.sigma if math.isfinite(noise.sigma) else noise.scale
