"""Noise whose density depends on a norm ‖z‖ alone: the ball of the norm, a law of ‖z‖ and a scale.

A family's file gives the density as a function of the length (`unicr.law.RadialDensity`), and the
ball; the law of the length follows from both and the dimension. The balls of ℓ1, ℓ2 and ℓ∞ stand in
`unicr.noise.families._balls`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import NoiseError
from unicr.law import Facts, Law, LengthLaw, RadialDensity
from unicr.law.internal import LogLength
from unicr.noise._base import (
    IID,
    LEAST_MASS,
    Data,
    Draws,
    FromLaw,
    Noise,
    Recipe,
    SamplerError,
    Truncation,
    bracket,
    make_sampled_law,
)
from unicr.sample import Fill, IntegerLaw, derive
from unicr.text import number
from unicr.values import Array

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class UnitBall:
    """The ball ‖z‖ ≤ 1 of a norm in any dimension, and where directions on it come from.

    A point with independent coordinates from `coordinates`, divided by its norm, is a direction,
    independent of the length. `power` is the e for which ‖z − δ‖^e − ‖z‖^e has a simple law:
    trade-offs look at r^e.
    """

    order: float
    """The p of the norm."""
    power: int
    coordinates: IID
    log_surface: Callable[[int], float]
    """log of d/dr vol{‖z‖ ≤ r} at r = 1, in this dimension."""
    square: Callable[[int], float]
    """E θ_i² of a direction θ, in this dimension."""

    def std(self, length: LengthLaw) -> float:
        """sqrt(E ε_i²) of noise with this law of the length; inf if it does not exist."""
        return math.sqrt(length.second_moment * self.square(length.dim))


class RadialNoise(FromLaw):
    """μ(z) = φ(‖z‖): a direction on `ball` times a length of the law `length`.

    `length` is `scale` times `unit_length`, which tables, trade-offs and samples are made for.
    """

    dim: int
    ball: UnitBall
    length: Law
    unit_length: LengthLaw

    def __init__(
        self,
        ball: UnitBall,
        unit_length: LengthLaw,
        recipe: Recipe[Any],
        *,
        scale: float = 1.0,
        sigma: float | None = None,
        **of_family: Any,
    ) -> None:
        """`sigma` is the standard deviation as a user wrote it, where its last digit counts. A
        family adds `made_by` and `numbers`.
        """
        sigma = ball.std(unit_length) * scale if sigma is None else sigma
        vars(self).update(ball=ball, unit_length=unit_length, length=unit_length.scaled(scale))
        vars(self).update(dim=unit_length.dim, scale=scale, sigma=sigma)
        vars(self).update(_recipe=recipe, _text=recipe.text, **of_family)

    @property
    def radial(self) -> Self:
        return self

    @property
    def order(self) -> float:
        """The p of the norm that the density looks at."""
        return self.ball.order

    @property
    def density(self) -> RadialDensity:
        """φ as a function of the length, at unit scale."""
        return self.unit_length.density

    @property
    def conditioned(self) -> bool:
        """Whether this is another radial noise, given that its length is short."""
        return not self.unit_length.whole

    @property
    def _key(self) -> tuple[Any, ...]:
        return (RadialNoise, self.order, self.unit_length, self.scale)

    @property
    def cache_key(self) -> str:
        return f"{self._text}|{self.unit_length.fingerprint}"

    @property
    def facts(self) -> Facts:
        known = self.unit_length.by_formula
        return Facts(
            symmetric=True,
            log_concave=False,
            bounded=math.isfinite(self.unit_length.support[1]),
            finite_variance=math.isfinite(self.sigma),
            unimodal=known,
            positive=self.unit_length.table.positive,
            source="analytic" if known else "checked",
        )

    def _at_unit(self, recipe: Recipe[Any]) -> Self:
        return type(self)(self.ball, self.unit_length, recipe)

    def truncated(self, at: float, upper: float | None = None) -> Self:
        """This noise conditioned on ‖ε‖ ≤ at, in the norm of its density: exact, renormalised."""
        at = float(at)
        if upper is not None or not (math.isfinite(at) and at > 0):
            raise NoiseError(
                f"{self.text} is truncated at one length above 0, for example .truncated(5)"
            )
        mass = float(self.length.cdf(at))
        if not mass > LEAST_MASS:
            raise NoiseError(
                f"{self.text} has a mass of only {mass:.3g} up to the length {number(at)}, which "
                "is too little to truncate to: choose a larger length"
            )
        return self._shorter(at / self.scale, Truncation(self, -at, at))

    def within(self, share: float) -> Self:
        """This noise conditioned on ‖ε‖ ≤ T, where P(‖ε‖ ≤ T) = `share`: a second law."""
        if not 0 < share < 1:
            raise NoiseError(f"share={share!r} must lie strictly between 0 and 1")
        end = float(self.unit_length.ppf(share))
        return self._shorter(end, Share(self, float(share)))

    def _shorter(self, end: float, recipe: Recipe[Any]) -> Self:
        """The same noise, conditioned on a length of at most `end` at unit scale."""
        length = self.unit_length.given(0.0, end)
        return type(self)(self.ball, length, recipe, scale=self.scale)

    def evaluate_error(self) -> SamplerError:
        """How far the length's logarithm is from its law; the direction's error is not in it."""
        law = self._find_length_law()
        return SamplerError(law.step, law.tau)

    def radial_logpdf(self, r: ArrayLike) -> Array:
        """log φ(r), normalised over R^d, in real units; −inf outside the support."""
        s, law = np.asarray(r, dtype=np.float64) / self.scale, self.unit_length
        low, high = law.window[0], min(law.window[1], law.density.end)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.asarray(law.density.log_density(s), dtype=np.float64)
        values = np.where((s >= low) & (s <= high), values, -np.inf)
        volume = self.ball.log_surface(self.dim)
        return values - law.table.log_mass - volume - self.dim * math.log(self.scale)

    def log_prob(self, z: torch.Tensor) -> torch.Tensor:
        import torch

        r = torch.linalg.vector_norm(z.flatten(1).to(torch.float64), self.order, dim=1)
        values = self.radial_logpdf(r.detach().cpu().numpy())
        return torch.from_numpy(np.ascontiguousarray(values)).to(z.device)

    def _find_length_law(self) -> IntegerLaw:
        """The integers that lengths at unit scale are made of, as steps of log(‖z‖/r₀)."""
        return make_sampled_law(LogLength(self.unit_length, self.text))

    def _fill(self, out: torch.Tensor, draws: Draws, base: torch.Tensor | None) -> None:
        """A direction under the key, times a length under a key of its own."""
        import torch

        self.ball.coordinates._fill(out, draws, None)
        law, key = self._find_length_law(), derive(draws.key, "length")
        log_radius = np.empty(out.shape[0])
        Fill(law, [0.0], key=key, step=law.step, integers=False)(log_radius, draws.start)
        radius = torch.from_numpy(self.unit_length.table.from_log(log_radius) * self.scale)
        length = torch.linalg.vector_norm(out, self.order, dim=1, keepdim=True, dtype=torch.float64)
        out.mul_((radius[:, None].to(out.device) / length).to(out.dtype))
        if base is not None:
            out.add_(base)


@dataclass(frozen=True)
class Share(Recipe[RadialNoise]):
    """`base` within the ball that holds a share of it. Its text is `NOISE.within(0.5)`."""

    base: RadialNoise
    share: float

    @property
    def text(self) -> str:
        return f"{bracket(self.base.text)}.within({number(self.share)})"

    def data(self, noise: RadialNoise) -> Data:
        return {"within": self.base.to_body(), "share": self.share}

    def scaled(self, noise: RadialNoise, factor: float) -> RadialNoise:
        return self.base.scaled(factor).within(self.share)

    def unit(self, noise: RadialNoise) -> RadialNoise:
        return noise._at_unit(Share(self.base.unit, self.share))


def within(base: Noise, share: float) -> RadialNoise:
    """`base` given that ‖ε‖ ≤ T, where P(‖ε‖ ≤ T) = `share`; in the norm of its density."""
    if base.radial is None:
        raise NoiseError(
            f"{base.text} cannot be restricted to a ball: only noise of a radial density can, such "
            "as spherical noise"
        )
    return base.radial.within(share)
