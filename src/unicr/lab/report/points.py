"""Single radii at a few p_A, for a noise that has no curve: what is drawn in place of one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from unicr.noise import Noise
from unicr.norms import Norm
from unicr.progress import tell
from unicr.radius import Grade, MonteCarlo, NoCurveError, Radius, RadiusCurve, certified_radius
from unicr.values import Array

TABLE = (0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)  # p_A of a LaTeX table, and of single radii


class RadiusPoints:
    """The radii of one noise at the p_A of TABLE, each computed by itself.

    A joint noise has no theorem: its radii come from the paper's Monte Carlo search. Then `proved`
    is 0, `searched` is what the search found, and `confident` holds along the direction that it
    found, with probability `confidence`.
    """

    def __init__(
        self,
        noise: Noise,
        norm: Norm,
        dim: int | None = None,
        settings: MonteCarlo | None = None,
    ) -> None:
        self.noise, self.norm = noise, norm
        self._dim, self._settings = dim, settings
        self.p = np.array(TABLE)

    @cached_property
    def _radii(self) -> list[Radius]:
        radii = []
        for i, p in enumerate(TABLE):
            tell(f"radii of {self.noise.label}", i, len(TABLE), f"p_A = {p:g}")
            asked = (self.noise, self.norm, self._dim)
            radii.append(certified_radius(*asked, p_a=p, montecarlo=self._settings))
        return radii

    @property
    def dim(self) -> int:
        """The dimension of inputs."""
        return self._radii[0].dim

    @property
    def grade(self) -> Grade | None:
        """How good the proofs are; None if nothing is proved."""
        return self._radii[0].grade

    @property
    def proved(self) -> Array:
        """Radii that hold in every direction; 0 if nothing is proved."""
        return np.array([radius.proved for radius in self._radii])

    @property
    def searched(self) -> Array:
        """The smallest radii that the search found."""
        return np.array([radius.searched for radius in self._radii])

    @property
    def confident(self) -> Array | None:
        """Radii that hold along the direction found; None if nothing was sampled."""
        radii = [radius.radius_with_confidence for radius in self._radii]
        if all(radius is None for radius in radii):
            return None
        return np.array([np.nan if radius is None else radius for radius in radii])

    @property
    def confidence(self) -> float | None:
        """The probability with which a `confident` radius holds."""
        return self._radii[0].confidence


Curve = RadiusCurve | RadiusPoints


def make_curve(noise: Noise, norm: Norm, dim: int | None) -> Curve:
    """The curve of a noise; where there is none, radii at a few p_A."""
    try:
        return RadiusCurve(noise, norm, dim)
    except NoCurveError:
        return RadiusPoints(noise, norm, dim)


def label_curves(curves: Sequence[Curve]) -> list[str]:
    """A name for each curve: its noise's own, or its text where two noises have the same name."""
    labels = [curve.noise.label for curve in curves]
    noises = {curve.noise for curve in curves}
    names = [noise.label for noise in noises]
    return [
        repr(curve.noise) if names.count(label) > 1 else label
        for curve, label in zip(curves, labels, strict=True)
    ]
