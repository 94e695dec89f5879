"""Noise from any 1-D density that a user can write down, and from scipy and torch distributions.

The density is integrated (`unicr.law`), checked by a second quadrature, and becomes a table whose
log-density is straight between knots: that table is the law (docs/theory.md#tables).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unicr.errors import NoiseError
from unicr.law import LengthLaw, RadialDensity, Table
from unicr.law.internal import TabulatedDensity, table_to_data, tabulate
from unicr.noise._base import IID, Data, Recipe, make_sampled_law, positive
from unicr.noise._family import dimension
from unicr.noise._radial import RadialNoise, UnitBall
from unicr.text import number
from unicr.values import Array

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Tabulation(Recipe[IID]):
    """A table under a name of its own. Its text is that name, times the scale."""

    table: Table
    name: str
    scale: float

    def make(self) -> IID:
        """The noise itself."""
        return IID(self.table, self, scale=self.scale, name=self.name)

    @property
    def text(self) -> str:
        return self.name if self.scale == 1.0 else f"{self.name} * {number(self.scale)}"

    def data(self, noise: IID) -> Data:
        return {
            "density": self.name,
            "scale": self.scale,
            "facts": asdict(self.table.facts),
            "table": table_to_data(self.table),
        }

    def scaled(self, noise: IID, factor: float) -> IID:
        return replace(self, scale=self.scale * factor).make()

    def unit(self, noise: IID) -> IID:
        return replace(self, scale=1.0).make()


def _tabulate(
    logpdf: Callable[..., Any],
    name: str,
    support: tuple[float, float],
    points: Sequence[float],
    symmetric: bool | None,
    log_concave: bool | None,
    sigma: float | None,
    scale: float | None,
) -> IID:
    if sigma is not None and scale is not None:
        raise NoiseError("give sigma= or scale=, not both")
    density = TabulatedDensity.build(logpdf, support=support, points=points)
    table = tabulate(density, name, symmetric, log_concave)
    size = 1.0 if scale is None else positive("scale", scale)
    noise = Tabulation(table, name, size).make()
    make_sampled_law(noise.unit)  # compared with the cdf: refused here, not at the first draw
    return noise if sigma is None else noise.with_sigma(sigma)


def from_density(
    logpdf: Callable[..., Any],
    *,
    support: tuple[float, float] = (-math.inf, math.inf),
    points: Sequence[float] = (),
    symmetric: bool | None = None,
    log_concave: bool | None = None,
    sigma: float | None = None,
    scale: float | None = None,
    name: str | None = None,
) -> IID:
    """Return the noise of a 1-D density, given by its LOGARITHM.

    The density need not be normalised, symmetric or smooth. The noise is a table of it, straight
    between knots in the log-density: what is sampled and what is proved are the table's
    (docs/theory.md#tables). A density that is symmetric or log-concave but for rounding gets a
    table that is exactly so. What is not a density is refused with the reason.

    Parameters
    ----------
    logpdf
        log p(x) up to a constant, of a float64 array.
    support
        Where the density may be positive.
    points
        Places that a scan could miss: a very narrow mode, a kink, a jump.
    symmetric, log_concave
        True asks for a table with that fact, False forbids it, None finds out.
    sigma, scale
        The size of the noise, at most one of them: its standard deviation, or a factor of x.
    name
        What the noise is called in texts and files.

    Returns
    -------
    IID
        Noise with independent coordinates of this law.

    Examples
    --------
    >>> from unicr import noise
    >>> huber = noise.from_density(lambda x: -abs(x) - x**2, name="mine", sigma=0.5)
    >>> huber.facts.log_concave, huber.sigma
    (True, 0.5)
    """
    label = name or f"from_density({getattr(logpdf, '__name__', type(logpdf).__name__)})"
    return _tabulate(logpdf, label, support, points, symmetric, log_concave, sigma, scale)


@dataclass(frozen=True)
class Written(RadialDensity):
    """log φ as a user wrote it."""

    function: Callable[[Array], Array]
    points: tuple[float, ...]

    def typical_lengths(self, dim: int) -> tuple[float, ...]:
        return self.points

    def log_density(self, r: Array) -> Array:
        return np.asarray(self.function(r), dtype=np.float64)


@dataclass(frozen=True)
class WrittenLength(Recipe[RadialNoise]):
    """A density of the length that a user wrote. It has no data: its function cannot be kept."""

    density: Written
    dim: int
    scale: float

    @property
    def text(self) -> str:
        label = getattr(self.density.function, "__name__", type(self.density.function).__name__)
        return f"from_radial_density({label}, scale={number(self.scale)}, dim={self.dim})"

    def data(self, noise: RadialNoise) -> Data:
        raise NoiseError(
            f"{self.text} uses a Python function of its author and cannot be written to a file"
        )

    def make(self, ball: UnitBall) -> RadialNoise:
        """The noise itself."""
        return RadialNoise(ball, LengthLaw(self.density, self.dim), self, scale=self.scale)

    def scaled(self, noise: RadialNoise, factor: float) -> RadialNoise:
        return replace(self, scale=positive("scale", self.scale * factor)).make(noise.ball)

    def unit(self, noise: RadialNoise) -> RadialNoise:
        return noise._at_unit(replace(self, scale=1.0))


def from_radial_density(
    radial_logpdf: Callable[[Array], Array],
    *,
    dim: int,
    sigma: float | None = None,
    scale: float | None = None,
    points: Sequence[float] = (),
) -> RadialNoise:
    """Return spherical noise, given by the LOGARITHM of its density as a function of r = ‖z‖₂.

    That the density falls with r, which proofs need, is checked numerically, and the grade of a
    radius says so (docs/theory.md#densities-of-the-length).

    Parameters
    ----------
    radial_logpdf
        log φ(r) up to a constant, of a float64 array.
    dim
        The number of coordinates.
    sigma, scale
        The size of the noise, at most one of them: its standard deviation per coordinate, or a
        factor of z.
    points
        Lengths that a scan could miss.

    Returns
    -------
    RadialNoise
        Noise of dimension `dim` that has this density.

    Examples
    --------
    >>> from unicr import noise
    >>> noise.from_radial_density(lambda r: -r, dim=3, sigma=1).sigma
    1.0
    """
    from unicr.noise.families._balls import L2

    if sigma is not None and scale is not None:
        raise NoiseError("give sigma= or scale=, not both")
    size = 1.0 if scale is None else positive("scale", scale)
    density = Written(radial_logpdf, tuple(float(p) for p in points))
    noise = WrittenLength(density, dimension(dim, 2), size).make(L2)
    return noise if sigma is None else noise.with_sigma(sigma)


def from_scipy(frozen: Any, *, sigma: float | None = None, scale: float | None = None) -> IID:
    """Noise from a frozen continuous `scipy.stats` distribution, e.g. `stats.gumbel_r(0, 2)`."""
    from scipy import stats

    if not isinstance(getattr(frozen, "dist", None), stats.rv_continuous):
        name = getattr(getattr(frozen, "dist", frozen), "name", None) or repr(frozen)
        raise NoiseError(
            f"{name} is not a frozen continuous scipy.stats distribution: "
            "write for example scipy.stats.norm(0, 2), not scipy.stats.norm or a discrete one"
        )
    if any(np.ndim(value) for value in (*frozen.args, *frozen.kwds.values())):
        raise NoiseError(
            f"{frozen.dist.name} was frozen with arrays: give one distribution of one number, "
            "because all coordinates have the same law"
        )
    arguments = [number(a) for a in frozen.args]
    arguments += [f"{k}={number(v)}" for k, v in frozen.kwds.items()]
    label = f"scipy.{frozen.dist.name}({', '.join(arguments)})"
    low, high = (float(end) for end in frozen.support())
    hints = np.asarray(frozen.ppf([1e-6, 1e-3, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999, 1 - 1e-6]))
    if np.isnan(hints).any():
        raise NoiseError(f"{label} has invalid parameters: its quantiles are NaN")
    return _tabulate(frozen.logpdf, label, (low, high), hints.tolist(), None, None, sigma, scale)


def from_torch(
    distribution: torch.distributions.Distribution,
    *,
    sigma: float | None = None,
    scale: float | None = None,
) -> IID:
    """Noise from a scalar continuous `torch.distributions` distribution."""
    import torch

    if not isinstance(distribution, torch.distributions.Distribution):
        raise NoiseError(f"{distribution!r} is not a torch.distributions distribution")
    if distribution.batch_shape.numel() != 1 or tuple(distribution.event_shape):
        raise NoiseError(
            f"{distribution} has batch shape {tuple(distribution.batch_shape)} and event shape "
            f"{tuple(distribution.event_shape)}: give one distribution of one number, because all "
            "coordinates have the same law"
        )
    constraint: Any = distribution.support
    if constraint is not None and constraint.is_discrete:
        raise NoiseError(f"{distribution} is discrete, but smoothing needs a density")
    law = _in_float64(distribution)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        draws = law.sample(torch.Size([1000])).double().flatten()

    def logpdf(x: Array) -> Array:
        values = torch.as_tensor(x, dtype=torch.float64)
        inside = torch.ones_like(values, dtype=torch.bool)
        if constraint is not None:
            inside = constraint.check(values)
        result = law.log_prob(torch.where(inside, values, draws[0])).double()
        return torch.where(inside, result, -math.inf).numpy()

    def end(name: Literal["lower_bound", "upper_bound"], default: float) -> float:
        return float(getattr(constraint, name, default))

    support = (end("lower_bound", -math.inf), end("upper_bound", math.inf))
    hints = np.quantile(draws.numpy(), [0.01, 0.25, 0.5, 0.75, 0.99])
    label = f"from_torch({' '.join(str(distribution).split())})"
    return _tabulate(logpdf, label, support, hints.tolist(), None, None, sigma, scale)


def _in_float64(part: Any) -> Any:
    """A copy of a torch distribution with all its parameters in double precision."""
    import torch

    if isinstance(part, torch.Tensor):
        return part.detach().double() if part.is_floating_point() else part
    if isinstance(part, list):
        return [_in_float64(item) for item in part]
    if isinstance(part, torch.distributions.Distribution | torch.distributions.Transform):
        whole = copy.copy(part)
        for name, value in vars(part).items():
            whole.__dict__[name] = _in_float64(value)
        return whole
    return part
