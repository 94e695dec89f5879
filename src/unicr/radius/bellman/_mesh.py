"""Hockey-stick functions on a mesh of ℓ = log γ: values at its points, straight in γ between.

Such a function is Ψ(ℓ) = never + Σ mass_j·(1 − e^(ℓ − jh))₊: the pair of laws whose log-ratio takes
the mesh values jh with those Q-masses, and is infinite with mass `never`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import fft

from unicr.tradeoff import RatioLaw
from unicr.values import Array


class Mesh:
    """Points jh between `low` and `high`; `reach` points of room on both sides for convolutions."""

    def __init__(self, step: float, low: float, high: float) -> None:
        self.step = step
        self.first, self.last = math.floor(low / step), math.ceil(high / step)
        self.points: Array = step * np.arange(self.first, self.last + 1, dtype=np.float64)
        self.gamma: Array = np.exp(self.points)
        self.count = len(self.points)
        # Room for kernels of long and of short reach; what a kernel has beyond it is charged.
        self.reach = int(0.65 * self.count)
        self.near = self.count // 8
        self.sizes = tuple(  # of transforms, for kernels of short and of long reach
            fft.next_fast_len(self.count + 2 * room, real=True) for room in (self.near, self.reach)
        )

    def estimate_values(self, mass: Array) -> Array:
        """Ψ at the points, for rows of masses (never = 0), fast: for what proves nothing."""
        above = np.cumsum(mass[..., ::-1], axis=-1)[..., ::-1]
        weighted = np.cumsum((mass / self.gamma)[..., ::-1], axis=-1)[..., ::-1]
        return above - self.gamma * weighted

    def sum_values(self, mass: Array) -> Array:
        """The same for proofs: summed in long double, each value within `rounding`·Σ|mass|."""
        long, gamma = mass.astype(np.longdouble), self.gamma.astype(np.longdouble)
        above = np.cumsum(long[..., ::-1], axis=-1)[..., ::-1]
        weighted = np.cumsum((long / gamma)[..., ::-1], axis=-1)[..., ::-1]
        return (above - gamma * weighted).astype(np.float64)

    @property
    def rounding(self) -> float:
        """What a value of `sum_values` may be off by, as a share of Σ|mass|.

        n additions one after the other, each within a unit of the sum so far, in two sums of at
        most Σ|mass| each (γ_i/γ_j ≤ 1 for j ≥ i); then one rounding to double. Where long double
        is no longer than double the charge is a thousand times as large, and as sound.

        See docs/theory.md#rounding-charges.
        """
        unit = float(np.finfo(np.longdouble).eps) / 2
        return 2 * (self.count + 2) * unit + float(np.finfo(np.float64).eps) / 2

    def find_masses(self, values: Array, total: float) -> Array:
        """The (signed) masses of a function with these values that is `total` at γ = 0."""
        slope = np.diff(values, axis=-1) / np.diff(self.gamma)
        start = (values[..., :1] - total) / self.gamma[0]
        slopes = np.concatenate([start, slope, np.zeros_like(start)], axis=-1)
        return np.diff(slopes, axis=-1) * self.gamma

    def spread_law(self, law: RatioLaw) -> tuple[Array, float]:
        """Masses of a mesh law that is easier to tell apart, and its infinite mass.

        Each atom goes to its two neighbours, with its P- and Q-mass (docs/theory.md#lemma-4).

        Log-ratios below the mesh move up to its first point: P loses mass there, which can only
        raise Ψ. Those above it count as infinite.
        """
        place = np.maximum(law.loss / self.step, self.first)
        lost = place > self.last
        cell = np.clip(np.floor(place).astype(np.int64), self.first, self.last - 1)
        share = np.expm1(self.step * (cell + 1 - place)) / math.expm1(self.step)
        share = np.clip(share, 0.0, 1.0)
        mass = np.where(lost, 0.0, law.mass)
        result: Array = np.bincount(cell - self.first, mass * share, self.count).astype(np.float64)
        result += np.bincount(cell + 1 - self.first, mass * (1 - share), self.count)
        return result, law.infinite + float(np.sum(law.mass[lost]))
