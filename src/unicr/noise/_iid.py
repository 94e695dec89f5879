"""Independent coordinates, all with one law: the structure of most noises."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import NoiseError
from unicr.law import Facts, Law
from unicr.noise._base import Data, Draws, Noise, SamplerError, positive, sampled_law
from unicr.noise._recipe import Recipe
from unicr.sample import Fill, IntegerLaw, integer_law
from unicr.values import Array, number

if TYPE_CHECKING:
    import torch

LEAST_MASS = 1e-12  # of an interval: the tables of laws are accurate to about as much


class View(ABC):
    """What a model sees of x + ε: one function of the sum, so that radii hold for it as well."""

    @abstractmethod
    def see(self, noisy: torch.Tensor, scale: float) -> torch.Tensor:
        """The function, of noise with this scale."""

    @abstractmethod
    def check_input(self, x: torch.Tensor) -> None:
        """Raise NoiseError where the noise is not meant for an input with these values."""

    @abstractmethod
    def interval(self, scale: float) -> float | None:
        """See `Noise.interval`."""


class IID(Noise):
    """Independent coordinates that all have the law `law`, which is `scale` times `unit_law`.

    Tables, curves and samples are made for `unit_law`; probabilities and quantiles are asked here
    as of the law itself, in real units.
    """

    law: Law
    unit_law: Law
    _recipe: Recipe[IID]
    _scale: float
    _sigma: float
    _view: View | None

    def __init__(
        self,
        unit_law: Law,
        recipe: Recipe[IID],
        *,
        scale: float = 1.0,
        sigma: float | None = None,
        view: View | None = None,
    ) -> None:
        """`sigma` is the standard deviation as a user wrote it, where its last digit counts."""
        sigma = unit_law.std * scale if sigma is None else sigma
        self._put(unit_law=unit_law, law=unit_law.scaled(scale), _recipe=recipe)
        self._put(_scale=scale, _sigma=sigma, _view=view)

    @property
    def iid(self) -> Self:
        return self

    @property
    def _text(self) -> str:
        return self._recipe.text

    def _data(self) -> Data:
        return self._recipe.data(self)

    @property
    def _key(self) -> tuple[Any, ...]:
        return (IID, self.unit_law, self._scale, self._view, self._recipe.label)

    @property
    def cache_key(self) -> str:
        return f"{self._text}{self.unit_law.fingerprint}"

    @property
    def family(self) -> str | None:
        return self._recipe.family

    @property
    def numbers(self) -> Mapping[str, float]:
        return self._recipe.numbers

    @property
    def plain(self) -> str | None:
        return self._recipe.plain

    @property
    def scale(self) -> float:
        return self._scale

    @property
    def sigma(self) -> float:
        return self._sigma

    @property
    def unit(self) -> IID:
        return self if self._scale == 1.0 else self._recipe.unit(self)

    def _scaled(self, factor: float) -> Self:
        return cast(Self, self._recipe.scaled(self, factor))

    def truncated(self, at: float, upper: float | None = None) -> IID:
        """This noise conditioned on |ε| ≤ at, or on at ≤ ε ≤ upper: exact, renormalised.

        It has every moment, whatever the tails of this noise.
        """
        low, high = (-float(at), float(at)) if upper is None else (float(at), float(upper))
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise NoiseError(f"cannot truncate to [{low}, {high}]: give finite ends, low < high")
        mass = self.law.mass_between(low, high)
        if not mass > LEAST_MASS:
            raise NoiseError(
                f"{self.text} has mass {mass:.3g} on [{low}, {high}]: too little to condition on"
            )
        unit_law = self.unit_law.given(low / self._scale, high / self._scale)
        return IID(unit_law, Truncation(self, low, high), scale=self._scale)

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
        """σ where every coordinate follows N(0, σ²), else None."""
        return None if self.law.normal_sigma is None else self._sigma

    @property
    def half_width(self) -> float | None:
        """λ where every coordinate is uniform on [−λ, λ], else None."""
        return self.law.half_width

    @property
    def mean(self) -> float:
        """E ε, nan where it does not exist."""
        return self.law.mean

    @property
    def support(self) -> tuple[float, float]:
        """The smallest interval that holds all the mass."""
        return self.law.support

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Where the density is not smooth: cusps, jumps, ends of a bounded support."""
        return self.law.breakpoints

    @property
    def mesh(self) -> Array:
        """Points so dense that between two of them the density is smooth, as far as is known."""
        return self.law.mesh

    def ratio_turns(self, shift: float) -> tuple[float, ...] | None:
        """Points between which log p(z − shift) − log p(z) is monotone, None where not known."""
        return self.law.ratio_turns(shift)

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
        """log-density of each coordinate by itself, float64, same shape as `z`."""
        import torch

        return self.law.log_density_of_tensor(z.to(torch.float64), 0.0)

    def _sampled_law(self) -> IntegerLaw:
        """The integers that samples are made of, in steps of the unit law."""
        return sampled_law(self.unit)

    def evaluate_error(self, step: float | None = None) -> SamplerError:
        """How far samples are from this law: on the lattice of a step, or of `sample` itself.

        >>> from unicr import noise
        >>> noise.laplace(sigma=0.5).evaluate_error().variation < 1e-14
        True
        """
        if step is not None:
            return SamplerError(step, integer_law(self, positive("step", step)).tau)
        law = self._sampled_law()
        return SamplerError(law.step * self.scale, law.tau)

    def _fill(self, out: torch.Tensor, draws: Draws, base: torch.Tensor | None) -> None:
        row = np.zeros(out.shape[1]) if base is None else base.detach().cpu().numpy()
        law = self._sampled_law()
        fill = Fill(law, row, key=draws.key, step=law.step * self.scale, integers=False)
        fill.fill_tensor(out, draws.start)

    def seen(self, noisy: torch.Tensor) -> torch.Tensor:
        return noisy if self._view is None else self._view.see(noisy, self._scale)

    def check_input(self, x: torch.Tensor) -> None:
        if self._view is not None:
            self._view.check_input(x)

    @property
    def interval(self) -> float | None:
        return None if self._view is None else self._view.interval(self._scale)


@dataclass(frozen=True)
class Truncation(Recipe[IID]):
    """`base`, given that low ≤ ε ≤ high. Its text is `NOISE.truncated(5)`."""

    base: IID
    low: float
    high: float

    @property
    def label(self) -> str:
        return self.base._recipe.label

    @property
    def text(self) -> str:
        low, high = self.low, self.high
        ends = number(high) if low == -high else f"{number(low)}, {number(high)}"
        return f"{bracket(self.base.text)}.truncated({ends})"

    def data(self, noise: IID) -> Data:
        return {"truncated": self.base.to_body(), "low": self.low, "high": self.high}

    def scaled(self, noise: IID, factor: float) -> IID:
        return self.base.scaled(factor).truncated(self.low * factor, self.high * factor)

    def unit(self, noise: IID) -> IID:
        low, high = self.low / noise.scale, self.high / noise.scale
        return IID(noise.unit_law, Truncation(self.base.unit, low, high))


def bracket(text: str) -> str:
    """The text of a noise, so that a dot may follow it."""
    return f"({text})" if " * " in text else text
