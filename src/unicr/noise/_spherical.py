"""Noise whose density depends on a norm ‖z‖ alone: a direction on the unit ball times a length.

`RadialNoise` is what its families share, `SphericalNoise` (ℓ2), `CubeNoise` (ℓ∞) and `CrossNoise`
(ℓ1) say which norm; `Spherical` takes any radial log-density a user writes.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from unicr.errors import NoiseError
from unicr.law import Facts
from unicr.law.internal import LogRadius, RadiusLaw
from unicr.noise._base import Data, Draws, Noise, SamplerError, sampled_law
from unicr.noise._family import Named, dimension
from unicr.sample import Fill, IntegerLaw, derive
from unicr.values import Array, number

if TYPE_CHECKING:
    import torch


MARGIN = 1e-12  # for the sign of a second derivative: some roundings of a power


@lru_cache(maxsize=64)
def _radius_law(noise: RadialNoise) -> RadiusLaw:
    """The law of ‖z‖ at unit scale."""
    return RadiusLaw(noise._radial, noise.dim, support=noise._radial_support, points=noise._points)


@lru_cache(maxsize=64)
def _length_law(noise: RadialNoise) -> IntegerLaw:
    """The integers that lengths at unit scale are made of, as steps of log(‖z‖/r₀)."""
    return sampled_law(LogRadius(_radius_law(noise), noise.text))


class RadialNoise(Named):
    """μ(z) = φ(‖z‖). A subclass gives log φ at unit scale and the parameters of its text form.

    A point of the cube (Laplace or Gaussian noise) divided by its ℓ∞ (ℓ1, ℓ2) norm is a direction:
    independent of the length, with `_square` = E θ_i².
    """

    joint = True
    dim: int
    order: ClassVar[float]
    """The p of the norm that the density looks at."""
    conditioned: ClassVar[bool] = False
    """Whether this is another radial noise, kept within a ball."""
    _radial_support: tuple[float, float] = (0.0, math.inf)
    _proved: bool = False
    """Whether φ is known by formula to fall, and log φ to be concave in log r."""
    _flat: bool = False
    """Whether φ is known to be constant up to the end of the support, which is 1 at unit scale."""

    def __init__(
        self,
        *,
        dim: int,
        sigma: float | None = None,
        scale: float | None = None,
        **numbers: float,
    ) -> None:
        self._put(dim=dimension(dim, 2))
        super().__init__(sigma=sigma, scale=scale, **numbers)

    @abstractmethod
    def _radial(self, r: Array) -> Array:
        """log φ(r) at unit scale, up to a constant."""

    @property
    def _power(self) -> int:
        """The e for which ‖z − δ‖^e − ‖z‖^e has a simple law: trade-offs look at r^e."""
        return 2 if self.order == 2 else 1

    def _drop(self, r: Array, gap: Array) -> Array:
        """log φ(r) − log φ(ρ), ρ^e = r^e + gap, at unit scale, within some roundings of itself.

        It may be that of a gap which differs from the given one by 1e-12 of it. Needed where
        `_proved`: a difference of two logarithms is not that accurate.
        """
        raise NotImplementedError

    def _steepness(self, r: Array) -> Array:
        """−d log φ/d(r^e) at unit scale. Needed where `_proved` and `_bend` may be 1."""
        raise NotImplementedError

    def _bend(self, low: float, high: float) -> int:
        """1 (−1) if log φ is convex (concave) in r^e for low ≤ r ≤ high by its formula, else 0."""
        return 0

    @property
    def _points(self) -> tuple[float, ...]:
        """Radii near which the mass lies, as hints for the quadrature; the first is its unit."""
        return ()

    @property
    def facts(self) -> Facts:
        return Facts(
            symmetric=True,
            log_concave=False,
            bounded=math.isfinite(self._law.support[1]),
            finite_variance=math.isfinite(self._std),
            positive=self._law.positive,
        )

    @property
    def radial(self) -> RadialNoise:
        return self

    @property
    def _law(self) -> RadiusLaw:
        return _radius_law(self.unit)

    @property
    def unit(self) -> Self:
        """The same shape at unit scale."""
        if self._scale == 1.0:
            return self
        return self._copy(_scale=1.0, _sigma=self._sigma / self._scale, _file=None)

    @property
    def _std(self) -> float:
        return math.sqrt(self._law.second_moment * self._square)

    @property
    @abstractmethod
    def _square(self) -> float: ...

    @property
    @abstractmethod
    def _log_sphere(self) -> float:
        """log of d/dr vol{‖z‖ ≤ r} at r = 1."""

    @property
    @abstractmethod
    def _raw(self) -> Noise:
        """Independent coordinates that make a direction."""

    @property
    def cache_key(self) -> str:
        return f"{self.text}|{self._law.fingerprint}"

    def evaluate_error(self) -> SamplerError:
        """How far the length's logarithm is from its law; the direction's error is not in it."""
        law = _length_law(self.unit)
        return SamplerError(law.step, law.tau)

    def radial_logpdf(self, r: ArrayLike) -> Array:
        """log φ(r), normalised over R^d, in real units; −inf outside the support."""
        s = np.asarray(r, dtype=np.float64) / self._scale
        low, high = self._radial_support
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.asarray(self._radial(s), dtype=np.float64)
        values = np.where((s >= low) & (s <= high), values, -np.inf)
        return values - self._law.log_mass - self._log_sphere - self.dim * math.log(self._scale)

    def radius_cdf(self, r: ArrayLike) -> Array:
        """P(‖ε‖ ≤ r)."""
        return self._law.cdf(np.asarray(r, dtype=np.float64) / self._scale)

    def radius_ppf(self, u: ArrayLike) -> Array:
        """The r with P(‖ε‖ ≤ r) = u."""
        return self._law.ppf(u) * self._scale

    def radius_isf(self, u: ArrayLike) -> Array:
        """The r with P(‖ε‖ > r) = u."""
        return self._law.isf(u) * self._scale

    def log_prob(self, z: torch.Tensor) -> torch.Tensor:
        import torch

        r = torch.linalg.vector_norm(z.flatten(1).to(torch.float64), self.order, dim=1)
        values = self.radial_logpdf(r.detach().cpu().numpy())
        return torch.from_numpy(np.ascontiguousarray(values)).to(z.device)

    def _fill(self, out: torch.Tensor, draws: Draws, base: torch.Tensor | None) -> None:
        """A direction under the key, times a length under a key of its own."""
        import torch

        self._raw._fill(out, draws, None)
        law, key = _length_law(self.unit), derive(draws.key, "length")
        log_radius = np.empty(out.shape[0])
        Fill(law, [0.0], key=key, step=law.step, integers=False)(log_radius, draws.start)
        radius = torch.from_numpy(self._law.from_log(log_radius) * self._scale)[:, None]
        length = torch.linalg.vector_norm(out, self.order, dim=1, keepdim=True, dtype=torch.float64)
        out.mul_((radius.to(out.device) / length).to(out.dtype))
        if base is not None:
            out.add_(base)


class Powered(RadialNoise):
    """φ(r) = r^(−j)·exp(−r^k): ‖z‖^k ~ Gamma((d − j)/k)."""

    k: float
    j: float = 0.0
    _proved = True  # −j·w − e^(kw) falls and is concave in w = log r

    @property
    def _points(self) -> tuple[float, ...]:
        rest = self.dim - self.j
        if rest <= 0.05:
            raise NoiseError(
                f"j={number(self.j)}, dim={self.dim}: {self.name} needs j < dim, or its mass is "
                "infinite near zero"
            )
        log_mode = math.log(max(rest - 1, 0.25) / self.k) / self.k
        if log_mode > 300:
            raise NoiseError(
                f"k={number(self.k)}, dim={self.dim}: the length of {self.name} is near "
                f"exp({log_mode:.4g}), beyond floating point; take a larger k"
            )
        return (math.exp(log_mode),)

    def _radial(self, r: Array) -> Array:
        return np.asarray(-special.xlogy(self.j, r) - r**self.k)

    def _drop(self, r: Array, gap: Array) -> Array:
        longer = np.log1p(gap / r**self._power) / self._power
        return np.asarray(self.j * longer + r**self.k * np.expm1(self.k * longer))

    def _bend(self, low: float, high: float) -> int:
        # with v = r^e: (d/dv)² of −(j/e)·log v − v^(k/e) has the sign of j − k(k/e − 1)·r^k
        factor = self.k * (self.k / self._power - 1)
        if self.j >= factor * high**self.k * (1 + MARGIN):
            return 1
        return -1 if self.j <= factor * low**self.k * (1 - MARGIN) else 0

    def _steepness(self, r: Array) -> Array:
        return np.asarray((self.j + self.k * r**self.k) / (self._power * r**self._power))


class SphericalNoise(RadialNoise):
    """μ(z) = φ(‖z‖₂)."""

    order = 2.0

    @property
    def _square(self) -> float:
        return 1 / self.dim

    @property
    def _log_sphere(self) -> float:
        return math.log(2) + self.dim / 2 * math.log(math.pi) - math.lgamma(self.dim / 2)

    @property
    def _raw(self) -> Noise:
        from unicr.noise.families.gaussian import gaussian

        return gaussian(sigma=1)


class CubeNoise(RadialNoise):
    """μ(z) = φ(‖z‖_∞)."""

    order = math.inf

    @property
    def _square(self) -> float:
        return (self.dim + 2) / (3 * self.dim)  # one coordinate is ±1, the others are uniform

    @property
    def _log_sphere(self) -> float:
        return math.log(self.dim) + self.dim * math.log(2)

    @property
    def _raw(self) -> Noise:
        from unicr.noise.families.uniform import uniform

        return uniform(scale=1)


class CrossNoise(RadialNoise):
    """μ(z) = φ(‖z‖₁)."""

    order = 1.0

    @property
    def _square(self) -> float:
        return 2 / (self.dim * (self.dim + 1))

    @property
    def _log_sphere(self) -> float:
        return self.dim * math.log(2) - math.lgamma(self.dim)

    @property
    def _raw(self) -> Noise:
        from unicr.noise.families.laplace import laplace

        return laplace(scale=1)


class Spherical(SphericalNoise):
    """Any radial density: `radial_logpdf` is log φ as a function of r, unnormalised is fine.

    `points` names radii that a scan could miss.
    """

    name = "Spherical"
    family = None
    formula = "phi(|z|)"
    _function: Callable[[Array], Array]
    _hints: tuple[float, ...]

    def __init__(
        self,
        radial_logpdf: Callable[[Array], Array],
        *,
        dim: int,
        sigma: float | None = None,
        scale: float | None = None,
        points: Sequence[float] = (),
    ) -> None:
        self._put(_function=radial_logpdf, _hints=tuple(float(p) for p in points))
        if sigma is None and scale is None:
            scale = 1.0
        super().__init__(dim=dim, sigma=sigma, scale=scale)

    def _radial(self, r: Array) -> Array:
        return np.asarray(self._function(r), dtype=np.float64)

    @property
    def _points(self) -> tuple[float, ...]:
        return self._hints

    @property
    def _key(self) -> tuple[Any, ...]:
        return (type(self), self._function, self.dim, self._scale)

    def _data(self) -> Data:
        raise NoiseError(
            f"{self.text} rests on radial function of the user's own and cannot be kept as data"
        )

    @property
    def facts(self) -> Facts:
        return replace(super().facts, unimodal=False, source="checked")

    def _scaled(self, factor: float) -> Self:
        return self._copy(_scale=self._scale * factor, _sigma=self._sigma * factor)

    @property
    def _text(self) -> str:
        label = getattr(self._function, "__name__", type(self._function).__name__)
        return f"Spherical({label}, scale={number(self._scale)}, dim={self.dim})"
