"""Noise whose density depends on ‖z‖₂ alone: a direction on the sphere times a random radius.

Three built-in families (the ones of Zhang et al. and of DSRS, and the uniform ball), and
`Spherical` for any radial log-density a user writes.
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
from unicr.noise._base import Facts, Noise, dimension, positive
from unicr.noise._gaussian import Gaussian
from unicr.noise._radius import RadiusLaw
from unicr.values import Array, number

if TYPE_CHECKING:
    import torch

    from unicr.noise._sampling import InverseTable


@lru_cache(maxsize=64)
def _radius_law(noise: SphericalNoise) -> RadiusLaw:
    """The law of ‖z‖ at unit scale."""
    return RadiusLaw(noise._radial, noise.dim, support=noise._radial_support, points=noise._points)


@lru_cache(maxsize=64)
def _radius_table(noise: SphericalNoise) -> InverseTable:
    from unicr.noise._tables import build_table

    return build_table(_radius_law(noise))


class SphericalNoise(Noise):
    """μ(z) = φ(‖z‖₂). A subclass gives log φ at unit scale and the parameters of its text form."""

    dim: int
    family: ClassVar[str]
    formula: ClassVar[str]
    _radial_support: tuple[float, float] = (0.0, math.inf)
    _parameters: dict[str, float]
    _given: str
    _scale: float
    _sigma: float

    def __init__(
        self, parameters: dict[str, float], dim: int, sigma: float | None, scale: float | None
    ) -> None:
        self._put(dim=dimension(dim, 2), _parameters=parameters, _scale=1.0, **parameters)
        if (sigma is None) == (scale is None):
            raise NoiseError(f"{self.family} takes exactly one of sigma= and scale=")
        unit_sigma = self._unit_sigma
        if sigma is None:
            assert scale is not None
            scale = positive("scale", scale)
            self._put(_given="scale", _sigma=unit_sigma * scale, _scale=scale)
        else:
            sigma = positive("sigma", sigma)
            if not math.isfinite(unit_sigma):
                raise NoiseError(f"{self.family} has no finite variance here: give scale= instead")
            self._put(_given="sigma", _sigma=sigma, _scale=sigma / unit_sigma)

    @abstractmethod
    def _radial(self, r: Array) -> Array:
        """log φ(r) at unit scale, up to a constant."""

    @property
    def _points(self) -> tuple[float, ...]:
        """Radii near which the mass lies, as hints for the quadrature; the first is its unit."""
        return ()

    @property
    def _shape_key(self) -> tuple[Any, ...]:
        return (*self._parameters.items(), self.dim)

    @property
    def _text(self) -> str:
        value = self._sigma if self._given == "sigma" else self._scale
        shape = "".join(f"{k}={number(v)}, " for k, v in self._parameters.items())
        return f"{self.family}({shape}{self._given}={number(value)}, dim={self.dim})"

    @property
    def _key(self) -> tuple[Any, ...]:
        return (type(self), self._shape_key, self._scale)

    @property
    def facts(self) -> Facts:
        return Facts(
            symmetric=True,
            log_concave=False,
            bounded=math.isfinite(self._law.support[1]),
            finite_variance=math.isfinite(self._unit_sigma),
            positive=self._law.positive,
            source="checked",
        )

    @property
    def _law(self) -> RadiusLaw:
        return _radius_law(self.unit)

    @property
    def unit(self) -> Self:
        """The same shape at unit scale."""
        if self._scale == 1.0:
            return self
        return self._copy(_scale=1.0, _sigma=self._sigma / self._scale, _file=None)

    def _scaled(self, factor: float) -> Self:
        maker: Callable[..., Self] = type(self)
        value = self._sigma if self._given == "sigma" else self._scale
        return maker(**self._parameters, dim=self.dim, **{self._given: value * factor})

    @property
    def _unit_sigma(self) -> float:
        return math.sqrt(self._law.second_moment / self.dim)

    @property
    def cache_key(self) -> str:
        return f"{self.text}|{self._law.fingerprint}"

    @property
    def sigma(self) -> float:
        return self._sigma

    @property
    def scale(self) -> float:
        """The factor between the radial law as written and this noise."""
        return self._scale

    def radial_logpdf(self, r: ArrayLike) -> Array:
        """log φ(r), normalised over R^d, in real units; −inf outside the support."""
        s = np.asarray(r, dtype=np.float64) / self._scale
        low, high = self._radial_support
        sphere = math.log(2) + self.dim / 2 * math.log(math.pi) - math.lgamma(self.dim / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.asarray(self._radial(s), dtype=np.float64)
        values = np.where((s >= low) & (s <= high), values, -np.inf)
        return values - self._law.log_mass - sphere - self.dim * math.log(self._scale)

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

        r = z.flatten(1).to(torch.float64).norm(dim=1)
        values = self.radial_logpdf(r.detach().cpu().numpy())
        return torch.from_numpy(np.ascontiguousarray(values)).to(z.device)

    def _fill(
        self,
        out: torch.Tensor,
        *,
        seed: int,
        input_index: int,
        start: int,
        base: torch.Tensor | None,
    ) -> None:
        import torch

        from unicr.noise import _sampling

        Gaussian(sigma=1)._fill(out, seed=seed, input_index=input_index, start=start, base=None)
        radius = torch.empty((out.shape[0], 1), dtype=torch.float64)
        _sampling.fill(
            _radius_table(self.unit),
            radius,
            scale=self._scale,
            seed=seed,
            input_index=input_index,
            start_sample=start,
            dim=1,
            substream=1,
        )
        length = torch.linalg.vector_norm(out, dim=1, keepdim=True, dtype=torch.float64)
        out.mul_((radius.to(out.device) / length).to(out.dtype))
        if base is not None:
            out.add_(base)


class Spherical(SphericalNoise):
    """Any radial density: `radial_logpdf` is log φ as a function of r, unnormalised is fine.

    `points` names radii that a scan could miss.
    """

    family = "Spherical"
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
        super().__init__({}, dim, sigma, scale)

    def _radial(self, r: Array) -> Array:
        return np.asarray(self._function(r), dtype=np.float64)

    @property
    def _points(self) -> tuple[float, ...]:
        return self._hints

    @property
    def _shape_key(self) -> tuple[Any, ...]:
        return (self._function, self.dim)

    @property
    def facts(self) -> Facts:
        return replace(super().facts, unimodal=False)

    def _scaled(self, factor: float) -> Self:
        return self._copy(_scale=self._scale * factor, _sigma=self._sigma * factor)

    @property
    def _text(self) -> str:
        label = getattr(self._function, "__name__", type(self._function).__name__)
        return f"Spherical({label}, scale={number(self._scale)}, dim={self.dim})"


class SphericalGG(SphericalNoise):
    """‖z‖^(−2k)·exp(−‖z‖²/2s²), 2k < d: Gaussian with its mass pulled towards the centre (DSRS)."""

    family = "spherical_gg"
    formula = "|z|^(-2k) exp(-|z|^2/(2 s^2))"
    k: float

    def __init__(
        self, *, k: float, dim: int, sigma: float | None = None, scale: float | None = None
    ) -> None:
        k = 0.0 if k == 0 else positive("k", k)
        if 2 * k >= dim:
            raise NoiseError(
                f"k={number(k)}, dim={dim}: spherical_gg needs 0 <= 2k < dim to be integrable"
            )
        super().__init__({"k": k}, dim, sigma, scale)

    @property
    def _points(self) -> tuple[float, ...]:
        return (math.sqrt(max(self.dim - 1 - 2 * self.k, 0.25)),)

    def _radial(self, r: Array) -> Array:
        return np.asarray(-special.xlogy(2 * self.k, r) - r * r / 2)


class SphericalExp(SphericalNoise):
    """exp(−‖z/s‖^k)."""

    family = "spherical_exp"
    formula = "exp(-|z/s|^k)"
    k: float

    def __init__(
        self, *, k: float, dim: int, sigma: float | None = None, scale: float | None = None
    ) -> None:
        super().__init__({"k": positive("k", k)}, dim, sigma, scale)

    @property
    def _points(self) -> tuple[float, ...]:
        log_mode = math.log((self.dim - 1) / self.k) / self.k
        if log_mode > 300:
            raise NoiseError(
                f"k={number(self.k)}, dim={self.dim}: the radius of spherical_exp is near "
                f"exp({log_mode:.4g}), beyond floating point; k=0.1 or more works"
            )
        return (math.exp(log_mode),)

    def _radial(self, r: Array) -> Array:
        return -(r**self.k)


class Ball(SphericalNoise):
    """Uniform on the ball of radius s."""

    family = "ball"
    formula = "1 on |z| <= s"
    _radial_support = (0.0, 1.0)

    def __init__(self, *, dim: int, sigma: float | None = None, scale: float | None = None) -> None:
        super().__init__({}, dim, sigma, scale)

    @property
    def _points(self) -> tuple[float, ...]:
        return (1.0,)

    def _radial(self, r: Array) -> Array:
        return np.zeros_like(r)


spherical_gg = SphericalGG
spherical_exp = SphericalExp
ball = Ball
