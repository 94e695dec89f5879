"""Optimality validation: at a fixed p_A and equal σ, which noise certifies the largest radius?

Every noise has a bracket, proved ≤ true ≤ searched. One noise is *proved* best among those compared
where its proved radius reaches every other's searched one; otherwise several remain possible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from unicr.errors import NoiseError, RadiusError
from unicr.noise import FAMILIES, Noise
from unicr.noise.internal import positive
from unicr.norms import Norm
from unicr.progress import tell
from unicr.radius import RadiusCurve, certified_radius
from unicr.text import number
from unicr.values import Array

Verdict = Literal["proved", "tied", "open", "none"]

FEW = 8  # up to so many p_A, solving each by itself costs less than making a curve
ACCURACY = 2e-3  # a searched radius stops at most this share short of its own boundary
NEAR_HALF = 1e-6  # above ½; nearer a searched radius says nothing, and all noises stay possible
LAST_READ = 1 - 1e-11  # beyond it curves no longer rise, and each radius is solved


@dataclass(frozen=True)
class Standing:
    """One noise in a comparison: its bracket, its ranks, and whether it can be the best."""

    noise: str
    proved: float
    searched: float
    rank_proved: int
    rank_searched: int
    possible: bool


@dataclass(frozen=True)
class Comparison:
    """Noises of equal σ at one p_A, or (`p_a` None) on average over the p_A of `inputs` inputs.

    `verdict`: "proved" (one noise is proved best among these), "tied" (the best ones cannot be told
    apart at the 0.2 % accuracy of a searched radius, and all others are proved worse), "open"
    (brackets overlap) or "none" (nothing is certified at this p_A).
    """

    norm: Norm
    dim: int
    p_a: float | None
    inputs: int
    standings: tuple[Standing, ...]
    verdict: Verdict

    @property
    def best(self) -> str:
        """The noise with the largest proved radius, the first of equals."""
        return min(self.standings, key=lambda s: s.rank_proved).noise

    @property
    def best_searched(self) -> str:
        """The noise with the largest searched radius, the first of equals."""
        return min(self.standings, key=lambda s: s.rank_searched).noise

    @property
    def possible(self) -> tuple[str, ...]:
        """Every noise that is not proved to be worse than another one."""
        return tuple(s.noise for s in self.standings if s.possible)

    @property
    def text(self) -> str:
        """The verdict in words."""
        if self.verdict == "none":
            return "nothing is certified: p_A must exceed 1/2"
        if self.verdict == "proved":
            return (
                f"{self.possible[0]} is proved best of {len(self.standings)}: its proved radius "
                "exceeds every other searched one"
            )
        names = ", ".join(self.possible)
        if self.verdict == "tied":
            return f"tied within {ACCURACY:.1%}, all others proved worse: {names}"
        return (
            f"open, the brackets overlap: {names} remain possible; {self.best} leads by proved "
            f"radius, {self.best_searched} by searched radius"
        )


def list_galleries() -> dict[str, tuple[str, tuple[float, ...]]]:
    """The families that name values of a shape to compare: that shape, and the values."""
    return {
        name: (parameter.name, parameter.gallery)
        for name, kind in FAMILIES.items()
        for parameter in kind.parameters
        if parameter.gallery
    }


def gallery(
    family: str, sigma: float, betas: Sequence[float] | None = None
) -> tuple[tuple[Noise, ...], tuple[str, ...]]:
    """Return the noises of one family over β, all with standard deviation `sigma`, and what was
    refused.

    A β that the family cannot have (3 for a mixture weight, 2 for a Pareto noise, which then has
    no variance) is refused with its reason; it is an error if nothing else is left.
    """
    axes = list_galleries()
    if family not in axes:
        known = ", ".join(axes)
        raise NoiseError(
            f"{family!r} is not a family with a parameter beta (these are: {known}); name any "
            "other noise with --noise, for example --noise 'laplace(sigma=1)'"
        )
    sigma = positive("sigma", sigma)
    make = FAMILIES[family]
    noises, refused = [], []
    key, usual = axes[family]
    for value in usual if betas is None else betas:
        try:
            noises.append(make(**{key: value}, sigma=sigma))
        except NoiseError as error:
            refused.append(f"{family} at {key}={number(value)}: {error}")
    if not noises:
        raise NoiseError(
            f"there is no noise to compare: {'; '.join(refused) or 'no beta was given'}"
        )
    return tuple(dict.fromkeys(noises)), tuple(refused)


def rescale_to(noise: Noise, sigma: float) -> Noise:
    """The noise rescaled to `sigma`; an error if it has no variance to compare at."""
    if not math.isfinite(noise.sigma):
        raise NoiseError(
            f"{noise.text} has no finite variance, but noises are compared at equal sigma: "
            f"truncate it, for example --noise '{noise.text}.truncated(5)'"
        )
    return noise if math.isclose(noise.sigma, sigma, rel_tol=1e-12) else noise.with_sigma(sigma)


def compare_noises(
    noises: Sequence[Noise],
    norm: Norm | float | str,
    dim: int | None,
    p_a: Sequence[float],
    *,
    curves: bool | None = None,
) -> list[Comparison]:
    """Compare noises of equal σ at every p_A (binary case, p_B = 1 − p_A).

    Parameters
    ----------
    noises
        The noises; all must have the same standard deviation.
    norm, dim
        The norm of the radii, and the dimension.
    p_a
        The probabilities at which they are compared.
    curves
        True reads the radii from p_A–R curves, from below; False solves each by itself; None takes
        curves where there are more than eight p_A.

    Returns
    -------
    list of Comparison
        One for each p_A.
    """
    p = _check_probabilities(p_a)
    field = _Field.of(noises, norm, dim)
    proved, searched = field.compute_brackets(p, curves)
    columns = zip(p, proved.T, searched.T, _bound_above(searched, p).T, strict=True)
    return [field.compare(float(p_a), 1, *radii) for p_a, *radii in columns]


def compare_average(
    noises: Sequence[Noise],
    norm: Norm | float | str,
    dim: int | None,
    p_a: ArrayLike,
    *,
    factors: ArrayLike = 1.0,
) -> Comparison:
    """Compare the average radius over inputs whose p_A stay as they are, whatever the noise.

    Parameters
    ----------
    noises
        The noises; all must have the same standard deviation.
    norm, dim
        The norm of the radii, and the dimension.
    p_a
        The p_A of each input; 0 for one that was wrong or abstained, which counts with radius 0.
    factors
        What the radius of each input is multiplied by, where every input has a σ of its own
        (R(s·μ) = s·R(μ)).

    Returns
    -------
    Comparison
        The noises by their average radius.
    """
    given = _check_probabilities(p_a)
    weights = np.broadcast_to(np.asarray(factors, dtype=np.float64), given.shape)
    p, at = np.unique(given, return_inverse=True)
    field = _Field.of(noises, norm, dim)
    proved, searched = field.compute_brackets(p, None)
    every = (proved, searched, _bound_above(searched, p))
    means = [np.mean(values[:, at] * weights, axis=1) for values in every]
    return field.compare(None, len(given), *means)


def _check_probabilities(p_a: ArrayLike) -> Array:
    p = np.atleast_1d(np.asarray(p_a, dtype=np.float64))
    if p.size == 0:
        raise RadiusError("no p_A was given: give at least one, for example 0.9")
    bad = p[~((p >= 0) & (p <= 1))]
    if bad.size:
        raise RadiusError(f"p_a={float(bad[0])!r} must be a probability between 0 and 1")
    return p


def _check_equal_sigma(noises: Sequence[Noise]) -> None:
    if not noises:
        raise NoiseError("no noise to compare: give at least one")
    first = noises[0].sigma
    for noise in noises:
        if not math.isclose(rescale_to(noise, noise.sigma).sigma, first, rel_tol=1e-9):
            raise NoiseError(
                f"{noise.text} has sigma {noise.sigma:g}, {noises[0].text} has {first:g}: noises "
                f"are compared at equal sigma, use .with_sigma({first:g})"
            )


@dataclass(frozen=True)
class _Field:
    """The noises that are compared in one norm and dimension, by their curves."""

    curves: tuple[RadiusCurve, ...]

    @classmethod
    def of(cls, noises: Sequence[Noise], norm: Norm | float | str, dim: int | None) -> _Field:
        _check_equal_sigma(noises)
        return cls(tuple(RadiusCurve(noise, norm, dim) for noise in noises))

    def compute_brackets(self, p: Array, curves: bool | None) -> tuple[Array, Array]:
        """(proved, searched), a row for each noise and a column for each p_A."""
        read = len(p) > FEW if curves is None else curves
        known: dict[Noise, tuple[Array, Array]] = {}
        for i, curve in enumerate(self.curves):
            tell(f"comparing in {curve.norm}", i, len(self.curves), curve.noise.text)
            if curve.noise not in known:
                known[curve.noise] = _read(curve, p) if read else _solve(curve, p)
        tell(f"comparing in {curve.norm}", len(self.curves), len(self.curves))
        rows = [known[curve.noise] for curve in self.curves]
        return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])

    def compare(
        self, p_a: float | None, inputs: int, proved: Array, searched: Array, upper: Array
    ) -> Comparison:
        """Ranks and verdict from one bracket for each noise."""
        # Only a proof rules a noise out: another's proved radius above all that it may have.
        possible = upper >= np.max(proved)
        standings = tuple(
            Standing(
                noise=curve.noise.text,
                proved=float(proved[i]),
                searched=float(searched[i]),
                rank_proved=1 + int(np.sum(proved > proved[i])),
                rank_searched=1 + int(np.sum(searched > searched[i])),
                possible=bool(possible[i]),
            )
            for i, curve in enumerate(self.curves)
        )
        verdict = _judge(proved[possible], searched[possible], float(np.max(upper)))
        norm, dim = self.curves[0].norm, self.curves[0].dim
        return Comparison(norm, dim, p_a, inputs, standings, verdict)


def _read(curve: RadiusCurve, p: Array) -> tuple[Array, Array]:
    """(proved, searched) from the curve; beyond its end, where it no longer rises, solved."""
    proved, searched = curve(p), curve(p, searched=True)
    beyond = p > LAST_READ
    if beyond.any():
        proved[beyond], searched[beyond] = _solve(curve, p[beyond])
    return proved, searched


def _solve(curve: RadiusCurve, p: Array) -> tuple[Array, Array]:
    radii = [certified_radius(curve.noise, curve.norm, curve.dim, p_a=float(p_a)) for p_a in p]
    return np.array([r.proved for r in radii]), np.array([r.searched for r in radii])


def _bound_above(searched: Array, p: Array) -> Array:
    """Not below the true radius: searched radii stop short of their boundary, most near p_A = ½."""
    above = p - 0.5
    short = ACCURACY + NEAR_HALF / np.maximum(above, NEAR_HALF)
    unreadable = (above > 0) & (above <= NEAR_HALF)
    return np.where(unreadable, math.inf, searched * (1 + short))


def _judge(proved: Array, searched: Array, highest: float) -> Verdict:
    """The verdict from the brackets of the noises that remain possible."""
    if highest == 0:
        return "none"
    if len(proved) == 1:
        return "proved"
    lowest, top = float(np.min(proved)), float(np.max(searched))
    return "tied" if lowest == top or lowest >= (1 - ACCURACY) * top else "open"
