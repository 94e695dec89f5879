"""Noise from any 1-D density that a user can write down, and from scipy and torch distributions.

The density is integrated and inverted numerically (`_quadrature`), then checked: mass 1 by a
second quadrature, and every piece of the sampler's table against the distribution function.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import NoiseError
from unicr.noise._base import IID, Facts, positive
from unicr.noise._quadrature import TabulatedDensity
from unicr.values import Array, number

if TYPE_CHECKING:
    import torch


class Tabulated(IID):
    """An i.i.d. noise whose 1-D law is a `TabulatedDensity`, times `scale`."""

    tabulated = True
    _density: TabulatedDensity
    _facts: Facts
    _name: str
    _scale: float

    def __init__(self, table: TabulatedDensity, facts: Facts, name: str, scale: float) -> None:
        self._put(_density=table, _facts=facts, _name=name, _scale=scale)

    @property
    def _text(self) -> str:
        return self._name if self._scale == 1.0 else f"{self._name} * {number(self._scale)}"

    @property
    def cache_key(self) -> str:
        return f"{self._text}|{self._density.fingerprint}|{self._facts}"

    @property
    def _key(self) -> tuple[Any, ...]:
        return (type(self), self._name, self._density.fingerprint, self._facts, self._scale)

    @property
    def facts(self) -> Facts:
        return self._facts

    @property
    def scale(self) -> float:
        return self._scale

    @property
    def unit(self) -> Self:
        return self if self._scale == 1.0 else self._copy(_scale=1.0, _file=None)

    def _scaled(self, factor: float) -> Self:
        return self._copy(_scale=self._scale * factor)

    @property
    def mean(self) -> float:
        return self._density.mean * self._scale

    @property
    def sigma(self) -> float:
        return math.sqrt(self._density.second_moment) * self._scale

    @property
    def support(self) -> tuple[float, float]:
        low, high = self._density.support
        return (low * self._scale, high * self._scale)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return tuple(b * self._scale for b in self._density.breakpoints)

    @property
    def mesh(self) -> Array:
        return self._density.mesh * self._scale

    def _unscaled(self, x: ArrayLike) -> Array:
        return np.asarray(x, dtype=np.float64) / self._scale

    def logpdf(self, x: ArrayLike) -> Array:
        return self._density.logpdf(self._unscaled(x)) - math.log(self._scale)

    def cdf(self, x: ArrayLike) -> Array:
        return self._density.cdf(self._unscaled(x))

    def sf(self, x: ArrayLike) -> Array:
        return self._density.sf(self._unscaled(x))

    def ppf(self, u: ArrayLike) -> Array:
        return self._density.ppf(u) * self._scale

    def isf(self, u: ArrayLike) -> Array:
        return self._density.isf(u) * self._scale


def _facts_of(
    table: TabulatedDensity, symmetric: bool | None, log_concave: bool | None, name: str
) -> Facts:
    seen_symmetric, seen_concave = table.symmetric_about_zero(), table.log_concave()
    for word, declared, seen in (
        ("symmetric", symmetric, seen_symmetric),
        ("log_concave", log_concave, seen_concave),
    ):
        if declared and not seen:
            raise NoiseError(f"{name} was declared {word}, but a numerical check finds it is not")
    low, high = table.support
    declared = symmetric is not None and log_concave is not None
    return Facts(
        symmetric=seen_symmetric if symmetric is None else symmetric,
        log_concave=seen_concave if log_concave is None else log_concave,
        bounded=math.isfinite(low) and math.isfinite(high),
        finite_variance=math.isfinite(table.second_moment),
        unimodal=seen_concave or table.unimodal(),
        positive=table.positive(),
        source="declared" if declared else "checked",
    )


def _make(
    logpdf: Callable[..., Any],
    name: str,
    support: tuple[float, float],
    points: Sequence[float],
    symmetric: bool | None,
    log_concave: bool | None,
    sigma: float | None,
    scale: float | None,
) -> Tabulated:
    if sigma is not None and scale is not None:
        raise NoiseError("give sigma= or scale=, not both")
    table = TabulatedDensity.build(logpdf, support=support, points=points)
    facts = _facts_of(table, symmetric, log_concave, name)
    noise = Tabulated(table, facts, name, 1.0 if scale is None else positive("scale", scale))
    noise._sampled_law()  # compared with the cdf: refused here, not at the first draw
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
) -> Tabulated:
    """Noise from the LOG of a 1-D density, which need not be normalised, symmetric or smooth.

    `points` names places that a scan could miss (a very narrow mode, a kink). `symmetric` and
    `log_concave` declare what is known; left out, they are checked numerically, and the facts
    say so. Refuses, with the reason, what is not a density.
    """
    label = name or f"from_density({getattr(logpdf, '__name__', type(logpdf).__name__)})"
    return _make(logpdf, label, support, points, symmetric, log_concave, sigma, scale)


def from_scipy(frozen: Any, *, sigma: float | None = None, scale: float | None = None) -> Tabulated:
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
            f"{frozen.dist.name} was frozen with arrays: one scalar distribution is needed, "
            "the noise is i.i.d. over coordinates"
        )
    arguments = [number(a) for a in frozen.args]
    arguments += [f"{k}={number(v)}" for k, v in frozen.kwds.items()]
    label = f"scipy.{frozen.dist.name}({', '.join(arguments)})"
    low, high = (float(end) for end in frozen.support())
    hints = np.asarray(frozen.ppf([1e-6, 1e-3, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999, 1 - 1e-6]))
    if np.isnan(hints).any():
        raise NoiseError(f"{label} has invalid parameters: its quantiles are NaN")
    return _make(frozen.logpdf, label, (low, high), hints.tolist(), None, None, sigma, scale)


def from_torch(
    distribution: torch.distributions.Distribution,
    *,
    sigma: float | None = None,
    scale: float | None = None,
) -> Tabulated:
    """Noise from a scalar continuous `torch.distributions` distribution."""
    import torch

    if not isinstance(distribution, torch.distributions.Distribution):
        raise NoiseError(f"{distribution!r} is not a torch.distributions distribution")
    if distribution.batch_shape.numel() != 1 or tuple(distribution.event_shape):
        raise NoiseError(
            f"{distribution} has batch shape {tuple(distribution.batch_shape)} and event shape "
            f"{tuple(distribution.event_shape)}: one scalar distribution is needed, "
            "the noise is i.i.d. over coordinates"
        )
    constraint: Any = distribution.support
    if constraint is not None and constraint.is_discrete:
        raise NoiseError(f"{distribution} is discrete: smoothing needs a density")
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
    return _make(logpdf, label, support, hints.tolist(), None, None, sigma, scale)


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
