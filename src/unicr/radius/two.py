"""The radius from votes under two laws: noise φ(‖z‖), and the same within a ball (DSRS).

In ℓ2 for spherical noise, in ℓ1 for noise of the ℓ1 length, Laplace noise among it. Everything
about a noise is computed once (`TwoLaws`, kept on disk); a pair (p_A, q_A) is then read in a
millisecond. The radius is never below the one that p_A alone gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from unicr.errors import RadiusError
from unicr.noise import Noise, SphericalNoise
from unicr.noise.internal import CrossNoise, RadialNoise, Within
from unicr.norms import Norm
from unicr.radius._cache import cached
from unicr.radius._curve import RadiusCurve
from unicr.tradeoff.internal import TwoParts, falls, levels_for_two, total_variation, two_parts
from unicr.values import Array

# of δ, in units of σ or of the scale; in ℓ1 the way between two lengths costs more
LENGTHS = {2.0: np.geomspace(0.06, 6.0, 48), 1.0: np.geomspace(0.06, 6.0, 120)}
STEPS = np.geomspace(1e-5, 0.2, 200)  # beyond a length, as shares of it


class TwoLaws:
    """R(p_A, q_A), binary case, in the norm of the density (`order`: ℓ2 or ℓ1), for some balls.

    q_A is a lower bound of the top class's probability under the noise conditioned on ‖ε‖ ≤ T,
    where P(‖ε‖ ≤ T) is one of `shares`. Proved: duality at each length (`tradeoff/_two`), and
    beyond a length no test gains more than the total variation of the rest of the way.
    """

    def __init__(self, noise: Noise, shares: Sequence[float]) -> None:
        if (
            not isinstance(noise, SphericalNoise | CrossNoise)
            or isinstance(noise, Within)
            or not falls(noise)
        ):
            raise RadiusError(
                f"{noise.text} cannot be paired with itself in a ball: two laws need spherical "
                "noise or l1_exp that falls with the length, for example spherical_gg (Gaussian "
                "noise is spherical_exp(k=2, ...), Laplace noise is l1_exp(k=1, j=0, ...))"
            )
        if not shares or not all(0 < share < 1 for share in shares):
            raise RadiusError(f"shares={list(shares)}: each must lie strictly between 0 and 1")
        self.noise: RadialNoise = noise
        self.shares = tuple(float(share) for share in shares)

    @property
    def order(self) -> float:
        """The p of the norm that radii are in."""
        return self.noise.order

    def carried(self, norm: Norm) -> float:
        """The factor from a radius here to one in another norm, whose ball lies in this one."""
        p, order = norm.p, self.order
        return 1.0 if p <= order else float(self.noise.dim) ** (1 / p - 1 / order)

    @cached_property
    def _unit(self) -> float:
        unit = self.noise.unit
        return unit.sigma if math.isfinite(unit.sigma) else 1.0

    @cached_property
    def _tables(self) -> dict[str, Array]:
        def make() -> dict[str, Array]:
            unit, shares = self.noise.unit, np.asarray(self.shares)
            lengths = LENGTHS[self.order]
            found = levels_for_two(unit)
            parts = [two_parts(found, unit, x * self._unit, shares) for x in lengths]
            return {
                "t": np.stack([one.t for one in parts]),
                "inside": np.stack([one.inside for one in parts]),
                "outside": np.stack([one.outside for one in parts]),
                "variation": total_variation(unit, np.outer(lengths, STEPS) * self._unit),
            }

        return cached("two-laws", f"{self.noise.unit.cache_key}|{self.shares}", make)

    @cached_property
    def _single(self) -> RadiusCurve:
        return RadiusCurve(self.noise, self.order)

    def single(self, p_a: float) -> float:
        """The proved radius of p_A alone."""
        return float(self._single(p_a))

    def radius(self, p_a: float, q_a: float, share: float) -> float:
        """The proved radius; at least the one of p_A alone."""
        for name, value in (("p_a", p_a), ("q_a", q_a)):
            if not 0 <= value <= 1:
                raise RadiusError(f"{name}={value!r} must be a probability between 0 and 1")
        if share not in self.shares:
            raise RadiusError(f"share={share!r} is not one of {list(self.shares)}")
        row, tables, best = self.shares.index(share), self._tables, self.single(p_a)
        keys, lengths = ("t", "inside", "outside"), LENGTHS[self.order]
        for i in range(len(lengths) - 1, -1, -1):
            found = TwoParts(*(tables[key][i] for key in keys)).least(p_a, q_a, share, row)
            if found >= 0.5:
                free = np.searchsorted(tables["variation"][i], found - 0.5, side="right") - 1
                more = STEPS[free] if free >= 0 else 0.0
                length = float(lengths[i] * (1.0 + more))
                return max(best, length * self._unit * self.noise.scale)
        return best
