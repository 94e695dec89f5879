"""What a noise is: a value with a density, a sampler and facts that a certifier may use.

A noise is a structure (independent coordinates, a length times a direction, or joint), a law and a
scale. `Noise` is what all structures share. What a structure knows of itself stands in `iid`,
`coordinate`, `radial`, `scales` and `interval`, so that nobody has to ask for its class.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar, cast, final

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import NoiseError
from unicr.law import Facts, Law
from unicr.sample import Distribution, Fill, IntegerLaw, choose_step, derive, integer_law
from unicr.tables import facts_to_html
from unicr.text import number
from unicr.values import Array

if TYPE_CHECKING:
    import torch

    from unicr.noise._family import Family
    from unicr.noise._frame import Frame
    from unicr.noise._radial import RadialNoise

Data = dict[str, Any]

# how texts begin that no user gave
UNNAMED = ("from_density(", "from_radial_density(", "Joint(", "sum(", "Anisotropic(")
SMALLEST, LARGEST = 1e-30, 1e30  # of a size: beyond, float32 samples under- or overflow
# Total variation between a law and its samples, for `Noise.sample`: beyond it, the law is refused.
# Certificates do not rest on it: they pay the computed variation of their own lattice.
MOST_VARIATION = 1e-5
LEAST_MASS = 1e-12  # of an interval to condition on: tables of laws are about as accurate


def positive(name: str, value: Any) -> float:
    """A size as a float: finite, above 0, and no farther from 1 than floating point can serve."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise NoiseError(f"{name}={value!r} is not a number") from None
    except OverflowError:
        raise NoiseError(f"{name} is too large: it must be a finite number") from None
    if not math.isfinite(result) or result <= 0:
        raise NoiseError(f"{name}={value!r} must be a finite number above 0")
    if not SMALLEST <= result <= LARGEST:
        raise NoiseError(f"{name}={value!r} must lie between {SMALLEST:g} and {LARGEST:g}")
    return result


@dataclass(frozen=True)
class SamplerError:
    """How far samples are from the law that they stand for.

    A sample is drawn as a whole number of steps: it has the law of the noise, rounded to the
    nearest multiple of `step`, up to a total variation of at most `variation` in each coordinate.
    The bound is computed from the very thresholds that are drawn from
    (docs/theory.md#lattice-noise).
    """

    step: float
    variation: float


class Draws(NamedTuple):
    """Which samples: number `start` and the following ones under a key of 32 bytes."""

    key: bytes
    start: int


def stream_key(seed: int, input_index: int) -> bytes:
    """The key of a stream. All digits count, so negative and very long seeds are distinct."""
    try:
        parts = [operator.index(part) for part in (seed, input_index)]
    except TypeError:
        raise NoiseError(
            f"seed and input_index must be integers, got {seed!r} and {input_index!r}"
        ) from None
    return derive("unicr sample", *parts)


class Noise(ABC):
    """A probability density on R^d that can be sampled. It cannot be changed. Two noises are equal
    if they are the same law.

    `dim` is None if the noise works in any dimension (i.i.d. coordinates).
    """

    dim: int | None = None
    scales: Array | None = None
    """The factor of each coordinate, where coordinates have their own."""
    frame: Frame | None = None
    """B where this noise is Bξ and ξ has the coordinates of another one, else None."""
    has_density: bool = True
    """Whether `log_prob` is known."""
    parts: tuple[Noise, ...] = ()
    """The independent noises that whose sum this one is; empty if it is no sum."""
    in_threads: bool = True
    """Whether several threads may draw at once: not by code of the user's own."""
    scale: float = 1.0
    """The factor between `unit` and this noise."""
    made_by: Family[Any] | None = None
    """The family that made this noise, where one did."""
    numbers: Mapping[str, float] = MappingProxyType({})
    """The numbers of the family beside the size, by their names."""
    _file: tuple[str, Noise, float] | None = None

    def __setattr__(self, name: str, value: object) -> None:
        # A constructor writes to `vars(self)`.
        raise AttributeError(
            f"a noise cannot be changed, so {name} cannot be set: make a new noise"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(
            f"a noise cannot be changed, so {name} cannot be deleted: make a new noise"
        )

    def _copy(self, **changes: object) -> Self:
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.__dict__.update(changes)
        return copy

    @property
    @final
    def text(self) -> str:
        """The noise as text, as the command line, files and repr write it."""
        if self._file is None:
            return self._text
        reference, _, factor = self._file
        return reference if factor == 1.0 else f"{reference} * {number(factor)}"

    @property
    @final
    def label(self) -> str:
        """The name in legends: the name that its author gave, or the text."""
        if self._file is None:
            return repr(self)
        _, original, factor = self._file
        named = not original.text.startswith(UNNAMED)
        return repr(original.scaled(factor)) if named else repr(self)

    @final
    def loaded_from(self, reference: str) -> Self:
        """The same noise with the text `path/to/file.py:name`, the place where it was found."""
        return self._copy(_file=(reference, self, 1.0))

    @final
    def to_body(self) -> Data:
        """This noise in JSON types, as `to_data` stores it."""
        if self._file is None:
            return self._data()
        reference, original, factor = self._file
        return {"written": reference, "times": factor, "noise": original.to_body()}

    def _data(self) -> Data:
        raise NoiseError(
            f"{self.text} uses Python functions of its author and cannot be written to a file"
        )

    @property
    @abstractmethod
    def _text(self) -> str:
        """How this noise is written where it does not come from a file."""

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """Whether it is symmetric, log-concave, bounded, and so on."""

    @property
    def iid(self) -> IID | None:
        """This noise if its coordinates are independent and have the same law, else None."""
        return None

    @property
    def coordinate(self) -> IID | None:
        """The law of every coordinate up to its scale, if they are independent, else None."""
        return self.iid

    @property
    def radial(self) -> RadialNoise | None:
        """This noise if its density depends only on a norm of z, else None."""
        return None

    @property
    def core(self) -> Noise:
        """For a noise Bξ with a `frame` B: ξ. Otherwise this noise."""
        return self

    @property
    def certifying(self) -> tuple[Noise, ...]:
        """The noises that radii rest on, and whose law the sampler must have: of Bξ it is ξ, of a
        sum the parts whose radii hold for the sum (docs/theory.md#theorem-p).
        """
        return (self,)

    @property
    def interval(self) -> float | None:
        """For splitting noise: the length 2λ of its intervals. Otherwise None."""
        return None

    @property
    def family(self) -> str | None:
        """The name of the family that made this noise, or None."""
        return None if self.made_by is None else self.made_by.name

    @property
    def unit(self) -> Noise:
        """The same shape at unit scale. Tables and curves are computed for it."""
        return self

    @property
    @abstractmethod
    def sigma(self) -> float:
        """sqrt(E ε²) of one coordinate, the paper's σ; infinite if it does not exist."""

    @final
    def scaled(self, factor: float) -> Self:
        """The law of `factor`·ε."""
        factor = positive("factor", factor)
        if self._file is None:
            return self._scale_by(factor)
        reference, original, before = self._file
        total = before * factor
        noise = original._scale_by(total)._copy(_file=(reference, original, total))
        return cast(Self, noise)

    @abstractmethod
    def _scale_by(self, factor: float) -> Self: ...

    @abstractmethod
    def log_prob(self, z: torch.Tensor) -> torch.Tensor:
        """log μ(z) in float64; all axes but the first are coordinates of one sample."""

    @abstractmethod
    def _fill(self, out: torch.Tensor, draws: Draws, base: torch.Tensor | None) -> None:
        """Write these samples into the rows of `out` (n, dim), plus `base`."""

    @property
    def cache_key(self) -> str:
        """A text that no other law has. Curves are stored under it. (`text` can name a file.)"""
        return self._text

    @property
    def _key(self) -> tuple[Any, ...]:
        return (type(self), self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Noise) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        from unicr.noise._spec import show

        return show(self)

    def _repr_html_(self) -> str:
        return facts_to_html({"noise": repr(self), "sigma": self.sigma} | asdict(self.facts))

    def truncated(self, at: float, upper: float | None = None) -> Noise:
        """This noise conditioned on small coordinates, or on a short length."""
        raise NoiseError(
            f"{self.text} cannot be truncated: only i.i.d. noise and noise of a radial density can"
        )

    def __mul__(self, factor: float) -> Self:
        return self.scaled(factor)

    __rmul__ = __mul__

    def with_sigma(self, sigma: float) -> Self:
        """The same shape, rescaled so that sqrt(E ε²) per coordinate is `sigma`."""
        if not math.isfinite(self.sigma):
            raise NoiseError(
                f"{self.text} has no finite variance, so no sigma: give scale= instead, "
                "or cut it with .truncated(at)"
            )
        return self.scaled(positive("sigma", sigma) / self.sigma)

    @final
    def sample(
        self,
        n: int,
        shape: int | tuple[int, ...] | None = None,
        *,
        seed: int = 0,
        input_index: int = 0,
        start: int = 0,
        device: str | torch.device = "cpu",
        dtype: torch.dtype | None = None,
        base: torch.Tensor | None = None,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return samples number `start` … `start + n − 1` of the stream (`seed`, `input_index`).

        Sample number s of a stream is always the same. It does not depend on `n`, `start`, the
        number of threads or the order of calls. `base` (of shape `shape`) is added to every sample,
        as `see` does it. The result is a tensor (n, *shape), float32 unless `dtype` is given; it is
        written into `out` if that is given.

        Coordinates of i.i.d. noise are whole multiples of a step (about 2^-24 of the scale), drawn
        with their exact probabilities. `evaluate_error` returns the step and the error. The product
        with the step and the sum with `base` are computed in float64, then rounded to the type of
        the result.
        """
        import torch

        if n < 0 or start < 0 or input_index < 0:
            raise NoiseError(
                f"n={n}, start={start} and input_index={input_index} must not be negative"
            )
        if shape is None:
            if base is not None:
                shape = tuple(base.shape)
            elif out is not None:
                shape = tuple(out.shape[1:])
            elif self.dim is not None:
                shape = self.dim
            else:
                raise NoiseError(
                    f"{self.text} works in any dimension: give the shape of an input by shape="
                )
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        coordinates = math.prod(shape)
        if self.dim is not None and coordinates != self.dim:
            raise NoiseError(
                f"{self.text} has dimension {self.dim}, but the input has {coordinates} coordinates"
            )
        if out is None:
            out = torch.empty((n, *shape), dtype=dtype or torch.float32, device=device)
        if tuple(out.shape) != (n, *shape):
            raise NoiseError(f"out has shape {tuple(out.shape)}, but {(n, *shape)} is needed")
        if out.dtype not in (torch.float32, torch.float64):
            raise NoiseError(f"out has type {out.dtype}, but float32 or float64 is needed")
        if not out.is_contiguous():
            raise NoiseError("out must be contiguous")
        if base is not None:
            if tuple(base.shape) != shape:
                raise NoiseError(f"base has shape {tuple(base.shape)}, but {shape} is needed")
            base = base.to(device=out.device, dtype=out.dtype).reshape(coordinates).contiguous()
        if n and coordinates:
            draws = Draws(stream_key(seed, input_index), start)
            self._fill(out.view(n, coordinates), draws, base)
        return out if base is None else out.copy_(self.see(out))

    def check_agreement(self) -> None:
        """Raise NoiseError if samples do not follow the density. Most do by construction."""
        return None

    def see(self, noisy: torch.Tensor) -> torch.Tensor:
        """What a model sees of x + ε: a function of the sum. For most noises, the sum itself."""
        return noisy

    def check_input(self, x: torch.Tensor) -> None:
        """Raise NoiseError if this noise cannot be used for an input with these values."""
        return None


N = TypeVar("N", bound=Noise)


class Recipe(ABC, Generic[N]):
    """How a noise is written and kept as data, and how it is made again at another scale.

    Law and scale say what a noise is, and how it computes; its recipe says what it is called.
    """

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


class FromLaw(Noise):
    """A structure made of one law, at a scale, with the recipe that names it."""

    _recipe: Recipe[Any]
    _text: str = ""
    sigma: float = math.nan

    def _data(self) -> Data:
        return self._recipe.data(self)

    @property
    def unit(self) -> Self:
        return self if self.scale == 1.0 else cast(Self, self._recipe.unit(self))

    def _scale_by(self, factor: float) -> Self:
        return cast(Self, self._recipe.scaled(self, factor))

    @abstractmethod
    def truncated(self, at: float, upper: float | None = None) -> Self: ...

    @abstractmethod
    def _at_unit(self, recipe: Recipe[Any]) -> Self:
        """The same law at scale 1, which another recipe names."""


class View(ABC):
    """What a model sees of x + ε: one function of the sum, so that radii hold for it as well."""

    @abstractmethod
    def see(self, noisy: torch.Tensor, scale: float) -> torch.Tensor:
        """The function, of noise with this scale."""

    @abstractmethod
    def check_input(self, x: torch.Tensor) -> None:
        """Raise NoiseError if the noise is not meant for an input with these values."""

    @abstractmethod
    def interval(self, scale: float) -> float | None:
        """See `Noise.interval`."""


class IID(FromLaw):
    """Noise with independent coordinates that all have the law `law`, which is `scale` times
    `unit_law`.

    Tables, curves and samples are computed for `unit_law`. The probabilities and quantiles of this
    class are those of `law`, in real units.
    """

    unit_law: Law
    _view: View | None
    _name: str

    def __init__(
        self,
        unit_law: Law,
        recipe: Recipe[Any],
        *,
        scale: float = 1.0,
        sigma: float | None = None,
        view: View | None = None,
        name: str = "",
        **of_family: Any,
    ) -> None:
        """`sigma` is the standard deviation as a user wrote it, where its last digit counts.

        `name` belongs to the noise's identity: densities may agree, and differ in it. A family adds
        `made_by` and `numbers`.
        """
        sigma = unit_law.std * scale if sigma is None else sigma
        vars(self).update(unit_law=unit_law, scale=scale, sigma=sigma)
        vars(self).update(_recipe=recipe, _text=recipe.text, _name=name, _view=view, **of_family)

    @property
    def iid(self) -> Self:
        return self

    @cached_property
    def law(self) -> Law:
        """The law of a coordinate, in real units."""
        return self.unit_law.scaled(self.scale)

    @property
    def _key(self) -> tuple[Any, ...]:
        return (IID, self.unit_law, self.scale, self._view, self._name)

    @property
    def cache_key(self) -> str:
        return f"{self._text}{self.unit_law.fingerprint}"

    def _at_unit(self, recipe: Recipe[Any]) -> Self:
        return type(self)(self.unit_law, recipe, view=self._view, name=self._name)

    def truncated(self, at: float, upper: float | None = None) -> Self:
        """This noise conditioned on |ε| ≤ at, or on at ≤ ε ≤ upper, exactly. The result has all
        moments, even if this noise has not.
        """
        low, high = (-float(at), float(at)) if upper is None else (float(at), float(upper))
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise NoiseError(
                f"cannot truncate to [{low}, {high}]: both ends must be finite, and the first "
                "below the second"
            )
        mass = self.law.mass_between(low, high)
        if not mass > LEAST_MASS:
            raise NoiseError(
                f"{self.text} has a mass of only {mass:.3g} on [{low}, {high}], which is too "
                "little to truncate to: choose a wider interval"
            )
        unit_law = self.unit_law.given(low / self.scale, high / self.scale)
        cut = Truncation(self, low, high)
        return type(self)(unit_law, cut, scale=self.scale, name=self._name)

    # the law of one coordinate -------------------------------------------------------------------

    @property
    def facts(self) -> Facts:
        return self.law.facts

    @property
    def tabulated(self) -> bool:
        """Whether probabilities and quantiles are read from a table instead of formulas."""
        return self.law.tabulated

    @property
    def normal_sigma(self) -> float | None:
        """σ if every coordinate is N(0, σ²), else None."""
        return None if self.law.normal_sigma is None else self.sigma

    @property
    def half_width(self) -> float | None:
        """λ if every coordinate is uniform on [−λ, λ], else None."""
        return self.law.half_width

    @property
    def mean(self) -> float:
        """E ε, or nan if it does not exist."""
        return self.law.mean

    @property
    def support(self) -> tuple[float, float]:
        """The smallest interval that holds all the mass."""
        return self.law.support

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The places where the density is not smooth: cusps, jumps, ends of a bounded support."""
        return self.law.breakpoints

    def ratio_turns(self, shift: float) -> tuple[float, ...] | None:
        """Points between which log p(z − shift) − log p(z) is monotone, or None if they are not
        known."""
        return self.law.ratio_turns(shift)

    def masses(self, low: Array, high: Array) -> Array | None:
        """See `Law.masses`."""
        return self.law.masses(low, high)

    def logpdf(self, x: ArrayLike) -> Array:
        """Log of the normalised density."""
        return self.law.logpdf(x)

    def pdf(self, x: ArrayLike) -> Array:
        """The normalised density."""
        return self.law.pdf(x)

    def cdf(self, x: ArrayLike) -> Array:
        """P(ε ≤ x), with full relative accuracy in the lower tail."""
        return self.law.cdf(x)

    def sf(self, x: ArrayLike) -> Array:
        """P(ε > x), with full relative accuracy in the upper tail."""
        return self.law.sf(x)

    def ppf(self, u: ArrayLike) -> Array:
        """The x with cdf(x) = u."""
        return self.law.ppf(u)

    def isf(self, u: ArrayLike) -> Array:
        """The x with sf(x) = u."""
        return self.law.isf(u)

    # all coordinates -----------------------------------------------------------------------------

    def log_prob(self, z: torch.Tensor) -> torch.Tensor:
        return self.log_prob_coordinates(z).flatten(1).sum(1)

    def log_prob_coordinates(self, z: torch.Tensor) -> torch.Tensor:
        """The log-density of each coordinate, float64, with the shape of `z`."""
        import torch

        return self.law.log_density_of_tensor(z.to(torch.float64), 0.0)

    def evaluate_error(self, step: float | None = None) -> SamplerError:
        """How far samples are from this law: on a lattice with this step, or as `sample` draws
        them.

        >>> from unicr import noise
        >>> noise.laplace(sigma=0.5).evaluate_error().variation < 1e-14
        True
        """
        if step is not None:
            return SamplerError(step, integer_law(self, positive("step", step)).tau)
        law = make_sampled_law(self.unit)
        return SamplerError(law.step * self.scale, law.tau)

    def _fill(self, out: torch.Tensor, draws: Draws, base: torch.Tensor | None) -> None:
        row = np.zeros(out.shape[1]) if base is None else base.detach().cpu().numpy()
        law = make_sampled_law(self.unit)
        fill = Fill(law, row, key=draws.key, step=law.step * self.scale, integers=False)
        fill.fill_tensor(out, draws.start)

    def see(self, noisy: torch.Tensor) -> torch.Tensor:
        return noisy if self._view is None else self._view.see(noisy, self.scale)

    def check_input(self, x: torch.Tensor) -> None:
        if self._view is not None:
            self._view.check_input(x)

    @property
    def interval(self) -> float | None:
        return None if self._view is None else self._view.interval(self.scale)


@dataclass(frozen=True)
class Truncation(Recipe[FromLaw]):
    """`base`, given that low ≤ ε ≤ high, or that its length is at most high: then low is −high.

    Its text is `NOISE.truncated(5)`.
    """

    base: FromLaw
    low: float
    high: float

    @property
    def text(self) -> str:
        return f"{bracket(self.base.text)}.truncated({', '.join(map(number, self._ends))})"

    @property
    def _ends(self) -> tuple[float, ...]:
        return (self.high,) if self.low == -self.high else (self.low, self.high)

    def data(self, noise: FromLaw) -> Data:
        return {"truncated": self.base.to_body(), "low": self.low, "high": self.high}

    def scaled(self, noise: FromLaw, factor: float) -> FromLaw:
        ends = (end * factor for end in self._ends)
        return self.base.scaled(factor).truncated(*ends)

    def unit(self, noise: FromLaw) -> FromLaw:
        low, high = self.low / noise.scale, self.high / noise.scale
        return noise._at_unit(Truncation(self.base.unit, low, high))


def bracket(text: str) -> str:
    """The text of a noise, so that a dot may follow it."""
    return f"({text})" if " * " in text else text


@lru_cache(maxsize=256)
def make_sampled_law(law: Distribution) -> IntegerLaw:
    """The law at the step that `Noise.sample` takes; NoiseError if its error is too large."""
    integers = integer_law(law, choose_step(law))
    if not integers.tau <= MOST_VARIATION:
        raise NoiseError(
            f"{law.text} cannot be sampled exactly enough: the total variation distance between it "
            f"and its samples may reach {integers.tau:.3g}, and at most {MOST_VARIATION:g} is "
            "allowed; use a smoother or lighter density, or name its jumps with points="
        )
    return integers
