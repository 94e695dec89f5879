"""What does a family of noises say about itself? Its numbers and their ranges, its size, its text.

The registry, the command line, the explorer, I-OPT and the optimality gallery read it from here;
`unicr.noise.families` holds one file for each family, and nothing else has to know of it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import NoiseError
from unicr.noise._base import IID, Facts, Noise, positive
from unicr.values import Array, number

if TYPE_CHECKING:
    import torch


MOST_COORDINATES = 1 << 53


@dataclass(frozen=True)
class Parameter:
    """A number that a family takes beside its size, from `low` to `high`, ends included.

    Inside that range sampler, density, probabilities, quantiles and radii are tested against an
    independent oracle, at the ends too; outside, the family is refused.
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
    equal: tuple[tuple[float, str], ...] = ()
    """Values at which the noise is one of a plainer family, of the same sigma."""

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
                f"{name}={number(result)} is outside the range of {family}: "
                f"it takes {name} from {number(self.low)} to {number(self.high)}"
            )
        return result


def dimension(value: int, least: int) -> int:
    """The value as an int from `least` to 2^53, or an error that names it."""
    whole = isinstance(value, int | np.integer) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole or not least <= value <= MOST_COORDINATES:
        raise NoiseError(f"dim={str(value)[:30]} must be a whole number from {least} to 2^53")
    return int(value)


class Named(Noise):
    """A noise with a name, some numbers and a size: `sigma` or the `scale` of its formula."""

    name: ClassVar[str]
    formula: ClassVar[str]
    example: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    sizes: ClassVar[tuple[str, ...]] = ("sigma", "scale")
    joint: ClassVar[bool] = False
    """Whether the law is one of a whole input, so that the family takes `dim` as well."""
    _numbers: dict[str, float]
    _given: str
    _scale: float
    _sigma: float

    def __init__(
        self, *, sigma: float | None = None, scale: float | None = None, **numbers: float
    ) -> None:
        if set(numbers) != {known.name for known in self.parameters}:
            given = ", ".join(numbers) or "without it"
            wanted = " and ".join(f"{known.name}=" for known in self.parameters) or "no shape"
            raise TypeError(
                f"{self.name}() takes {wanted} beside its size, not {given}: try {self.example}"
            )
        checked = {p.name: p.check(self.name, numbers[p.name]) for p in self.parameters}
        self._put(_numbers=checked, _scale=1.0, **checked)
        if (sigma is None) == (scale is None):
            which = "both" if sigma is not None else "neither"
            raise NoiseError(
                f"{self.name} takes exactly one of sigma= and scale=, {which} was given"
            )
        if sigma is not None:
            sigma = positive("sigma", sigma)
            if not math.isfinite(self._std):
                raise NoiseError(
                    f"{self._call('sigma', sigma)} has no finite variance, so no sigma: "
                    f"give scale= instead, or cut it: {self._call('scale', 1.0)}.truncated(5)"
                )
            self._put(_given="sigma", _sigma=sigma, _scale=positive("scale", sigma / self._std))
        else:
            assert scale is not None
            scale = positive("scale", scale)
            self._put(_given="scale", _sigma=scale * self._std, _scale=scale)

    @property
    @abstractmethod
    def _std(self) -> float:
        """sqrt(E ε²) per coordinate at unit scale, inf where it does not exist."""

    def _call(self, key: str, value: float) -> str:
        numbers = {**self._numbers, key: value, **({"dim": self.dim} if self.dim else {})}
        return f"{self.name}({', '.join(f'{k}={number(v)}' for k, v in numbers.items())})"

    @property
    def plain(self) -> str | None:
        """The family of which this is a member by a plainer name, if there is one."""
        named = ((getattr(self, p.name) == value, name) for p in self.parameters
                 for value, name in p.equal)  # fmt: skip
        return next((name for same, name in named if same), None)

    @property
    def arguments(self) -> dict[str, float]:
        """The numbers with which the family makes this noise."""
        size = self._sigma if self._given == "sigma" else self._scale
        return {**self._numbers, self._given: size, **({"dim": self.dim} if self.dim else {})}

    @property
    def _text(self) -> str:
        return self._call(self._given, self.arguments[self._given])

    @property
    def _key(self) -> tuple[Any, ...]:
        return (type(self), *self._numbers.items(), self.dim, self._scale)

    @property
    def sigma(self) -> float:
        return self._sigma

    @property
    def scale(self) -> float:
        """The α of the formula: the factor between `unit` and this noise."""
        return self._scale

    def _scaled(self, factor: float) -> Self:
        maker: Callable[..., Self] = type(self)
        return maker(**{**self.arguments, self._given: self.arguments[self._given] * factor})


def plainest(noise: Noise) -> Noise:
    """The same law under its plainest name: General Normal 2 is Gaussian, as the family says."""
    name = noise.plain if isinstance(noise, Named) else None
    if name is None:
        return noise
    from unicr.noise.families import FAMILIES

    return FAMILIES[name](sigma=noise.sigma)


class Family(Named, IID):
    """A symmetric density written as formulas at unit scale; `scale` is the paper's α."""

    @property
    def unit(self) -> Self:
        maker: Callable[..., Self] = type(self)
        return self if self._scale == 1.0 else maker(**self._numbers, scale=1.0)

    @property
    def facts(self) -> Facts:
        return Facts(
            symmetric=True,
            log_concave=self._log_concave,
            bounded=False,
            finite_variance=math.isfinite(self._std),
            positive=True,
        )

    @property
    def mean(self) -> float:
        return 0.0

    @property
    def support(self) -> tuple[float, float]:
        return (-math.inf, math.inf)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return tuple(b * self._scale for b in self._breaks)

    # what a family defines, all at unit scale ------------------------------------------------

    @property
    def _log_concave(self) -> bool:
        return True

    @property
    def _breaks(self) -> tuple[float, ...]:
        """Where the density is not smooth."""
        return ()

    @property
    @abstractmethod
    def _log_norm(self) -> float:
        """log of the integral of exp(_kernel)."""

    @abstractmethod
    def _kernel(self, z: Any, xp: Any) -> Any:
        """Unnormalised log-density, written with functions that numpy and torch both have."""

    @abstractmethod
    def _tail(self, z: Array) -> Array:
        """P(ε > z) for z ≥ 0."""

    @abstractmethod
    def _tail_inverse(self, v: Array) -> Array:
        """The z ≥ 0 with P(ε > z) = v, for 0 ≤ v ≤ 1/2."""

    # the same in real units ------------------------------------------------------------------

    def logpdf(self, x: ArrayLike) -> Array:
        z = np.asarray(x, dtype=np.float64) / self._scale
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            kernel = np.asarray(self._kernel(z, np), dtype=np.float64)
        return kernel - (self._log_norm + math.log(self._scale))

    def log_prob_coordinates(self, z: torch.Tensor) -> torch.Tensor:
        import torch

        kernel: torch.Tensor = self._kernel(z.to(torch.float64) / self._scale, torch)
        return kernel - (self._log_norm + math.log(self._scale))

    def sf(self, x: ArrayLike) -> Array:
        z = np.asarray(x, dtype=np.float64) / self._scale
        with np.errstate(over="ignore", under="ignore"):
            tail = self._tail(np.abs(z))
        return np.where(z > 0, tail, 1.0 - tail)

    def cdf(self, x: ArrayLike) -> Array:
        return self.sf(-np.asarray(x, dtype=np.float64))

    def isf(self, u: ArrayLike) -> Array:
        v = np.asarray(u, dtype=np.float64)
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            z = self._tail_inverse(np.minimum(v, 1.0 - v))
            signed = np.where(v <= 0.5, z, -z) * self._scale
        return np.where((v >= 0) & (v <= 1), signed, np.nan)

    def ppf(self, u: ArrayLike) -> Array:
        return -self.isf(u)
