"""Radii in several norms for many inputs: curves where p_B = 1 − p_A, single radii elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from unicr.errors import CertifyError
from unicr.noise import IID, Noise
from unicr.noise.internal import RadialNoise
from unicr.norms import Norm
from unicr.radius import RadiusCurve, certified_radius
from unicr.radius.internal import guarantee_of
from unicr.smoothing._certificate import NormRadius
from unicr.smoothing._plan import Plan


class Radii:
    """What the probabilities of one input are worth in each norm, for one noise and dimension.

    Proved radii, or with `searched` the paper's approximate ones.
    """

    def __init__(
        self, noise: Noise, norms: Sequence[Norm], dim: int, *, searched: bool = False
    ) -> None:
        if not norms:
            raise CertifyError("at least one norm is needed")
        if not isinstance(noise, IID | RadialNoise):
            raise CertifyError(
                f"{noise.text} has no radius curve: certify single inputs with "
                "unicr.radius.certified_radius(engine='montecarlo')"
            )
        self.noise, self.norms, self.dim, self.searched = noise, tuple(norms), dim, searched
        self._curves = [RadiusCurve(noise, norm, dim) for norm in norms]
        self._needed: dict[float, float] = {}

    def at(self, p_a: float, p_b: float) -> tuple[NormRadius, ...]:
        """The radius in every norm; zeros where p_A ≤ p_B."""
        return tuple(
            self._one(norm, curve, p_a, p_b)
            for norm, curve in zip(self.norms, self._curves, strict=True)
        )

    def _one(self, norm: Norm, curve: RadiusCurve, p_a: float, p_b: float) -> NormRadius:
        if p_a <= p_b:
            return NormRadius(norm.text, 0.0, 0.0, 0.0, "abstain")
        if p_b >= 1.0 - p_a:
            proved = float(curve(p_a))
            searched = max(float(curve(p_a, searched=True)), proved)
        else:
            searched, proved = _surface(self.noise, norm, self.dim, p_a, p_b)
        radius = searched if self.searched else proved
        return NormRadius(norm.text, radius, proved, searched, guarantee_of(proved, searched))

    def first(self, p_a: float) -> float:
        """The radius in the first norm at p_A: what early stopping looks at."""
        return float(self._curves[0](p_a, searched=self.searched)) if p_a > 0.5 else 0.0

    def needed(self, radius: float) -> float:
        """The least p_A that certifies `radius` in the first norm, rounded up."""
        if radius not in self._needed:
            self._needed[radius] = self._invert(radius)
        return self._needed[radius]

    def _invert(self, radius: float) -> float:
        low, high = 0.5, 1.0 - 1e-11
        if self.first(high) < radius:
            return math.nextafter(1.0, 0.0)
        while high - low > 1e-12:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.first(middle) >= radius else (middle, high)
        return high

    def largest(self, plan: Plan) -> dict[str, float]:
        """The largest radius that the plan can give in each norm: every vote for one class.

        Builds every curve that certificates will be read from.
        """
        p_a = plan.best_p_a()
        return {one.norm: one.radius for one in self.at(p_a, 1.0 - p_a)}


@lru_cache(maxsize=65536)
def _surface(noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> tuple[float, float]:
    """(searched, proved) for a free p_B, never below what the binary curve gives at p_A."""
    found = certified_radius(noise, norm, dim, p_a=p_a, p_b=p_b)
    if p_a > 0.5:
        curve = RadiusCurve(noise, norm, dim)
        at = np.array(p_a)
        return (
            max(found.searched, float(curve(at, searched=True))),
            max(found.proved, float(curve(at))),
        )
    return found.searched, found.proved
